"""I5, I7: after any history each pod is in the one right state, and at rest nothing is left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec.structs import replace

from cache.objects import PodSchedulingGate, Toleration
from cache.pod_info import PodInfo
from plugins.framework.cluster_events import (
    ALL_EVENTS,
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    Action,
    Hint,
    Resource,
)
from scheduler.queueing import QueueCounts, QueueState
from tests.builders import pod
from tests.scheduler.queueing.queue_model import QueueModel
from tests.scheduler.queueing.stage import (
    NODE_ALLOCATABLE,
    NODE_LABEL,
    NODE_TAINT,
    REGISTRATIONS,
    Stage,
    wants,
)

if TYPE_CHECKING:
    from cache.objects import Pod
    from scheduler.queueing import QueuedPod

NAMES = [f"pod-{index}" for index in range(6)]
PLUGINS = ["Fit", "Taints", "Picky", "Silent"]


def picky(one: Pod, old: object, new: object) -> Hint:
    """Want what fits the pod's label: another answer for each pod and event."""
    return Hint.QUEUE if one.metadata.labels.get("likes") == new else Hint.SKIP


WANTED = {
    **REGISTRATIONS,
    "Picky": (
        wants(Resource.NODE, Action.UPDATE_NODE_LABEL, picky),
        wants(Resource.POD, Action.UPDATE_POD_LABEL, lambda one, old, new: Hint.QUEUE),
    ),
}


def gate_of(info: PodInfo, door_is_shut: bool) -> str | None:
    if info.pod.spec.scheduling_gates:
        return "SchedulingGates"
    return "Door" if door_is_shut and "door" in info.labels else None


