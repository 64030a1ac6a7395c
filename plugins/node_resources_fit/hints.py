"""Which changes of pods and nodes may make room for a pod that did not fit.

Source: kube-scheduler 1.36, plugins/noderesources/fit.go (isSchedulableAfterPodEvent,
isSchedulableAfterNodeChange, haveAnyRequestedResourcesIncreased).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cache.node_info import NodeInfo
from cache.pod_info import PodInfo
from cache.resources import PODS, MalformedObjectError
from plugins.framework.cluster_events import Action, ClusterEvent, EventRegistration, Resource
from plugins.framework.queueing_hints import (
    NO,
    YES,
    GroupHint,
    Likeness,
    Question,
    for_the_pod_itself,
)
from plugins.node_resources_fit.needs import filter_needs, find_shortfalls

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cache.objects import Node, Pod
    from plugins.node_resources_fit.needs import IgnoredResources, Needs


class FitHints:
    """The hints of a NodeResourcesFit that ignores some resources.

    Whatever cannot be read is answered with yes: an attempt too many costs little, one too few
    keeps a pod waiting.

    # Differs: upstream's hint for nodes does not know of ignored resources, so that a pod which
    asks for one sleeps through a new node that would do.
    """

    def __init__(self, ignored: IgnoredResources) -> None:
        self._needs: Likeness[Needs] = Likeness(
            lambda info: filter_needs(info, ignored), lambda needs: (name for name, _ in needs)
        )

    def registrations(self) -> Sequence[EventRegistration]:
        """Return: pods that go or shrink, nodes that come or get more to allocate."""
        pods = ClusterEvent(Resource.POD, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN)
        own = ClusterEvent(Resource.POD, Action.UPDATE_POD_SCALE_DOWN)
        nodes = ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE)
        return (
            EventRegistration(pods, GroupHint(self._needs, _about_pod)),
            EventRegistration(own, for_the_pod_itself(lambda pod, old, new: True)),
            EventRegistration(nodes, GroupHint(self._needs, _about_node)),
        )


def _about_pod(old: Pod, new: Pod | None) -> Question[Needs]:
    """Ask about a pod that was deleted (``new`` is None) or asks for less than before."""
    if new is None:
        return YES if old.spec.node_name or old.status.nominated_node_name else NO
    if not new.spec.node_name:
        return NO
    try:
        shrunk = _grown(PodInfo(new).requests, PodInfo(old).requests)
    except MalformedObjectError:
        return YES
    return Question(lambda needs: any(name in shrunk for name, _ in needs), shrunk)


def _about_node(old: Node | None, new: Node | None) -> Question[Needs]:
    """Ask about a node that came (``old`` is None) or whose allocatable amounts changed."""
    if new is None:
        return NO
    try:
        empty = _empty(new)
        grown = None if old is None else _grown(_empty(old).allocatable, empty.allocatable)
    except MalformedObjectError:
        return YES
    if grown is None or PODS in grown:
        return Question(lambda needs: not find_shortfalls(needs, empty))
    return Question(
        lambda needs: any(name in grown for name, _ in needs) and not find_shortfalls(needs, empty),
        grown,
    )


def _grown(before: Mapping[str, int], after: Mapping[str, int]) -> frozenset[str]:
    """Return the resources of which there is more than before."""
    return frozenset(name for name, amount in after.items() if amount > before.get(name, 0))


def _empty(node: Node) -> NodeInfo:
    """Return the node without pods."""
    info = NodeInfo(node.metadata.name)
    info.set_node(node)
    return info
