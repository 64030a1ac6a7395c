"""Cluster events: changes that may make a pending pod schedulable.

*Source*: k8s.io/kube-scheduler framework/types.go, ActionType, EventResource and ClusterEvent,
and pkg/scheduler/framework/events.go (1.36). The labels are the ``event`` label of
``scheduler_queue_incoming_pods_total``.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, IntFlag, StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from cache.value import Value

if TYPE_CHECKING:
    from cache.objects import Pod


class Resource(StrEnum):
    """The kind of object that changed. The values are kube-scheduler's spellings."""

    POD = "Pod"
    ASSIGNED_POD = "AssignedPod"
    UNSCHEDULED_POD = "UnschedulablePod"
    NODE = "Node"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    CSI_NODE = "storage.k8s.io/CSINode"
    CSI_DRIVER = "storage.k8s.io/CSIDriver"
    CSI_STORAGE_CAPACITY = "storage.k8s.io/CSIStorageCapacity"
    VOLUME_ATTACHMENT = "storage.k8s.io/VolumeAttachment"
    STORAGE_CLASS = "storage.k8s.io/StorageClass"
    NAMESPACE = "Namespace"
    RESOURCE_CLAIM = "resource.k8s.io/ResourceClaim"
    RESOURCE_SLICE = "resource.k8s.io/ResourceSlice"
    DEVICE_CLASS = "resource.k8s.io/DeviceClass"
    WILDCARD = "*"


class Action(IntFlag):
    """The action on an object; one update may combine several."""

    ADD = 1
    DELETE = 1 << 1
    UPDATE_NODE_ALLOCATABLE = 1 << 2
    UPDATE_NODE_LABEL = 1 << 3
    UPDATE_NODE_TAINT = 1 << 4
    UPDATE_NODE_CONDITION = 1 << 5
    UPDATE_NODE_ANNOTATION = 1 << 6
    UPDATE_NODE_DECLARED_FEATURE = 1 << 7
    UPDATE_POD_LABEL = 1 << 8
    UPDATE_POD_SCALE_DOWN = 1 << 9
    UPDATE_POD_TOLERATION = 1 << 10
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 1 << 11
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 1 << 12
    UPDATE_OTHER = 1 << 13
    UPDATE = (
        UPDATE_NODE_ALLOCATABLE
        | UPDATE_NODE_LABEL
        | UPDATE_NODE_TAINT
        | UPDATE_NODE_CONDITION
        | UPDATE_NODE_ANNOTATION
        | UPDATE_NODE_DECLARED_FEATURE
        | UPDATE_POD_LABEL
        | UPDATE_POD_SCALE_DOWN
        | UPDATE_POD_TOLERATION
        | UPDATE_POD_SCHEDULING_GATES_ELIMINATED
        | UPDATE_POD_GENERATED_RESOURCE_CLAIM
        | UPDATE_OTHER
    )
    ALL = ADD | DELETE | UPDATE


_UPDATES = (
    (Action.UPDATE_NODE_ALLOCATABLE, "UpdateNodeAllocatable"),
    (Action.UPDATE_NODE_LABEL, "UpdateNodeLabel"),
    (Action.UPDATE_NODE_TAINT, "UpdateNodeTaint"),
    (Action.UPDATE_NODE_CONDITION, "UpdateNodeCondition"),
    (Action.UPDATE_NODE_ANNOTATION, "UpdateNodeAnnotation"),
    (Action.UPDATE_NODE_DECLARED_FEATURE, "UpdateNodeDeclaredFeature"),
    (Action.UPDATE_POD_LABEL, "UpdatePodLabel"),
    (Action.UPDATE_POD_SCALE_DOWN, "UpdatePodScaleDown"),
    (Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, "UpdatePodSchedulingGatesEliminated"),
    (Action.UPDATE_POD_TOLERATION, "UpdatePodToleration"),
    (Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM, "UpdatePodGeneratedResourceClaim"),
    (Action.UPDATE_OTHER, "Update"),
)
"""Each way in which an object is updated, in the order in which kube-scheduler tells of them."""

