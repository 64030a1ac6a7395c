"""What measuring costs a scheduling cycle: the same cycles with metrics and without, in turn.

A cycle is what the scheduling thread does for a pod, from the update of the snapshot to the
assumed pod, decided and measured. Counting what was put down is another thread's, and told apart.

``python -m tests.bench measuring``
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections import deque
from time import perf_counter, thread_time
from typing import TYPE_CHECKING

from cache.pod_info import PodInfo
from cache.snapshot import Snapshot
from plugins.framework.cycle_state import CycleState
from scheduler.cycle.cycle_watch import CycleWatch
from scheduler.cycle.host_selection import HostSelector
from scheduler.cycle.scheduling_cycle import SchedulingCycle
from scheduler.metrics import Metrics
from scheduler.queueing import QueuedPod
from tests.bench import large_clusters
from tests.bench.deciding import Parts
from tests.bench.large_clusters import renamed
from tests.bench.statistics_of import quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cache.objects import Pod

FOLD_EVERY = 200
"""Cycles between two counts: a fifth of a second at a thousand pods a second."""

STAY = 50
"""Pods that stay before the first of them goes again."""


class Measured:
    """Cycles over one cluster, of one kind of pod."""

    def __init__(self, nodes: int, pods: int, kind: Sequence[Pod]) -> None:
        self._parts = Parts()
        for node in large_clusters.nodes(nodes):
            self._parts.cache.add_node(node)
        for info in large_clusters.running(pods, nodes, 10):
            self._parts.cache.add_pod(info)
        self._kind = kind
        self._cycle = SchedulingCycle(Snapshot(), HostSelector(1))
        self._metrics = Metrics()
        self._watch = CycleWatch(self._metrics.cycles, 0.1)
        self._placed: deque[PodInfo] = deque()
        self._number = 0

    def run(self, cycles: int) -> tuple[float, float, float]:
        """Return microseconds of CPU of a cycle: bare, measured, and of counting one afterwards.

        The two sides take turns cycle by cycle, and the fastest fifth of each is what counts: the
        rest is what else the machine does.
        """
        spent: tuple[list[float], list[float]] = ([], [])
        folds: list[float] = []
        for number in range(cycles):
            measure = bool(number % 2)
            spent[measure].append(self._one(measure=measure))
            if number % FOLD_EVERY == 1:
                begun_s = thread_time()
                self._metrics.fold()
                folds.append((thread_time() - begun_s) / (FOLD_EVERY / 2))
        bare_s, measured_s, fold_s = (quantile(sorted(each), 0.2) for each in (*spent, folds))
        return bare_s * 1e6, measured_s * 1e6, fold_s * 1e6

    def _one(self, *, measure: bool) -> float:
        cache, cycle, framework = self._parts.cache, self._cycle, self._parts.framework
        self._number += 1
        pod = renamed(self._kind[self._number % len(self._kind)], f"pod-{self._number}")
        info = PodInfo(pod)
        begun_s = thread_time()
        began = perf_counter() if measure else 0.0
        update = cache.update_snapshot(cycle.snapshot)
        state = CycleState()
        if measure:
            state.marks = marks = []
            deciding = perf_counter()
        decision = cycle.decide(framework, state, info)
        if measure:
            committing = perf_counter()
            self._metrics.decided(decision, update)
        cache.assume_pod(info, decision.node_name)
        framework.run_reserve(state, info, decision.node_name)
        if framework.has_permits:
            framework.run_permit(state, info, decision.node_name)
        if measure:
            times = (began, deciding, committing)
            self._watch.end(QueuedPod(info, 0.0, 0, ()), decision, marks, times, is_last=False)
        spent_s = thread_time() - begun_s
        self._placed.append(info)
        if len(self._placed) > STAY:
            cache.forget_pod(self._placed.popleft())
        return spent_s

    def scrape(self) -> tuple[int, float]:
        """Return the bytes of a scrape and the milliseconds of CPU that it takes."""
        begun_s = thread_time()
        text, _ = self._metrics.render()
        return len(text), (thread_time() - begun_s) * 1e3


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print a line for each kind of pod."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench measuring", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--cycles", type=int, default=6_000)
    options = parser.parse_args(arguments)
    for name, kind in large_clusters.kinds().items():
        measured = Measured(options.nodes, options.pods, kind)
        measured.run(100)
        gc.collect()
        gc.freeze()
        bare, counted, fold = measured.run(options.cycles)
        size, scrape_ms = min(measured.scrape() for _ in range(5))
        print(
            f"{name:<24} {bare:7.1f} us, measured {counted:+7.1f} us ({counted / bare - 1:+.1%}), "
            f"counting it {fold:.1f} us elsewhere, a scrape {size} bytes in {scrape_ms:.1f} ms",
            flush=True,
        )
        gc.unfreeze()
    return 0


if __name__ == "__main__":
    sys.exit(main())
