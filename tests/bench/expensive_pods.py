"""``python -m tests.bench expensive``: what pods that need more than their budget take from others.

Twenty pods of one namespace need a second of CPU each in a plugin, and whichever of them was tried
is deleted and made again at once. Ordinary pods of another namespace, and a few of the same one,
come at a steady rate. Queue, cycle and plugins are the real ones, on one thread. All times are of
that thread: what it has worked, and a millisecond each time that it finds nothing to do. So another
process on the machine changes nothing. Told are the share that the expensive pods took and how long
ordinary ones waited for their node.
"""

from __future__ import annotations

import argparse
import math
import sys
from time import thread_time
from typing import TYPE_CHECKING, Any, cast

from cache.snapshot import Snapshot
from plugins.framework.attempt_budget import AttemptBudget
from plugins.framework.cycle_state import CycleState
from plugins.framework.interfaces import PreFilterPlugin
from plugins.framework.results import PROCEED, SKIP_FILTER
from plugins.framework.status import SUCCESS
from scheduler.cycle.host_selection import HostSelector
from scheduler.cycle.rehearsal import rehearse
from scheduler.cycle.scheduling_cycle import SchedulingCycle
from scheduler.queueing import DEFAULT_ATTEMPT_BUDGET_S, BudgetAccounts, QueueRules, SchedulingQueue
from scheduler.runtime.framework_runner import FrameworkRunner
from tests.bench import large_clusters
from tests.bench.deciding import Parts
from tests.bench.statistics_of import quantile
from tests.builders import pod

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cache.pod_info import PodInfo
    from plugins.framework.handle import Handle
    from scheduler.queueing import QueuedPod
    from scheduler.runtime.profile_map import Profiles

EXPENSIVE = 20
NEEDS_S = 1.0
IDLE_S = 0.001
TENANT, OTHERS = "tenant", "others"


class Burner(PreFilterPlugin):
    """Needs a second for a pod with a label, and looks at the budget all the time."""

    name = "Burner"

    def pre_filter(self, state: Any, info: PodInfo, nodes: Any) -> Any:
        if "expensive" not in info.pod.metadata.labels:
            return SKIP_FILTER
        until_s = thread_time() + NEEDS_S
        while thread_time() < until_s:
            state.budget.check()
        return PROCEED


class Stage:
    """One thread's world."""

    def __init__(self, budget_s: float, nodes: int) -> None:
        self._idle_s = 0.0
        parts = self._parts = Parts()
        for each in large_clusters.nodes(nodes):
            parts.cache.add_node(each)
        points = {point: list(plugins) for point, plugins in parts.framework.points.items()}
        points["preFilter"].append(Burner(None, cast("Handle", None)))
        self._framework = FrameworkRunner("berth", points, parts.framework.score_weights)
        rules = QueueRules(
            self._framework.sort_key,
            lambda pod: SUCCESS,
            lambda profile: self._framework.event_registrations(),
        )
        self._queue = SchedulingQueue(rules, self.now_s, accounts=BudgetAccounts(budget_s))
        self._cycle = SchedulingCycle(Snapshot(), HostSelector(1))
        rehearse(parts.cache, self._cycle, cast("Profiles", [self._framework]))
        self._made = 0
        self.came_s: dict[str, float] = {}
        self.waited_s: dict[str, list[float]] = {TENANT: [], OTHERS: []}
        self.expensive_s = 0.0

    def now_s(self) -> float:
        """Return the thread's time."""
        return thread_time() + self._idle_s

    def add(self, namespace: str, came_s: float = math.nan, *, expensive: bool = False) -> None:
        """Let a pod come."""
        self._made += 1
        made = pod(f"pod-{self._made}", namespace=namespace).scheduler("berth").request(cpu="1m")
        info = (made.label("expensive") if expensive else made.label("app", "web")).info()
        self.came_s[info.uid] = came_s
        self._queue.add(info)

    def turn(self) -> None:
        """Try a pod, if there is one."""
        queued = self._queue.pop(0)
        if queued is None:
            self._idle_s += IDLE_S
            return
        self._parts.cache.update_snapshot(self._cycle.snapshot)
        budget = AttemptBudget(queued.allowance_s)
        began_s = thread_time()
        decision = self._cycle.decide(self._framework, CycleState(budget), queued.info)
        used_s = thread_time() - began_s
        if decision.is_over_budget or queued.prepaid_s or budget.has_used(self._queue.costly_s):
            self._queue.settle_budget(queued, used_s, over=decision.is_over_budget)
        self._end(queued, used_s, decision.node_name)

    def _end(self, queued: QueuedPod, used_s: float, node_name: str) -> None:
        info = queued.info
        if "expensive" in info.pod.metadata.labels:
            # Deleted, whatever became of it, and made again.
            self.expensive_s += used_s
            self._queue.done(info.uid)
            self.add(info.namespace, expensive=True)
        elif node_name:
            self._parts.cache.assume_pod(info, node_name)
            self._queue.done(info.uid)
            self.waited_s[info.namespace].append(self.now_s() - self.came_s.pop(info.uid))
        else:
            self._queue.add_unschedulable(queued)


def play(stage: Stage, seconds: float, rate: float, expensive: int) -> str:
    """Let time pass, and return a line for people."""
    for _ in range(expensive):
        stage.add(TENANT, expensive=True)
    began_s, sent = stage.now_s(), 0
    while (now_s := stage.now_s()) < began_s + seconds:
        while sent < (now_s - began_s) * rate:
            namespace = TENANT if sent % 10 == 0 else OTHERS
            stage.add(namespace, began_s + sent / rate)
            sent += 1
        stage.turn()
    share = stage.expensive_s / (stage.now_s() - began_s)
    told = [f"expensive pods take {share:6.1%} of the thread"]
    for namespace, waited_s in stage.waited_s.items():
        times = sorted(waited_s) or [math.nan]
        p50, p99 = (1000 * quantile(times, at) for at in (0.5, 0.99))
        told.append(
            f"{namespace}: {len(waited_s)} placed, p50 {p50:.1f} p99 {p99:.1f} "
            f"at most {1000 * times[-1]:.0f} ms"
        )
    lost = sum(not math.isnan(came_s) for came_s in stage.came_s.values())
    return "; ".join([*told, f"{lost} ordinary pods still wait"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line without expensive pods, with them and a budget, and with them and none."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench expensive", description=__doc__)
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--rate", type=float, default=100.0, help="ordinary pods a second")
    options = parser.parse_args(arguments)
    for name, budget_s, expensive in (
        ("nobody is expensive", DEFAULT_ATTEMPT_BUDGET_S, 0),
        ("with a budget", DEFAULT_ATTEMPT_BUDGET_S, EXPENSIVE),
        ("without one", float("inf"), EXPENSIVE),
    ):
        stage = Stage(budget_s, options.nodes)
        told = play(stage, options.seconds, options.rate, expensive)
        print(f"{name:<20} {told}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
