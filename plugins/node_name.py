"""Restricts a pod that names its node to that node.

A pod with ``spec.nodeName`` normally never reaches a scheduler; the rule matters for what-if
questions about pods that are placed already.

*Source*: pkg/scheduler/framework/plugins/nodename/node_name.go (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from plugins import names
from plugins.framework.cluster_events import Action, EventRegistration, Resource
from plugins.framework.interfaces import FilterPlugin
from plugins.framework.results import ALL_PASS, NodeVerdicts
from plugins.framework.status import SUCCESS, Status, unresolvable

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from cache.columns import NodesView
    from cache.node_info import NodeInfo
    from cache.pod_info import PodInfo
    from plugins.framework.cycle_state import CycleState

REJECTED: Final = unresolvable("node(s) didn't match the requested node name")


class NodeName(FilterPlugin):
    """Rejects every node but the one in ``spec.nodeName``, if the pod names one."""

    name = names.NODE_NAME
    reads_pods = False
    judges_nodes_alone = True

    def filter(self, state: CycleState, info: PodInfo, nodes: NodesView) -> NodeVerdicts:
        """Judge all nodes of the view."""
        wanted = info.node_name
        if not wanted:
            return ALL_PASS
        passed = np.zeros(len(nodes), dtype=np.bool_)
        row = nodes.row(wanted)
        if row is not None:
            passed[row] = True
        return NodeVerdicts(passed, status=REJECTED)

    def filter_one(self, state: CycleState, info: PodInfo, node_info: NodeInfo) -> Status:
        """Judge one node."""
        return SUCCESS if info.node_name in ("", node_info.name) else REJECTED

    def signature(self, info: PodInfo) -> Hashable:
        """Return the node that the pod names."""
        return info.node_name

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Return the only event that can help: a new node."""
        return (EventRegistration.on(Resource.NODE, Action.ADD),)
