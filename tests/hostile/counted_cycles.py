"""A scheduler without an API server whose work is counted in calls, not in time."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any

import msgspec

from cache.objects import Pod
from cache.pod_info import PodInfo
from cache.snapshot import Snapshot
from plugins.framework.attempt_budget import AttemptBudget
from plugins.framework.cycle_state import CycleState
from scheduler.client.codec import Decoder
from scheduler.cycle.host_selection import HostSelector
from scheduler.cycle.scheduling_cycle import SchedulingCycle
from scheduler.informers.store import Delta, DeltaKind
from tests.bench.deciding import Parts
from tests.bench.large_clusters import nodes, running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scheduler.decision.decision import Decision
    from tests.hostile.tenant import Json

_decode = Decoder(Pod).decode
_FOR_EVER_S = 1e9


class Calls:
    """How often Python functions, and builtin ones called by them, were called."""

    def __init__(self) -> None:
        self.count = 0

    @contextlib.contextmanager
    def counting(self) -> Iterator[None]:
        """Count those of this thread."""
        before = sys.getprofile()
        sys.setprofile(self._called)
        try:
            yield
        finally:
            sys.setprofile(before)

    def _called(self, frame: Any, event: str, argument: Any) -> None:
        if event in ("call", "c_call"):
            self.count += 1


class CountedBudget(AttemptBudget):
    """A budget that never runs out and keeps the most calls between two looks at it.

    Attributes
    ----------
    longest
        Calls from one look to the next.
    """

    __slots__ = ("_calls", "_last", "longest")

    def __init__(self, calls: Calls) -> None:
        super().__init__(_FOR_EVER_S, lambda: 0.0)
        self._calls = calls
        self._last = calls.count
        self.longest = 0

    def check(self) -> None:
        """Take the count."""
        super().check()
        self.longest = max(self.longest, self._calls.count - self._last)
        self._last = self._calls.count


class CountedCycles:
    """A cluster with a running pod on each node, and the cycle that decides.

    Parameters
    ----------
    num_nodes
        How many nodes there are.
    """

    def __init__(self, num_nodes: int) -> None:
        self.parts = Parts()
        for each in nodes(num_nodes):
            self.parts.cache.add_node(each)
        for info in running(num_nodes, num_nodes, 0):
            self.parts.cache.add_pod(info)
        self.cycle = SchedulingCycle(Snapshot(), HostSelector(1))
        self._number = 0

    def take_in(self, manifests: list[Json]) -> tuple[list[PodInfo], int]:
        """Take pods in as a watch brings them; return those that wait, and the calls it took."""
        calls, waiting = Calls(), []
        for manifest in manifests:
            self._number += 1
            metadata = {**manifest["metadata"], "uid": f"uid-hostile-{self._number}"}
            pod = _decode(msgspec.json.encode({**manifest, "metadata": metadata}))
            with calls.counting():
                self.parts.handlers.on_pods([Delta(DeltaKind.ADDED, None, pod)])
            if not pod.spec.node_name:
                self.parts.live_pods.put(pod)
                waiting.append(PodInfo(pod))
        return waiting, calls.count

    def decide(self, info: PodInfo) -> tuple[Decision, int, int]:
        """Decide; return the decision, all calls, and the most without a look at the budget."""
        calls = Calls()
        with calls.counting():
            self.parts.cache.update_snapshot(self.cycle.snapshot)
        budget = CountedBudget(calls)
        with calls.counting():
            decision = self.cycle.decide(self.parts.framework, CycleState(budget), info)
        budget.check()
        return decision, calls.count, budget.longest