class QueueHistory(RuleBasedStateMachine):
    """The API's pods in a dict, a queue that is told of each change, and the model beside it."""

    OPTIONS: ClassVar[dict[str, Any]] = {}

    def __init__(self) -> None:
        super().__init__()
        self.stage = Stage(WANTED, **self.OPTIONS)
        self.queue = self.stage.queue
        self.model = QueueModel(
            lambda: self.stage.now_s,
            lambda info: gate_of(info, self.stage.door_is_shut),
            WANTED,
        )
        self.pods: dict[str, PodInfo] = {}
        self.attempts: dict[str, QueuedPod] = {}
        self.uids: list[str] = []

    # --- the watch ----------------------------------------------------------------------------

    @rule(
        name=st.sampled_from(NAMES),
        priority=st.integers(0, 2),
        gates=st.sampled_from([(), (), ("a",), ("a", "b")]),
        door=st.booleans(),
        likes=st.sampled_from(["x", "y"]),
    )
    def pod_created_or_created_again(self, name, priority, gates, door, likes):
        if name in self.pods:
            self.pod_deleted(name)
        uid = f"{name}-{len(self.uids)}"
        self.uids.append(uid)
        made = pod(name).uid(uid).priority(priority).gate(*gates).label("likes", likes)
        self.pods[name] = (made.label("door") if door else made).info()
        self.queue.add(self.pods[name])
        self.model.tell(self.pods[name])
        self.settle()

    @rule(
        name=st.sampled_from(NAMES),
        change=st.sampled_from(["status", "tolerate", "label", "ungate", "again"]),
    )
    def pod_updated(self, name, change):
        old = self.pods.get(name)
        if old is None:
            return
        made = old.pod
        if change == "status":
            made = replace(made, status=replace(made.status, reason=made.status.reason + "x"))
        elif change == "tolerate":
            tolerations = (*made.spec.tolerations, Toleration(key="k"))
            made = replace(made, spec=replace(made.spec, tolerations=tolerations))
        elif change == "label":
            labels = {**made.metadata.labels, "likes": "y"}
            made = replace(made, metadata=replace(made.metadata, labels=labels))
        elif change == "ungate":
            none: tuple[PodSchedulingGate, ...] = ()
            made = replace(made, spec=replace(made.spec, scheduling_gates=none))
        self.pods[name] = PodInfo(made)
        # A bound pod is assigned, so the queue is not told of its updates.
        if self.model.state_of(old.uid) is not QueueState.NOWHERE:
            self.queue.update(old.pod, self.pods[name])
            self.model.tell(self.pods[name])
            self.settle()

    @rule(name=st.sampled_from(NAMES))
    def pod_deleted(self, name):
        info = self.pods.pop(name, None)
        if info is not None:
            self.queue.delete(info.uid)
            self.model.delete(info.uid)

    # --- attempts -----------------------------------------------------------------------------

    @rule()
    def pop(self):
        expected = self.model.pop()
        queued = self.queue.pop(0)
        assert (None if queued is None else queued.info.uid) == (
            None if expected is None else expected.info.uid
        )
        if queued is not None:
            assert queued.info is expected.info
            assert queued.attempts == expected.attempts
            assert not queued.info.pod.spec.scheduling_gates
            assert queued.info.uid not in self.attempts
            self.attempts[queued.info.uid] = queued

    @precondition(lambda self: self.attempts)
    @rule(data=st.data())
    def pod_bound(self, data):
        uid = data.draw(st.sampled_from(sorted(self.attempts)))
        del self.attempts[uid]
        self.queue.done(uid)
        self.model.done(uid)

    @precondition(lambda self: self.attempts)
    @rule(
        data=st.data(),
        refused_by=st.sets(st.sampled_from(PLUGINS), max_size=2),
        pending=st.sets(st.sampled_from(PLUGINS), max_size=1),
        twice=st.booleans(),
    )
    def pod_refused(self, data, refused_by, pending, twice):
        uid = data.draw(st.sampled_from(sorted(self.attempts)))
        queued = self.attempts.pop(uid)
        queued.unschedulable_plugins, queued.pending_plugins = refused_by, pending
        self.queue.add_unschedulable(queued)
        if twice:
            self.queue.add_unschedulable(queued)
            self.queue.done(uid)
        self.model.refuse(uid, frozenset(refused_by), frozenset(pending))
        self.settle()

    # --- the cluster and the clock ------------------------------------------------------------

    @rule(
        event=st.sampled_from(
            [
                NODE_ADD,
                NODE_ALLOCATABLE,
                NODE_TAINT,
                NODE_LABEL,
                NODE_LABEL,
                ASSIGNED_POD_ADD,
                ASSIGNED_POD_DELETE,
                ALL_EVENTS,
            ]
        ),
        new=st.sampled_from(["x", "y"]),
    )
    def something_happened(self, event, new):
        moved = self.queue.move_all(event, "old", new)
        expected = self.model.event(event, "old", new)
        self.settle()
        assert self.OPTIONS or moved == expected

    @rule(index=st.integers(0, 20))
    def pod_activated(self, index):
        if self.uids:
            uid = self.uids[index % len(self.uids)]
            self.queue.activate([uid])
            self.model.activate(uid)
            self.settle()

    @rule(index=st.integers(0, 20), node_name=st.sampled_from(["n1", "n2"]))
    def pod_nominated(self, index, node_name):
        if self.uids:
            info = pod("any").uid(self.uids[index % len(self.uids)]).info()
            is_waiting = self.model.is_waiting(info.uid)
            assert self.queue.nominator.add(info, node_name) == is_waiting
            if is_waiting:
                self.model.nominated.add(info.uid)

    @rule(shut=st.booleans())
    def door_moved(self, shut):
        self.stage.door_is_shut = shut

    @rule(pause_s=st.sampled_from([0.3, 1.0, 2.5, 11.0, 301.0]))
    def time_passed(self, pause_s):
        self.stage.now_s += pause_s

    @rule()
    def pauses_flushed(self):
        self.queue.flush_backoff()
        self.model.flush_backoff()

    @rule()
    def late_ones_flushed(self):
        self.queue.flush_unschedulable_leftover()
        self.model.flush_late()
        self.settle()

    def settle(self):
        """Judge the events that wait, piece by piece."""
        while self.queue.judge_backlog(lambda: True):
            pass

    # --- what always holds --------------------------------------------------------------------

    @invariant()
    def each_pod_is_in_its_room(self):
        for uid in self.uids:
            assert self.queue.state_of(uid) is self.model.state_of(uid), uid

    @invariant()
    def the_rooms_hold_nothing_else(self):
        states = (
            QueueState.ACTIVE,
            QueueState.BACKOFF,
            QueueState.UNSCHEDULABLE,
            QueueState.GATED,
            QueueState.IN_FLIGHT,
        )
        assert self.queue.counts() == QueueCounts(*(len(self.model.of(state)) for state in states))
        pending = self.queue.pending()
        told = [
            pending.active,
            pending.backoff,
            pending.unschedulable,
            pending.gated,
            pending.in_flight,
        ]
        for state, pods in zip(states, told, strict=True):
            expected = {each.info.uid for each in self.model.of(state)}
            assert {each.info.uid for each in pods} == expected

    @invariant()
    def active_pods_stand_in_order(self):
        expected = sorted(self.model.of(QueueState.ACTIVE), key=lambda each: each.place())
        active = self.queue.pending().active
        assert [told.info.uid for told in active] == [each.info.uid for each in expected]

    @invariant()
    def nobody_is_nominated_who_does_not_wait(self):
        nominator = self.queue.nominator
        nominated = [
            info.uid
            for name in nominator.latest.node_names()
            for info in nominator.nominated_pods_for_node(name)
        ]
        assert len(nominated) == len(set(nominated)) == len(nominator)
        assert set(nominated) == self.model.nominated

    @invariant()
    def events_are_kept_for_attempts_only(self):
        longest = max((len(each.seen) for each in self.model.of(QueueState.IN_FLIGHT)), default=0)
        assert len(self.queue._pods.in_flight.events()) == longest

    def teardown(self):
        for uid, queued in self.attempts.items():
            if uid.endswith(("1", "3", "5")):
                self.queue.done(uid)
            else:
                self.queue.add_unschedulable(queued)
        for info in self.pods.values():
            self.queue.delete(info.uid)
        assert not any(self.queue.counts())
        assert len(self.queue.nominator) == 0
        assert len(self.queue._pods.in_flight.events()) == 0
        assert self.queue.pop(0) is None


class SlicedHistory(QueueHistory):
    """The same, each event judged piece by piece."""

    OPTIONS: ClassVar[dict[str, Any]] = {"wake_later": lambda: None, "pieces_at_once": 1}


TestSlicedHistory = SlicedHistory.TestCase
TestSlicedHistory.settings = settings(max_examples=100, stateful_step_count=50, deadline=None)
TestQueueHistory = QueueHistory.TestCase
TestQueueHistory.settings = settings(max_examples=150, stateful_step_count=50, deadline=None)
