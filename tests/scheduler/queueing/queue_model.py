"""The queue as anybody would write it who has few pods and much time: lists and loops.

Nothing is indexed, grouped or cached, every attempt keeps its own list of events, and what an
event means is read from the registrations each time. The queue must put every pod where this puts
it, and pop the same pods in the same order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from plugins.framework.cluster_events import (
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    Action,
    ClusterEvent,
    EventRegistration,
    Hint,
    Resource,
    update_events,
)
from scheduler.queueing import QueueState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cache.pod_info import PodInfo

STAY, AFTER_BACKOFF, AT_ONCE = 0, 1, 2


@dataclass
class ModelPod:
    info: PodInfo
    queued_s: float
    order: int
    state: QueueState = QueueState.NOWHERE
    attempts: int = 0
    refusals: int = 0
    errors: int = 0
    refused_by: frozenset[str] = frozenset()
    pending: frozenset[str] = frozenset()
    gate: str | None = None
    until_s: float = 0.0
    tried: PodInfo | None = None
    latest: PodInfo | None = None
    gone: bool = False
    activated: bool = False
    seen: list[tuple[ClusterEvent, object, object]] = field(default_factory=list)

    def place(self) -> tuple[float, float, int]:
        return (-self.info.priority, self.queued_s, self.order)


class QueueModel:
    """All pods in one list."""

    def __init__(
        self,
        clock: Callable[[], float],
        gate_of: Callable[[PodInfo], str | None],
        registrations: Mapping[str, Sequence[EventRegistration]],
    ) -> None:
        self.clock = clock
        self.gate_of = gate_of
        self.registrations = registrations
        self.pods: list[ModelPod] = []
        self.nominated: set[str] = set()
        self.left: list[PodInfo] = []
        """The pods that lost a nomination to a gate: each is an event that is not judged yet."""
        self.order = 0

    # --- questions ----------------------------------------------------------------------------

    def find(self, uid: str) -> ModelPod | None:
        return next((pod for pod in self.pods if pod.info.uid == uid), None)

    def of(self, *states: QueueState) -> list[ModelPod]:
        return [pod for pod in self.pods if pod.state in states]

    def state_of(self, uid: str) -> QueueState:
        pod = self.find(uid)
        return QueueState.NOWHERE if pod is None else pod.state

    def is_waiting(self, uid: str) -> bool:
        pod = self.find(uid)
        return pod is not None and not pod.gone

    # --- what can happen ----------------------------------------------------------------------

    def tell(self, info: PodInfo) -> None:
        pod = self.find(info.uid)
        if pod is None:
            self.order += 1
            pod = ModelPod(info, self.clock(), self.order)
            self.pods.append(pod)
            self.let_in(pod, AT_ONCE)
        elif pod.state is QueueState.IN_FLIGHT:
            pod.latest, pod.gone = info, False
        else:
            before, pod.info = pod.info, info
            self.leave_room(pod)
            changes = self.changes(before, info)
            if pod.state in (QueueState.GATED, QueueState.UNSCHEDULABLE):
                verdict = self.judge_changes(pod, before)
                if pod.state is QueueState.GATED and changes:
                    verdict = verdict or AFTER_BACKOFF
                self.wake(pod, verdict)
        self.settle()

    def delete(self, uid: str) -> None:
        pod = self.find(uid)
        self.nominated.discard(uid)
        if pod is not None and pod.state is QueueState.IN_FLIGHT:
            pod.gone = True
        elif pod is not None:
            self.pods.remove(pod)

    def pop(self) -> ModelPod | None:
        self.flush_backoff()
        ready = sorted(self.of(QueueState.ACTIVE), key=ModelPod.place)
        early = sorted(
            (pod for pod in self.of(QueueState.BACKOFF) if pod.refused_by | pod.pending),
            key=lambda pod: (pod.until_s, pod.place()),
        )
        if not ready and not early:
            return None
        pod = (ready or early)[0]
        pod.state = QueueState.IN_FLIGHT
        pod.attempts += 1
        pod.tried = pod.latest = pod.info
        pod.gone = pod.activated = False
        pod.seen = []
        return pod

    def done(self, uid: str) -> None:
        pod = self.find(uid)
        if pod is not None and pod.state is QueueState.IN_FLIGHT:
            self.pods.remove(pod)
            self.nominated.discard(uid)

    def refuse(self, uid: str, refused_by: frozenset[str], pending: frozenset[str]) -> None:
        pod = self.find(uid)
        if pod is None or pod.state is not QueueState.IN_FLIGHT:
            return
        if pod.gone:
            self.pods.remove(pod)
            return
        assert pod.latest is not None
        assert pod.tried is not None
        pod.info, pod.refused_by, pod.pending = pod.latest, refused_by, pending
        pod.queued_s = self.clock()
        self.order += 1
        pod.order = self.order
        if refused_by | pending:
            pod.refusals, pod.errors = pod.refusals + 1, 0
        else:
            pod.errors += 1
        failures = pod.errors or pod.refusals
        pod.until_s = math.floor(pod.queued_s + min(2 ** (failures - 1), 10)) + 1
        # The last one to come to a state stands last in it.
        self.pods.remove(pod)
        self.pods.append(pod)
        verdicts = [self.judge(pod, *each) for each in pod.seen]
        verdicts.append(self.judge_changes(pod, pod.tried))
        if pod.activated or not refused_by | pending:
            verdicts.append(AFTER_BACKOFF)
        pod.state = QueueState.UNSCHEDULABLE
        self.wake(pod, max(verdicts))
        self.settle()

    def event(self, event: ClusterEvent, old: object, new: object) -> int:
        return self.spread(event, old, new) + self.settle()

    def spread(self, event: ClusterEvent, old: object, new: object) -> int:
        moved = 0
        for pod in list(self.pods):
            if pod.state is QueueState.IN_FLIGHT:
                pod.seen.append((event, old, new))
            elif pod.info is not old and pod.state in (QueueState.UNSCHEDULABLE, QueueState.GATED):
                moved += self.wake(pod, self.judge(pod, event, old, new))
        return moved

    def activate(self, uid: str) -> None:
        pod = self.find(uid)
        if pod is None:
            return
        if pod.state is QueueState.IN_FLIGHT:
            pod.activated = True
        elif pod.state is QueueState.BACKOFF:
            pod.state = QueueState.ACTIVE
        elif pod.state is not QueueState.ACTIVE:
            self.let_in(pod, AT_ONCE)
            self.settle()

    def flush_backoff(self) -> None:
        for pod in self.of(QueueState.BACKOFF):
            if pod.until_s <= self.clock():
                pod.state = QueueState.ACTIVE

    def flush_late(self) -> None:
        for pod in self.of(QueueState.UNSCHEDULABLE):
            if self.clock() - pod.queued_s > 300:
                self.wake(pod, AFTER_BACKOFF)
        self.settle()

    # --- what follows from it -----------------------------------------------------------------

    def wake(self, pod: ModelPod, verdict: int) -> bool:
        return verdict != STAY and self.let_in(pod, verdict)

    def let_in(self, pod: ModelPod, verdict: int) -> bool:
        pod.gate = self.gate_of(pod.info)
        if pod.gate is not None:
            pod.state = QueueState.GATED
            self.leave_room(pod)
            return False
        pauses = verdict == AFTER_BACKOFF and self.clock() < pod.until_s
        pod.state = QueueState.BACKOFF if pauses else QueueState.ACTIVE
        return True

    def leave_room(self, pod: ModelPod) -> None:
        if pod.state is not QueueState.GATED or pod.gate == "SchedulingGates":
            return
        if pod.info.uid in self.nominated:
            self.nominated.remove(pod.info.uid)
            self.left.append(pod.info)

    def settle(self) -> int:
        moved = 0
        while self.left:
            moved += self.spread(ASSIGNED_POD_DELETE, self.left.pop(0), None)
        return moved

    def judge(self, pod: ModelPod, event: ClusterEvent, old: object, new: object) -> int:
        gate = {pod.gate} - {None}
        if gate and not self.gate_hears(pod, event):
            return STAY
        if event.is_wildcard:
            return AFTER_BACKOFF
        verdict = STAY
        for plugin in pod.refused_by | pod.pending | gate:
            for wanted in self.registered(plugin):
                if wanted.event.matches(event) and (
                    wanted.hint is None or wanted.hint(pod.info.pod, old, new) is Hint.QUEUE
                ):
                    verdict = max(verdict, AT_ONCE if plugin in pod.pending else AFTER_BACKOFF)
        return verdict

    def judge_changes(self, pod: ModelPod, before: PodInfo) -> int:
        for event in update_events(Resource.UNSCHEDULED_POD, self.changes(before, pod.info)):
            verdict = self.judge(pod, event, before.pod, pod.info.pod)
            if verdict != STAY:
                return verdict
        return STAY

    def changes(self, before: PodInfo, after: PodInfo) -> Action:
        """Know the only three changes that the histories make."""
        action = Action(0)
        if before.labels != after.labels:
            action |= Action.UPDATE_POD_LABEL
        if len(before.pod.spec.tolerations) != len(after.pod.spec.tolerations):
            action |= Action.UPDATE_POD_TOLERATION
        if before.pod.spec.scheduling_gates and not after.pod.spec.scheduling_gates:
            action |= Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
        return action

    def gate_hears(self, pod: ModelPod, event: ClusterEvent) -> bool:
        assert pod.gate is not None
        return any(wanted.event.matches(event) for wanted in self.registered(pod.gate))

    def registered(self, plugin: str) -> list[EventRegistration]:
        wanted = list(self.registrations[plugin])
        if plugin != "Taints" and any(each.event.matches(NODE_ADD) for each in wanted):
            taints = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_TAINT)
            wanted.append(EventRegistration(taints))
        return wanted
