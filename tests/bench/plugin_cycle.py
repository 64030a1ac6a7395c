"""The time of one cycle for each plugin: all nodes at once against one node after another.

Between two cycles a pod comes to a node and the snapshot follows, as it does when pods are
placed one after another; the pod that is asked about is new each time.

``python -m tests.bench.plugin_cycle``
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from cache.pod_info import PodInfo
from cache.snapshot import Snapshot
from plugins.framework.cycle_state import CycleState
from plugins.framework.interfaces import (
    FilterPlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
)
from tests.bench.plugin_cases import PODS_PER_NODE, cases, cluster, node_name, placed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cache.columns import NodesView
    from plugins.framework.interfaces import Plugin
    from tests.bench.plugin_cases import Case


class Cycles:
    """One plugin and one kind of pod in a cluster of its own, cycle after cycle.

    Parameters
    ----------
    case
        The plugin and the pod.
    num_nodes
        The size of the cluster.
    """

    def __init__(self, case: Case, num_nodes: int) -> None:
        self.plugin: Plugin = case.recipe(num_nodes).make()
        self._pod = case.pod
        self._num_nodes = num_nodes
        self._cache = cluster(num_nodes)
        self._snapshot = Snapshot()
        self._arrived = PODS_PER_NODE * num_nodes
        self._cache.update_snapshot(self._snapshot)
        self.update_us = 0.0
        """How long the snapshot took to follow the last pod."""

    def go_on(self) -> tuple[PodInfo, NodesView]:
        """Let a pod come to a node; return a new pod to ask about, and the nodes."""
        # A stride that visits every node before any of them twice.
        host = node_name(self._arrived * 7919 % self._num_nodes)
        self._cache.add_pod(PodInfo(placed(self._arrived, host)))
        self._arrived += 1
        started = perf_counter()
        self._cache.update_snapshot(self._snapshot)
        self.update_us = (perf_counter() - started) * 1e6
        return self._pod.uid(f"uid-{self._arrived}").info(), self._snapshot.all_nodes()


def vector_cycle(plugin: Plugin, info: PodInfo, nodes: NodesView) -> None:
    """Do for all nodes what a live cycle does."""
    state = CycleState()
    goes_on = _pre_filter(plugin, state, info, nodes)
    if goes_on and isinstance(plugin, FilterPlugin):
        plugin.filter(state, info, nodes)
    if _scores(plugin, state, info, nodes) and isinstance(plugin, ScorePlugin):
        plugin.normalize(state, info, plugin.score(state, info, nodes))


def scalar_cycle(plugin: Plugin, info: PodInfo, nodes: NodesView) -> None:
    """Do the same with the scalar twins; what comes before the nodes is the same code."""
    state = CycleState()
    goes_on = _pre_filter(plugin, state, info, nodes)
    if goes_on and isinstance(plugin, FilterPlugin):
        for node_info in nodes.node_infos():
            plugin.filter_one(state, info, node_info)
    if _scores(plugin, state, info, nodes) and isinstance(plugin, ScorePlugin):
        for node_info in nodes.node_infos():
            plugin.score_one(state, info, node_info)


def _pre_filter(plugin: Plugin, state: CycleState, info: PodInfo, nodes: NodesView) -> bool:
    if not isinstance(plugin, PreFilterPlugin):
        return True
    return plugin.pre_filter(state, info, nodes).status.is_success


def _scores(plugin: Plugin, state: CycleState, info: PodInfo, nodes: NodesView) -> bool:
    if not isinstance(plugin, PreScorePlugin):
        return True
    return plugin.pre_score(state, info, nodes).is_success


@dataclass(frozen=True, slots=True)
class Figures:
    """The times of one case, in microseconds."""

    case: str
    first_us: float
    """The first cycle in a cluster that was never asked about such a pod."""
    vector_us: float
    """The median of the following ones."""
    vector_p99_us: float
    scalar_us: float
    update_us: float
    """The median of what the snapshot takes to follow a pod, all that plugins keep there included;
    no part of the cycle's own time."""


def measure(case: Case, num_nodes: int, cycles: int, scalar_cycles: int) -> Figures:
    """Measure one case."""
    going = Cycles(case, num_nodes)
    times, updates = [], []
    for _ in range(cycles + 1):
        times.append(_timed(vector_cycle, going))
        updates.append(going.update_us)
    scalar = [_timed(scalar_cycle, going) for _ in range(scalar_cycles)]
    later = sorted(times[1:])
    return Figures(
        case.id,
        times[0],
        statistics.median(later),
        later[min(len(later) - 1, len(later) * 99 // 100)],
        statistics.median(scalar),
        statistics.median(updates),
    )


def _timed(cycle: Callable[[Plugin, PodInfo, NodesView], None], going: Cycles) -> float:
    info, nodes = going.go_on()
    started = perf_counter()
    cycle(going.plugin, info, nodes)
    return (perf_counter() - started) * 1e6


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print a table, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.plugin_cycle")
    parser.add_argument("--nodes", type=int, default=5000, help=f"{PODS_PER_NODE} pods on each")
    parser.add_argument("--cycles", type=int, default=200)
    parser.add_argument("--scalar-cycles", type=int, default=5)
    parser.add_argument("--only", default="", help="cases whose name begins so")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    options = parser.parse_args(arguments)
    print(f"{options.nodes} nodes, {PODS_PER_NODE * options.nodes} pods, times in us")
    print(f"{'':<36}{'first':>9}{'vector':>9}{'p99':>9}{'scalar':>10}{'ratio':>8}{'update':>9}")
    measured = []
    for case in cases():
        if not case.id.startswith(options.only):
            continue
        each = measure(case, options.nodes, options.cycles, options.scalar_cycles)
        measured.append(each)
        print(
            f"{each.case:<36}{each.first_us:9.0f}{each.vector_us:9.1f}{each.vector_p99_us:9.0f}"
            f"{each.scalar_us:10.0f}{each.scalar_us / each.vector_us:7.0f}x"
            f"{each.update_us:9.1f}",
            flush=True,
        )
    if options.json:
        conditions = {
            "nodes": options.nodes,
            "pods": PODS_PER_NODE * options.nodes,
            "cycles": options.cycles,
            "cores": os.cpu_count(),
            "python": platform.python_version(),
        }
        figures = {"conditions": conditions, "cases": [asdict(each) for each in measured]}
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
