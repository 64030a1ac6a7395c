"""A queue with a clock that stands still, real gates and registrations to choose from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from cache.pod_info import PodInfo
from plugins.framework.cluster_events import (
    Action,
    ClusterEvent,
    EventRegistration,
    Resource,
    update_events,
)
from plugins.framework.status import Status, unschedulable
from plugins.priority_sort import PrioritySort
from plugins.scheduling_gates import SchedulingGates

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cache.objects import Pod
    from plugins.framework.handle import Handle
    from scheduler.queueing import QueuedPod, QueueState
    from tests.builders import PodBuilder
from tests.scheduler.queueing.queues import make_queue

START_S = 1000.0

NO_HANDLE = cast("Handle", None)
_SORT = PrioritySort(None, NO_HANDLE)
_GATES = SchedulingGates(None, NO_HANDLE)

(NODE_LABEL,) = update_events(Resource.NODE, Action.UPDATE_NODE_LABEL)
(NODE_TAINT,) = update_events(Resource.NODE, Action.UPDATE_NODE_TAINT)
(NODE_ALLOCATABLE,) = update_events(Resource.NODE, Action.UPDATE_NODE_ALLOCATABLE)


def wants(resource: Resource, action: Action, hint: Any = None) -> EventRegistration:
    """Return a registration."""
    return EventRegistration(ClusterEvent(resource, action), hint)


FIT = (
    wants(Resource.POD, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN),
    wants(Resource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE),
)
TAINTS = (
    wants(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT),
    wants(Resource.POD, Action.UPDATE_POD_TOLERATION),
)
DOOR = (wants(Resource.NODE, Action.ADD),)
"""Of a gate that holds pods with the label ``door`` while it is shut."""

REGISTRATIONS: Mapping[str, Sequence[EventRegistration]] = {
    "Fit": FIT,
    "Taints": TAINTS,
    "Silent": (),
    "Door": DOOR,
    "SchedulingGates": tuple(_GATES.events_to_register()),
}


class Stage:
    """The queue and all that it was given."""

    def __init__(
        self,
        registrations: Mapping[str, Sequence[EventRegistration]] = REGISTRATIONS,
        **options: Any,
    ) -> None:
        self.now_s = START_S
        self.door_is_shut = True
        self.gates_asked = 0
        self.incoming: list[tuple[str, str]] = []
        self.queue = make_queue(
            lambda: self.now_s,
            sort_key=_SORT.sort_key,
            pre_enqueue=self.pre_enqueue,
            registrations=lambda profile: registrations if profile == "berth" else {},
            on_incoming=lambda queue, event: self.incoming.append((queue, event)),
            **options,
        )

    def pre_enqueue(self, pod: Pod) -> Status:
        """Ask both gates."""
        self.gates_asked += 1
        status = _GATES.pre_enqueue(pod).by("SchedulingGates")
        if status.is_success and self.door_is_shut and "door" in pod.metadata.labels:
            return unschedulable("the door is shut").by("Door")
        return status

    def add(self, *pods: PodBuilder) -> None:
        """Let pods come, one second after the other."""
        for each in pods:
            self.queue.add(each.info())
            self.now_s += 1

    def update(self, before: PodBuilder, after: PodBuilder) -> None:
        """Let the watch tell of a change."""
        self.queue.update(before.build(), after.info())

    def pop(self) -> QueuedPod:
        """Take the pod that must be there."""
        queued = self.queue.pop(0)
        assert queued is not None
        return queued

    def pop_names(self) -> list[str]:
        """Take all that can be taken."""
        names = []
        while (queued := self.queue.pop(0)) is not None:
            names.append(queued.info.name)
        return names

    def refuse(self, queued: QueuedPod, *plugins: str, pending: tuple[str, ...] = ()) -> QueuedPod:
        """End an attempt with a "no"."""
        queued.unschedulable_plugins = set(plugins)
        queued.pending_plugins = set(pending)
        self.queue.add_unschedulable(queued)
        return queued

    def fail(self, queued: QueuedPod) -> QueuedPod:
        """End an attempt with an error of our own."""
        return self.refuse(queued)

    def refused(self, pod: PodBuilder, *plugins: str, pending: tuple[str, ...] = ()) -> QueuedPod:
        """Let a pod come, be tried and be refused."""
        self.add(pod)
        queued = self.pop()
        assert queued.info.uid == pod.build().metadata.uid
        return self.refuse(queued, *plugins, pending=pending)

    def state(self, pod: PodBuilder) -> QueueState:
        """Return where a pod is."""
        return self.queue.state_of(pod.build().metadata.uid)


def version(pod: PodBuilder, resource_version: int, **status: Any) -> PodInfo:
    """Return a pod with a resourceVersion, and a status if one is given."""
    made = pod.build()
    meta = replace(made.metadata, resource_version=str(resource_version))
    return PodInfo(replace(made, metadata=meta, status=replace(made.status, **status)))