_POD_RESOURCES = frozenset({Resource.POD, Resource.ASSIGNED_POD, Resource.UNSCHEDULED_POD})


class ClusterEvent(Value, frozen=True):
    """One change in the cluster, or one for which a plugin registers.

    Parameters
    ----------
    resource
        The kind of object.
    action
        What happened to it, as a set of flags.
    label
        The name of the event in metrics and logs, for example ``AssignedPodDelete``.
    """

    resource: Resource
    action: Action
    label: str = ""

    @property
    def is_wildcard(self) -> bool:
        """Whether the event concerns every pending pod, whatever rejected it."""
        return self.resource is Resource.WILDCARD and self.action == Action.ALL

    def matches(self, happened: ClusterEvent) -> bool:
        """Return whether this registration covers an event.

        An event that is about several actions at once, or about a change without a name of its
        own, is only for those who registered all of them.
        """
        if self.is_wildcard:
            return True
        same = self.resource in (happened.resource, Resource.WILDCARD) or (
            self.resource is Resource.POD and happened.resource in _POD_RESOURCES
        )
        return same and bool(happened.action) and happened.action in self.action


@cache
def update_events(resource: Resource, changed: Action) -> tuple[ClusterEvent, ...]:
    """Return one event for each property that an update changed.

    *Source*: pkg/scheduler/framework/events.go, NodeSchedulingPropertiesChange and
    PodSchedulingPropertiesChange (1.36).
    """
    return tuple(
        ClusterEvent(resource, action, f"{resource.value}{name}")
        for action, name in _UPDATES
        if action in changed
    )


class Hint(Enum):
    """A plugin's decision whether an event is worth another attempt for one pod."""

    QUEUE = "Queue"
    SKIP = "QueueSkip"


HintFunction: TypeAlias = Callable[["Pod", Any, Any], Hint]
"""``(pod, old object or None, new object or None) -> Hint``: must be quick and must not raise."""


class EventRegistration(Value, frozen=True):
    """An event that may make a pod schedulable which the plugin rejected, with its hint."""

    event: ClusterEvent
    hint: HintFunction | None = None

    @classmethod
    def on(
        cls, resource: Resource, action: Action, hint: HintFunction | None = None
    ) -> EventRegistration:
        """Return the registration for actions on objects of a kind."""
        return cls(ClusterEvent(resource, action), hint)


NODE_ADD = ClusterEvent(Resource.NODE, Action.ADD, "NodeAdd")
NODE_DELETE = ClusterEvent(Resource.NODE, Action.DELETE, "NodeDelete")
ASSIGNED_POD_ADD = ClusterEvent(Resource.ASSIGNED_POD, Action.ADD, "AssignedPodAdd")
ASSIGNED_POD_DELETE = ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, "AssignedPodDelete")
UNSCHEDULED_POD_ADD = ClusterEvent(Resource.UNSCHEDULED_POD, Action.ADD, "UnschedulablePodAdd")
UNSCHEDULED_POD_UPDATE = ClusterEvent(
    Resource.UNSCHEDULED_POD, Action.UPDATE, "UnschedulablePodUpdate"
)
SCHEDULE_ATTEMPT_FAILURE = ClusterEvent(
    Resource.UNSCHEDULED_POD, Action(0), "ScheduleAttemptFailure"
)
BACKOFF_COMPLETE = ClusterEvent(Resource.UNSCHEDULED_POD, Action(0), "BackoffComplete")
UNSCHEDULABLE_TIMEOUT = ClusterEvent(Resource.WILDCARD, Action.ALL, "UnschedulableTimeout")
FORCE_ACTIVATE = ClusterEvent(Resource.WILDCARD, Action.ALL, "ForceActivate")
POLICY_CHANGE = ClusterEvent(Resource.WILDCARD, Action.ALL, "PolicyChange")
"""Other plugins, or the same ones with other arguments, decide from now on. Berth's own event."""
ALL_EVENTS = ClusterEvent(Resource.WILDCARD, Action.ALL, "*")
