"""Keeps pods off cordoned nodes.

*Source*: pkg/scheduler/framework/plugins/nodeunschedulable/node_unschedulable.go (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cache.objects import Taint
from cache.taints import NO_SCHEDULE, TAINT_NODE_UNSCHEDULABLE, tolerates
from plugins import names
from plugins.framework.cluster_events import Action, EventRegistration, Resource
from plugins.framework.interfaces import FilterPlugin, GuardPlugin
from plugins.framework.queueing_hints import for_everybody, for_the_pod_itself
from plugins.framework.results import ALL_PASS, NodeVerdicts
from plugins.framework.status import SUCCESS, Status, unresolvable

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from cache.columns import NodesView
    from cache.node_info import NodeInfo
    from cache.node_usage import NodeUsage
    from cache.objects import Node, Pod, Toleration
    from cache.pod_info import PodInfo
    from plugins.framework.cycle_state import CycleState

REJECTED: Final = unresolvable("node(s) were unschedulable")

_CORDON: Final = Taint(key=TAINT_NODE_UNSCHEDULABLE, effect=NO_SCHEDULE)
"""``spec.unschedulable`` counts as this taint, also before the node controller has set it."""


class NodeUnschedulable(FilterPlugin, GuardPlugin):
    """Rejects a node with ``spec.unschedulable`` unless the pod tolerates the cordon's taint."""

    name = names.NODE_UNSCHEDULABLE
    reads_pods = False
    judges_nodes_alone = True

    def filter(self, state: CycleState, info: PodInfo, nodes: NodesView) -> NodeVerdicts:
        """Judge all nodes of the view. *Cost*: one pass over a bool column."""
        cordoned = nodes.unschedulable
        if not cordoned.any() or _tolerates_cordon(info.pod.spec.tolerations):
            return ALL_PASS
        return NodeVerdicts(~cordoned, status=REJECTED)

    def filter_one(self, state: CycleState, info: PodInfo, node_info: NodeInfo) -> Status:
        """Judge one node."""
        node = node_info.node
        if node is None or not node.spec.unschedulable:
            return SUCCESS
        return SUCCESS if _tolerates_cordon(info.pod.spec.tolerations) else REJECTED

    def still_fits(self, info: PodInfo, usage: NodeUsage) -> Status:
        """Return a rejection if the node was cordoned meanwhile."""
        node = usage.node
        if node is None or not node.spec.unschedulable:
            return SUCCESS
        return SUCCESS if _tolerates_cordon(info.pod.spec.tolerations) else REJECTED

    def signature(self, info: PodInfo) -> Hashable:
        """Return the tolerations."""
        return info.pod.spec.tolerations

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Return the events: a new or uncordoned node, and a new toleration of the pod."""
        return (
            EventRegistration.on(
                Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT, for_everybody(_after_node)
            ),
            EventRegistration.on(
                Resource.POD, Action.UPDATE_POD_TOLERATION, for_the_pod_itself(_after_pod)
            ),
        )


def _after_node(old: Node | None, new: Node) -> bool:
    """Return the hint for a node: Queue if it was cordoned or did not exist, and is schedulable."""
    return not new.spec.unschedulable and (old is None or old.spec.unschedulable)


def _after_pod(pod: Pod, old: Any, new: Pod) -> bool:
    """Return the hint for a new toleration: Queue if the pod itself tolerates the cordon."""
    return _tolerates_cordon(new.spec.tolerations)


def _tolerates_cordon(tolerations: Sequence[Toleration]) -> bool:
    return any(tolerates(toleration, _CORDON) for toleration in tolerations)
