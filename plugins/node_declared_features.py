"""Keeps a pod off nodes that do not declare a feature which the pod needs.

The features that a pod needs are inferred from its spec; those of a node are written by its
kubelet into ``status.declaredFeatures``. A node that declares no feature lacks all of them.

*Source*: pkg/scheduler/framework/plugins/nodedeclaredfeatures/nodedeclaredfeatures.go (1.36) and
k8s.io/component-helpers nodedeclaredfeatures/features (0.36). Of the features there only these
two are ever needed to place a pod; the others matter when a pod is changed in place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cache.columns import ColumnSpec
from plugins import names
from plugins.framework.cluster_events import Action, EventRegistration, Resource
from plugins.framework.interfaces import FilterPlugin, PreFilterPlugin
from plugins.framework.queueing_hints import for_everybody, for_the_pod_itself
from plugins.framework.results import (
    ALL_PASS,
    PROCEED,
    SKIP_FILTER,
    NodeVerdicts,
    PreFilterResult,
)
from plugins.framework.status import SUCCESS, Status, unresolvable

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from cache.columns import NodesView
    from cache.node_info import NodeInfo
    from cache.objects import Node, Pod
    from cache.pod_info import PodInfo
    from plugins.framework.cycle_state import CycleState

REJECTED: Final = unresolvable("node(s) didn't match Pod's required features")

RESTART_ALL_CONTAINERS: Final = "RestartAllContainersOnContainerExits"
"""Needed by a pod of which a container's exit may restart all containers."""

USER_NAMESPACES_HOST_NETWORK: Final = "UserNamespacesHostNetworkSupport"
"""Needed by a pod on the host's network that has a user namespace of its own."""

_BITS: Final = {RESTART_ALL_CONTAINERS: 1, USER_NAMESPACES_HOST_NETWORK: 2}

_RESTART_ALL_ACTION: Final = "RestartAllContainers"


class NodeDeclaredFeatures(PreFilterPlugin, FilterPlugin):
    """Rejects nodes that lack a feature which the pod's spec implies."""

    name = names.NODE_DECLARED_FEATURES
    reads_pods = False
    judges_nodes_alone = True

    def pre_filter(self, state: CycleState, info: PodInfo, nodes: NodesView) -> PreFilterResult:
        """Return Skip for a pod that needs no feature, as almost all pods."""
        return PROCEED if _needed(info.pod) else SKIP_FILTER

    def filter(self, state: CycleState, info: PodInfo, nodes: NodesView) -> NodeVerdicts:
        """Judge all nodes of the view. *Cost*: one pass over an integer column."""
        needed = _needed(info.pod)
        if not needed:
            return ALL_PASS
        return NodeVerdicts((nodes.derived(_DECLARED) & needed) == needed, status=REJECTED)

    def filter_one(self, state: CycleState, info: PodInfo, node_info: NodeInfo) -> Status:
        """Judge one node."""
        needed = _needed(info.pod)
        return SUCCESS if _declared(node_info) & needed == needed else REJECTED

    def signature(self, info: PodInfo) -> Hashable:
        """Return the features that the pod needs."""
        return _needed(info.pod)

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Return the events: a new node or its changed features, and changes of the pod itself."""
        return (
            EventRegistration.on(
                Resource.NODE,
                Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE,
                for_everybody(_after_node),
            ),
            EventRegistration.on(Resource.POD, Action.UPDATE, for_the_pod_itself(_after_pod)),
        )


def _needed(pod: Pod) -> int:
    """Return the features that a pod needs, as bits."""
    spec, needed = pod.spec, 0
    for containers in (spec.containers, spec.init_containers):
        for container in containers:
            for rule in container.restart_policy_rules:
                if rule.action == _RESTART_ALL_ACTION:
                    needed |= _BITS[RESTART_ALL_CONTAINERS]
    if spec.host_network and spec.host_users is False:
        needed |= _BITS[USER_NAMESPACES_HOST_NETWORK]
    return needed


def _declared(node_info: NodeInfo) -> int:
    """Return the features that a node declares, as bits."""
    bits = 0
    if node_info.node is not None:
        for feature in node_info.node.status.declared_features:
            bits |= _BITS.get(feature, 0)
    return bits


_DECLARED: Final = ColumnSpec("declared-features", _declared)


def _after_node(old: Node | None, new: Node | None) -> bool:
    return (
        old is None or new is None or (old.status.declared_features != new.status.declared_features)
    )


def _after_pod(pod: Pod, old: Pod | None, new: Pod) -> bool:
    """Return the hint for a changed pod: Queue if it is the pod itself and its needs changed."""
    return old is None or _needed(old) != _needed(new)
