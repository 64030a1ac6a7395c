"""PodTopologySpread: keeps matching pods evenly spread over the domains of a topology.

*Source*: kube-scheduler 1.36, pkg/scheduler/framework/plugins/podtopologyspread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plugins import names
from plugins.framework.cycle_state import StateKey
from plugins.framework.interfaces import (
    FilterPlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
)
from plugins.framework.results import PROCEED, SKIP_FILTER, NodeVerdicts, PreFilterResult
from plugins.framework.status import SKIP, SUCCESS, Status
from plugins.pod_topology_spread.args import PodTopologySpreadArgs
from plugins.pod_topology_spread.constraints import ConstraintSource
from plugins.pod_topology_spread.filtering import SpreadCounts, count_spread
from plugins.pod_topology_spread.hints import SpreadHints
from plugins.pod_topology_spread.scoring import SpreadScores, crowded_domains
from plugins.required_node_affinity import required_of
from plugins.taint_tables import TaintTables, rejects

if TYPE_CHECKING:
    from collections.abc import Sequence

    import msgspec

    from cache.columns import NodesView
    from cache.node_info import NodeInfo
    from cache.pod_info import PodInfo
    from plugins.framework.cluster_events import EventRegistration
    from plugins.framework.cycle_state import CycleState
    from plugins.framework.handle import Handle
    from plugins.framework.results import IntArray

_COUNTS: Final = StateKey[SpreadCounts]("PodTopologySpread.counts", SpreadCounts.copy)
_SCORES: Final = StateKey[SpreadScores]("PodTopologySpread.scores")


class PodTopologySpread(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Rejects nodes in domains that would have too many matching pods; prefers emptier ones.

    Pods that are being deleted do not count. Pods without constraints of their own get those
    of the configuration, if a Service or a controller says which pods belong together.
    """

    name = names.POD_TOPOLOGY_SPREAD
    reads_pods = False
    args_type = PodTopologySpreadArgs

    def __init__(self, args: msgspec.Struct | None, handle: Handle) -> None:
        super().__init__(args, handle)
        self._source = ConstraintSource(PodTopologySpreadArgs.checked(args).defaulted())
        self._taint_tables = TaintTables(rejects)
        self._hints = SpreadHints(self._source, handle)

    # --- filtering ----------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, info: PodInfo, nodes: NodesView) -> PreFilterResult:
        """Count the pods that the hard constraints spread, by domain.

        Returns
        -------
        Skip when there are no hard constraints.

        Raises
        ------
        MalformedObjectError
            When a label selector of the pod cannot be one.
        """
        constraints = self._source.hard(info.pod, self.handle.workloads, state.budget)
        if not constraints:
            return SKIP_FILTER
        affinity = required_of(state, info)
        counts = count_spread(
            info, affinity, constraints, nodes.columns, self._taint_tables, state.budget
        )
        state.write(_COUNTS, counts)
        return PROCEED

    def add_pod(
        self, state: CycleState, info: PodInfo, added: PodInfo, node_info: NodeInfo
    ) -> Status:
        """Add a pod that a what-if places on a node of the snapshot."""
        state.read(_COUNTS).change(added, node_info, 1)
        return SUCCESS

    def remove_pod(
        self, state: CycleState, info: PodInfo, removed: PodInfo, node_info: NodeInfo
    ) -> Status:
        """Subtract a pod that a what-if removes from a node of the snapshot."""
        state.read(_COUNTS).change(removed, node_info, -1)
        return SUCCESS

    def is_concerned_by(self, state: CycleState, info: PodInfo, other: PodInfo) -> bool:
        """Return whether a constraint counts the other pod."""
        return state.read(_COUNTS).is_concerned_by(other)

    def filter(self, state: CycleState, info: PodInfo, nodes: NodesView) -> NodeVerdicts:
        """Judge all nodes of the view, each by the first constraint that it does not satisfy."""
        return state.read(_COUNTS).verdicts(nodes)

    def filter_one(self, state: CycleState, info: PodInfo, node_info: NodeInfo) -> Status:
        """Judge one node."""
        return state.read(_COUNTS).verdict(node_info)

    # --- scoring ------------------------------------------------------------------------------

    def pre_score(self, state: CycleState, info: PodInfo, nodes: NodesView) -> Status:
        """Count the pods that the soft constraints spread, in the domains of feasible nodes.

        Returns
        -------
        Skip when there are no nodes at all, or no soft constraints.

        Raises
        ------
        MalformedObjectError
            When a label selector of the pod cannot be one.
        """
        if not len(nodes.columns):
            return SKIP
        constraints = self._source.soft(info.pod, self.handle.workloads, state.budget)
        if not constraints:
            return SKIP
        scores = crowded_domains(
            info,
            constraints,
            nodes,
            self._taint_tables,
            requires_all=self._source.requires_all_topologies(info.pod),
            budget=state.budget,
        )
        state.write(_SCORES, scores)
        return SUCCESS

    def score(self, state: CycleState, info: PodInfo, nodes: NodesView) -> IntArray:
        """Return how crowded each node's domains are; 0 for nodes that lack a label."""
        return state.read(_SCORES).at(nodes)

    def score_one(self, state: CycleState, info: PodInfo, node_info: NodeInfo) -> int:
        """Return how crowded one node's domains are."""
        return state.read(_SCORES).of(node_info)

    def normalize(self, state: CycleState, info: PodInfo, scores: IntArray) -> IntArray:
        """Invert the scores; nodes that lack a label get 0."""
        return state.read(_SCORES).normalized(scores)

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Return the events: changes of pods, their labels and tolerations; any change of nodes."""
        return self._hints.registrations()
