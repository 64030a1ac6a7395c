"""``python -m tests.bench variety``: the CPU time of a cycle by how many kinds of requests come.

Without an API server: the pods of so many different requests are decided about in turn, on clusters
of several sizes. Times are those of the deciding thread alone, so that other work on the machine
does not count.
"""

from __future__ import annotations

import argparse
import gc
import sys
from typing import TYPE_CHECKING

from tests.bench import large_clusters
from tests.bench.deciding import Deciding
from tests.bench.statistics_of import quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

PODS_PER_NODE = 4


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print a line for each size."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench variety", description=__doc__)
    parser.add_argument("--nodes", default="500,1000,5000,15000", help="separated by commas")
    parser.add_argument("--requests", default="1,40,1000", help="kinds, separated by commas")
    parser.add_argument("--decisions", type=int, default=1000, help="of each")
    options = parser.parse_args(arguments)
    for nodes in map(int, options.nodes.split(",")):
        found = [
            f"{kinds:5} kinds {cycle_us(nodes, kinds, options.decisions):6.0f} us"
            for kinds in map(int, options.requests.split(","))
        ]
        print(f"{nodes:7} nodes", *found, flush=True)
    return 0


def cycle_us(nodes: int, kinds: int, decisions: int) -> float:
    """Return the median CPU time of a cycle, snapshot and assumption included."""
    gc.unfreeze()
    deciding = Deciding()
    for node in large_clusters.nodes(nodes):
        deciding.parts.cache.add_node(node)
    for info in large_clusters.running(nodes * PODS_PER_NODE, nodes, 0):
        deciding.parts.cache.add_pod(info)
    pods = large_clusters.kinds()["unlike requests"][:kinds]
    # Each kind once, and what only begins then.
    deciding.begin(pods, kinds + 20)
    deciding.decide(pods, decisions, 60.0)
    return quantile(sorted(deciding.thread_us), 0.5)


if __name__ == "__main__":
    sys.exit(main())
