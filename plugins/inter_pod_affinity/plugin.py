"""InterPodAffinity: places pods together with, or apart from, other pods.

*Source*: kube-scheduler 1.36, pkg/scheduler/framework/plugins/interpodaffinity; for the arguments
k8s.io/kube-scheduler config/v1/types_pluginargs.go, InterPodAffinityArgs (0.36) and
pkg/scheduler/apis/config/{v1/defaults.go, validation/validation_pluginargs.go}.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from cache.affinity_terms import NO_POD_TERMS, PodTerms, pod_terms
from plugins import names
from plugins.framework.args import ArgsError, PluginArgs
from plugins.framework.cycle_state import StateKey
from plugins.framework.interfaces import (
    FilterPlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
)
from plugins.framework.results import PROCEED, SKIP_FILTER, NodeVerdicts, PreFilterResult
from plugins.framework.status import SKIP, SUCCESS, Status, failure, unresolvable
from plugins.inter_pod_affinity.filtering import AffinityCounts
from plugins.inter_pod_affinity.hints import AffinityHints
from plugins.inter_pod_affinity.scoring import DomainScores, domain_scores, normalized

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cache.columns import NodesView
    from cache.node_info import NodeInfo
    from cache.objects import PodAffinity
    from cache.pod_info import PodInfo
    from plugins.framework.cluster_events import EventRegistration
    from plugins.framework.cycle_state import CycleState
    from plugins.framework.handle import Handle
    from plugins.framework.results import IntArray

_COUNTS: Final = StateKey[AffinityCounts]("InterPodAffinity.counts", AffinityCounts.copy)
_SCORES: Final = StateKey[DomainScores]("InterPodAffinity.scores")
_TERMS: Final = StateKey[PodTerms]("InterPodAffinity.terms")

MAX_HARD_WEIGHT: Final = 100


class InterPodAffinityArgs(PluginArgs, frozen=True):
    """The weight of the terms of existing pods in a score.

    Parameters
    ----------
    hard_pod_affinity_weight
        The weight of a required affinity term of an existing pod, 0..100; 0 ignores such terms.
    ignore_preferred_terms_of_existing_pods
        Whether a pod without preferences of its own is not scored at all.
    """

    hard_pod_affinity_weight: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)] = 1
    ignore_preferred_terms_of_existing_pods: bool = False

    def problems(self) -> Iterator[ArgsError]:
        """Yield the errors in the arguments."""
        weight = self.hard_pod_affinity_weight
        if not 0 <= weight <= MAX_HARD_WEIGHT:
            yield ArgsError("hardPodAffinityWeight", f"must be from 0 to 100, not {weight}")


class InterPodAffinity(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Rejects nodes that a required term of the pod, or of an existing pod, excludes.

    Of the other nodes it prefers those that meet the preferences of both, and those with pods
    that have a required affinity to the pod.
    """

    name = names.INTER_POD_AFFINITY
    reads_pods = False
    args_type = InterPodAffinityArgs

    def __init__(self, args: msgspec.Struct | None, handle: Handle) -> None:
        super().__init__(args, handle)
        checked = InterPodAffinityArgs.checked(args)
        self._hard_weight = checked.hard_pod_affinity_weight
        self._ignores_existing = checked.ignore_preferred_terms_of_existing_pods
        self._hints = AffinityHints(handle)

    # --- filtering ----------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, info: PodInfo, nodes: NodesView) -> PreFilterResult:
        """Count, by domain, the pods that the pod's terms select, and the terms that select it.

        Returns
        -------
        Skip when the pod has no required term and no existing pod excludes it.

        *Cost*: see :meth:`AffinityCounts.count`.
        """
        terms = pod_terms(info.pod, state.budget.glance)
        if terms is not NO_POD_TERMS:
            state.write(_TERMS, terms)
        if terms.errors:
            return PreFilterResult(unresolvable(f"parsing pod: {terms.errors[0]}"))
        if terms is NO_POD_TERMS and not nodes.columns.terms.has_terms:
            return SKIP_FILTER
        namespaces = self.handle.namespaces
        counts = AffinityCounts(info, terms, namespaces.labels_of(info.namespace))
        counts.count(nodes.columns, namespaces, state.budget)
        if counts.is_idle:
            return SKIP_FILTER
        state.write(_COUNTS, counts)
        return PROCEED

    def add_pod(
        self, state: CycleState, info: PodInfo, added: PodInfo, node_info: NodeInfo
    ) -> Status:
        """Add a pod that a what-if places on a node."""
        state.read(_COUNTS).change(added, node_info.labels, 1)
        return SUCCESS

    def remove_pod(
        self, state: CycleState, info: PodInfo, removed: PodInfo, node_info: NodeInfo
    ) -> Status:
        """Subtract a pod that a what-if removes from a node."""
        state.read(_COUNTS).change(removed, node_info.labels, -1)
        return SUCCESS

    def is_concerned_by(self, state: CycleState, info: PodInfo, other: PodInfo) -> bool:
        """Return whether any term of one pod selects the other pod."""
        return state.read(_COUNTS).is_concerned_by(other)

    def filter(self, state: CycleState, info: PodInfo, nodes: NodesView) -> NodeVerdicts:
        """Judge all nodes of the view: affinity, anti-affinity, then that of other pods."""
        return state.read(_COUNTS).verdicts(nodes)

    def filter_one(self, state: CycleState, info: PodInfo, node_info: NodeInfo) -> Status:
        """Judge one node."""
        return state.read(_COUNTS).verdict(node_info)

    # --- scoring ------------------------------------------------------------------------------

    def pre_score(self, state: CycleState, info: PodInfo, nodes: NodesView) -> Status:
        """Compute the score of every domain, including those without feasible nodes.

        Returns
        -------
        Skip when no preference applies to the pod, neither its own nor another pod's.
        """
        affinity = info.pod.spec.affinity
        has_own = affinity is not None and (
            _prefers(affinity.pod_affinity) or _prefers(affinity.pod_anti_affinity)
        )
        if not has_own and (self._ignores_existing or not nodes.columns.terms.has_terms):
            return SKIP
        terms = NO_POD_TERMS
        if has_own:
            terms = state.get(_TERMS) or pod_terms(info.pod, state.budget.glance)
        if terms.errors:
            return failure(terms.errors[0], "failed to parse pod")
        scores = domain_scores(
            info, terms, nodes.columns, self.handle.namespaces, self._hard_weight, state.budget
        )
        if scores is None:
            return SKIP
        state.write(_SCORES, scores)
        return SUCCESS

    def score(self, state: CycleState, info: PodInfo, nodes: NodesView) -> IntArray:
        """Return the sum of weights of each node's domains; negative where it is avoided."""
        return state.read(_SCORES).at(nodes)

    def score_one(self, state: CycleState, info: PodInfo, node_info: NodeInfo) -> int:
        """Return the sum of weights of one node's domains."""
        return state.read(_SCORES).of(node_info)

    def normalize(self, state: CycleState, info: PodInfo, scores: IntArray) -> IntArray:
        """Stretch the scores: the lowest becomes 0, the highest 100."""
        return normalized(scores)

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Return the events: pods added, deleted or relabelled; nodes added or relabelled."""
        return self._hints.registrations()


def _prefers(affinity: PodAffinity | None) -> bool:
    return affinity is not None and bool(
        affinity.preferred_during_scheduling_ignored_during_execution
    )
