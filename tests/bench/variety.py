"""``python -m tests.bench variety``: the CPU time of a cycle by how many kinds of requests come.

Without an API server: the pods of so many different requests are decided about in turn, on clusters
of several sizes. Times are those of the deciding thread alone, so that other work on the machine
does not count.
"""

from __future__ import annotations

import argparse
import gc
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench import large_clusters
from tests.bench.deciding import Deciding
from tests.bench.records import Variety
from tests.bench.results import ResultsFile, put
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
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--json", type=Path, help="the file that the figures are added to")
    options = parser.parse_args(arguments)
    file = ResultsFile(options.json)
    sizes = [int(each) for each in options.nodes.split(",")]
    requests = [int(each) for each in options.requests.split(",")]
    for number in range(1, options.rounds + 1):
        for nodes in sizes:
            found = [
                measure(nodes, kinds, options.decisions, number, file.session) for kinds in requests
            ]
            for each in found:
                put(file.results.variety, each)
            file.save()
            figures = (f"{each.kinds:5} kinds {each.cycle_us:6.0f} us" for each in found)
            print(f"{nodes:7} nodes", *figures, flush=True)
    return 0


def measure(nodes: int, kinds: int, decisions: int, number: int, session: int) -> Variety:
    """Measure the median CPU time of a cycle, snapshot and assumption included."""
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
    times_us = sorted(deciding.thread_us)
    return Variety(
        kinds=kinds,
        nodes=nodes,
        number=number,
        session=session,
        decisions=len(times_us),
        cycle_us=quantile(times_us, 0.5),
    )


if __name__ == "__main__":
    sys.exit(main())
