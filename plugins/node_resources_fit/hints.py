"""Which changes of pods and nodes may make room for a pod that did not fit.

Source: kube-scheduler 1.36, plugins/noderesources/fit.go (isSchedulableAfterPodEvent,
isSchedulableAfterNodeChange, haveAnyRequestedResourcesIncreased).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cache.node_info import NodeInfo
from cache.pod_info import PodInfo
from cache.resources import PODS, MalformedObjectError
from plugins.framework.cluster_events import Hint
from plugins.node_resources_fit.needs import filter_needs, find_shortfalls
from plugins.pod_memo import PodMemo

if TYPE_CHECKING:
    from cache.objects import Node, Pod
    from plugins.node_resources_fit.needs import IgnoredResources


_NODES_AT_A_TIME: Final = 2
"""An event is about a node before and after."""


class FitHints:
    """The hints of a NodeResourcesFit that ignores some resources.

    Whatever cannot be read is answered with ``QUEUE``: an attempt too many costs little, one
    too few keeps a pod waiting.

    # Differs: upstream's hint for nodes does not know of ignored resources, so that a pod which
    asks for one sleeps through a new node that would do.
    """

    def __init__(self, ignored: IgnoredResources) -> None:
        self._needs = PodMemo(lambda pod: filter_needs(PodInfo(pod), ignored))
        self._nodes: dict[int, tuple[Node, NodeInfo]] = {}

    def after_pod(self, pod: Pod, old: Any, new: Any) -> Hint:
        """Answer for a pod that was deleted (``new`` is None) or asks for less than before."""
        try:
            return _hint(self._pod_makes_room(pod, old, new))
        except MalformedObjectError:
            return Hint.QUEUE

    def _pod_makes_room(self, pod: Pod, old: Pod, new: Pod | None) -> bool:
        if new is None:
            return bool(old.spec.node_name or old.status.nominated_node_name)
        if new.metadata.uid == pod.metadata.uid:
            return True
        if not new.spec.node_name:
            return False
        before, after = PodInfo(old).requests, PodInfo(new).requests
        needs = self._needs.of(pod)
        return any(before.get(name, 0) > after.get(name, 0) for name, _ in needs)

    def after_node(self, pod: Pod, old: Any, new: Any) -> Hint:
        """Answer for a node that came (``old`` is None) or whose allocatable amounts changed."""
        try:
            return _hint(new is not None and self._node_has_room(pod, old, new))
        except MalformedObjectError:
            return Hint.QUEUE

    def _node_has_room(self, pod: Pod, old: Node | None, new: Node) -> bool:
        needs = self._needs.of(pod)
        empty = self._empty(new)
        if find_shortfalls(needs, empty):
            return False
        if old is None:
            return True
        before = self._empty(old)
        return any(
            empty.allocatable.get(name, 0) > before.allocatable.get(name, 0)
            for name in (PODS, *(name for name, _ in needs))
        )

    def _empty(self, node: Node) -> NodeInfo:
        """Return the node without pods; many pods are asked about one change of one node."""
        known = self._nodes.get(id(node))
        if known is not None and known[0] is node:
            return known[1]
        info = NodeInfo(node.metadata.name)
        info.set_node(node)
        if len(self._nodes) >= _NODES_AT_A_TIME:
            self._nodes.clear()
        self._nodes[id(node)] = node, info
        return info


def _hint(worth_it: bool) -> Hint:
    return Hint.QUEUE if worth_it else Hint.SKIP
