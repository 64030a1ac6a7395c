"""Queueing hints of NodeResourcesFit: changes that may free the resources that a pod lacked.

*Source*: kube-scheduler 1.36, plugins/noderesources/fit.go (isSchedulableAfterPodEvent,
isSchedulableAfterNodeChange, haveAnyRequestedResourcesIncreased).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cache.device_classes import IMPLICIT_PREFIX, may_be_devices
from cache.node_info import NodeInfo
from cache.pod_info import PodInfo
from cache.resources import PODS, MalformedObjectError
from plugins.framework.cluster_events import Action, EventRegistration, Resource
from plugins.framework.queueing_hints import (
    AFTER_OWN_CHANGE,
    NO,
    YES,
    GroupHint,
    Likeness,
    Question,
)
from plugins.node_resources_fit.needs import device_resources, filter_needs, find_shortfalls

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cache.device_objects import DeviceClass
    from cache.objects import Node, Pod
    from plugins.framework.handle import Handle
    from plugins.node_resources_fit.needs import IgnoredResources, Needs


class Wanted(NamedTuple):
    """The needs of a waiting pod, and the priority below which it may preempt."""

    needs: Needs
    priority: int


class FitHints:
    """The hints of a NodeResourcesFit that ignores some resources.

    Objects that cannot be read give Queue: an unnecessary attempt costs little, a missing one
    keeps a pod waiting.

    # Differs: upstream's hint for nodes does not consider ignored resources, so that a pod which
    requests one is not woken by a new node that fits. And upstream wakes all pods for any deleted
    pod, and for any node that gets more of what a pod requests. Here the free resources of that
    node decide: a pod is woken if it would fit there without all pods of lower priority, which is
    the most that preemption can do. Each change is judged by the node as it is at that time, so
    that several small ones add up.

    Parameters
    ----------
    ignored
        The resources that the filter does not check.
    handle
        Gives access to the nodes of the cache; it is not used before the first event.
    """

    def __init__(self, ignored: IgnoredResources, handle: Handle) -> None:
        self._handle = handle
        self._wanted: Likeness[Wanted] = Likeness(
            lambda info: Wanted(filter_needs(info, ignored), info.priority),
            lambda wanted: (name for name, _ in wanted.needs),
        )

    def registrations(self) -> Sequence[EventRegistration]:
        """Return the events: pods deleted or scaled down, nodes added or with more allocatable."""
        return (
            EventRegistration.on(
                Resource.POD,
                Action.DELETE | Action.UPDATE_POD_SCALE_DOWN,
                GroupHint(self._wanted, self._about_pod),
            ),
            EventRegistration.on(Resource.POD, Action.UPDATE_POD_SCALE_DOWN, AFTER_OWN_CHANGE),
            EventRegistration.on(
                Resource.NODE,
                Action.ADD | Action.UPDATE_NODE_ALLOCATABLE,
                GroupHint(self._wanted, self._about_node),
            ),
            EventRegistration.on(
                Resource.DEVICE_CLASS,
                Action.ADD | Action.UPDATE,
                GroupHint(self._wanted, _about_class),
            ),
        )

    def _about_pod(self, old: Pod, new: Pod | None) -> Question[Wanted]:
        """Return the hint for a pod that was deleted (``new`` is None) or scaled down."""
        if new is None:
            node_name = old.spec.node_name or old.status.nominated_node_name
            return Question(self._room_on(node_name)) if node_name else NO
        if not new.spec.node_name:
            return NO
        try:
            shrunk = _grown(PodInfo(new).requests, PodInfo(old).requests)
        except MalformedObjectError:
            return YES
        has_room = self._room_on(new.spec.node_name)
        return Question(
            lambda wanted: any(name in shrunk for name, _ in wanted.needs) and has_room(wanted),
            shrunk,
        )

    def _about_node(self, old: Node | None, new: Node | None) -> Question[Wanted]:
        """Return the hint for an added node (``old`` is None) or changed allocatable amounts."""
        if new is None:
            return NO
        try:
            empty = _empty(new)
            before = None if old is None else _empty(old).allocatable
        except MalformedObjectError:
            return YES
        if before is None:
            return Question(lambda wanted: not self._lacks(wanted, empty))
        has_room = self._room_on(new.metadata.name)
        grown = _grown(before, empty.allocatable)
        # Devices may provide what the node reports no longer.
        gone = (name for name in before if may_be_devices(name) and not empty.allocatable.get(name))
        changed = grown.union(gone)
        more_pods = PODS in grown

        def helps(wanted: Wanted) -> bool:
            may_help = more_pods or any(name in changed for name, _ in wanted.needs)
            return may_help and not self._lacks(wanted, empty) and has_room(wanted)

        return Question(helps, None if more_pods else changed)

    def _room_on(self, node_name: str) -> Callable[[Wanted], bool]:
        """Return a function that says whether a pod fits on a node, with preemption if needed."""
        info = self._handle.cached_node(node_name)
        if info is None:
            return lambda wanted: True
        without: dict[int, NodeInfo] = {}

        def has_room(wanted: Wanted) -> bool:
            if not self._lacks(wanted, info):
                return True
            rest = without.get(wanted.priority)
            if rest is None:
                rest = without[wanted.priority] = _without_lower(info, wanted.priority)
            return rest is not info and not self._lacks(wanted, rest)

        return has_room

    def _lacks(self, wanted: Wanted, node_info: NodeInfo) -> bool:
        """Return whether a pod does not fit; what devices provide now is not looked at."""
        devices: frozenset[str] = frozenset()
        if any(may_be_devices(name) for name, _ in wanted.needs):
            devices = device_resources(wanted.needs, self._handle.devices.classes)
        return bool(find_shortfalls(wanted.needs, node_info, devices))


def _about_class(old: DeviceClass | None, new: DeviceClass | None) -> Question[Wanted]:
    """Return the question whether a pod requests a resource that a DeviceClass provides now.

    The name of a class provides a resource from the start; the other may change.
    """
    if new is None:
        return NO
    resource = new.spec.extended_resource_name
    provided = {resource} if resource else set()
    if old is None:
        provided.add(IMPLICIT_PREFIX + new.metadata.name)
    elif old.spec.extended_resource_name == resource:
        return NO
    return Question(lambda wanted: any(name in provided for name, _ in wanted.needs), provided)


def _without_lower(info: NodeInfo, priority: int) -> NodeInfo:
    """Return a node without its pods of lower priority; the node itself if there are none.

    *Cost*: the number of its pods.
    """
    lower = [uid for uid, each in info.pods.items() if each.priority < priority]
    if not lower:
        return info
    rest = info.clone()
    for uid in lower:
        rest.remove_pod(uid)
    return rest


def _grown(before: Mapping[str, int], after: Mapping[str, int]) -> frozenset[str]:
    """Return the resources whose amount has grown."""
    return frozenset(name for name, amount in after.items() if amount > before.get(name, 0))


def _empty(node: Node) -> NodeInfo:
    """Return the node without pods."""
    info = NodeInfo(node.metadata.name)
    info.set_node(node)
    return info
