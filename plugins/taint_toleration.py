"""Keeps pods off nodes with taints that they do not tolerate, and away from soft ones.

*Source*: pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cache.taints import PREFER_NO_SCHEDULE, is_tolerated
from plugins import names
from plugins.framework.cluster_events import Action, EventRegistration, Hint, Resource
from plugins.framework.cycle_state import StateKey
from plugins.framework.interfaces import FilterPlugin, GuardPlugin, PreScorePlugin, ScorePlugin
from plugins.framework.normalize import default_normalize
from plugins.framework.queueing_hints import AFTER_OWN_CHANGE, for_pods_by
from plugins.framework.results import ALL_PASS, NodeVerdicts
from plugins.framework.status import SUCCESS, Status, unresolvable
from plugins.taint_tables import (
    MANY,
    Taints,
    TaintTables,
    Tolerated,
    Tolerations,
    prepared_tolerations,
    rejects,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    import msgspec

    from cache.columns import NodesView
    from cache.node_info import NodeInfo
    from cache.node_usage import NodeUsage
    from cache.objects import Node, Pod
    from cache.pod_info import PodInfo
    from plugins.framework.cycle_state import CycleState
    from plugins.framework.handle import Handle
    from plugins.framework.results import IntArray

REJECTED: Final = unresolvable("node(s) had untolerated taint(s)")

_SOFT: Final = StateKey[Tolerations]("TaintToleration.soft")
"""The pod's tolerations that can cover PreferNoSchedule."""

_PREPARED: Final = StateKey[Tolerated]("TaintToleration.prepared")
"""The taints that very many tolerations tolerate."""


class TaintToleration(FilterPlugin, GuardPlugin, PreScorePlugin, ScorePlugin):
    """Rejects nodes with an untolerated NoSchedule or NoExecute taint.

    Among the others, the fewer untolerated PreferNoSchedule taints a node has, the better.
    """

    name = names.TAINT_TOLERATION
    reads_pods = False
    judges_nodes_alone = True

    def __init__(self, args: msgspec.Struct | None, handle: Handle) -> None:
        super().__init__(args, handle)
        self._hard = TaintTables(rejects)
        self._soft = TaintTables(_count_soft)

    def filter(self, state: CycleState, info: PodInfo, nodes: NodesView) -> NodeVerdicts:
        """Judge all nodes of the view. *Cost*: one pass over the column of taint sets."""
        passed = self._hard.passed(nodes, info.pod.spec.tolerations)
        return ALL_PASS if passed is None else NodeVerdicts(passed, status=REJECTED)

    def filter_one(self, state: CycleState, info: PodInfo, node_info: NodeInfo) -> Status:
        """Judge one node."""
        tolerations: Tolerated = info.pod.spec.tolerations
        if len(info.pod.spec.tolerations) > MANY:
            prepared = state.get(_PREPARED)
            if prepared is None:
                prepared = prepared_tolerations(info.pod.spec.tolerations)
                state.write(_PREPARED, prepared)
            tolerations = prepared
        return REJECTED if rejects(_taints(node_info), tolerations) else SUCCESS

    def still_fits(self, info: PodInfo, usage: NodeUsage) -> Status:
        """Return a rejection if the node was tainted meanwhile."""
        node = usage.node
        if node is None or not node.spec.taints:
            return SUCCESS
        tolerations: Tolerated = info.pod.spec.tolerations
        if len(info.pod.spec.tolerations) > MANY:
            tolerations = prepared_tolerations(info.pod.spec.tolerations)
        return REJECTED if rejects(node.spec.taints, tolerations) else SUCCESS

    def pre_score(self, state: CycleState, info: PodInfo, nodes: NodesView) -> Status:
        """Store the tolerations that apply to soft taints. Never skips."""
        tolerations = info.pod.spec.tolerations
        soft = tuple(t for t in tolerations if t.effect in ("", PREFER_NO_SCHEDULE))
        state.write(_SOFT, soft)
        return SUCCESS

    def score(self, state: CycleState, info: PodInfo, nodes: NodesView) -> IntArray:
        """Return the number of untolerated PreferNoSchedule taints of each node."""
        return self._soft.counts(nodes, state.read(_SOFT))

    def score_one(self, state: CycleState, info: PodInfo, node_info: NodeInfo) -> int:
        """Return the number of untolerated PreferNoSchedule taints of one node."""
        return _count_soft(_taints(node_info), state.read(_SOFT))

    def normalize(self, state: CycleState, info: PodInfo, scores: IntArray) -> IntArray:
        """Return 100 for nodes without such taints and 0 for those with the most of them."""
        return default_normalize(scores, reverse=True)

    def signature(self, info: PodInfo) -> Hashable:
        """Return the tolerations."""
        return info.pod.spec.tolerations

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Return the events: a new node or its changed taints, and a new toleration of the pod."""
        return (
            EventRegistration.on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT, _AFTER_NODE),
            EventRegistration.on(Resource.POD, Action.UPDATE_POD_TOLERATION, AFTER_OWN_CHANGE),
        )


def _after_node(pod: Pod, old: Node | None, new: Node) -> Hint:
    """Return the hint for a node with new taints: Queue if they no longer reject the pod."""
    tolerations = pod.spec.tolerations
    rejected = old is None or rejects(old.spec.taints, tolerations)
    opened = rejected and not rejects(new.spec.taints, tolerations)
    return Hint.QUEUE if opened else Hint.SKIP


_AFTER_NODE: Final = for_pods_by(lambda pod: pod.spec.tolerations, _after_node)


def _taints(node_info: NodeInfo) -> Taints:
    return () if node_info.node is None else node_info.node.spec.taints


def _count_soft(taints: Taints, tolerations: Tolerated) -> int:
    return sum(
        taint.effect == PREFER_NO_SCHEDULE and not is_tolerated(taint, tolerations)
        for taint in taints
    )
