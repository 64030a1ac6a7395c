"""NodeAffinity: places pods on nodes that the pod or the administrator requires or prefers.

*Source*: pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from cache.byte_bounded import remembered
from cache.label_selectors import (
    NodeTermSelector,
    compile_node_selector,
    compile_node_selector_term,
)
from cache.resources import MalformedObjectError
from plugins import names
from plugins.framework.args import ArgsError
from plugins.framework.cluster_events import Action, EventRegistration, Resource
from plugins.framework.cycle_state import StateKey
from plugins.framework.interfaces import (
    FilterPlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
)
from plugins.framework.normalize import default_normalize
from plugins.framework.queueing_hints import GroupHint, Likeness, Question, Sample
from plugins.framework.results import (
    ALL_PASS,
    PROCEED,
    SKIP_FILTER,
    NodeVerdicts,
    PreFilterResult,
)
from plugins.framework.status import SKIP, SUCCESS, Status, unresolvable
from plugins.label_masks import weights_of_terms
from plugins.node_affinity_args import NodeAffinityArgs
from plugins.required_node_affinity import (
    MAX_COMPILED_BYTES,
    RequiredNodeAffinity,
    any_term_mask,
    names_demanded,
    required_node_affinity,
    required_node_selector,
    required_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    import msgspec
    import numpy.typing as npt

    from cache.columns import NodesView
    from cache.label_selectors import NodeSelectorMatcher
    from cache.node_info import NodeInfo
    from cache.objects import Node, PodSpec, PreferredSchedulingTerm
    from cache.pod_info import PodInfo
    from plugins.framework.cycle_state import CycleState
    from plugins.framework.handle import Handle
    from plugins.framework.results import IntArray

REJECTED_BY_POD: Final = unresolvable("node(s) didn't match Pod's node affinity/selector")
REJECTED_BY_ADDED: Final = unresolvable("node(s) didn't match scheduler-enforced node affinity")
_SOME: Final = 64
"""Preferences that are compiled between two checks of the budget."""

CONFLICT: Final = PreFilterResult(unresolvable("pod affinity terms conflict"))


class WeightedTerm(NamedTuple):
    """A compiled preference."""

    weight: int
    term: NodeTermSelector


_PREFERRED: Final = StateKey[tuple[WeightedTerm, ...]]("NodeAffinity.preferred")


class NodeAffinity(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Applies nodeSelector, node affinity and the affinity that the profile adds."""

    name = names.NODE_AFFINITY
    reads_pods = False
    judges_nodes_alone = True
    args_type = NodeAffinityArgs

    def __init__(self, args: msgspec.Struct | None, handle: Handle) -> None:
        super().__init__(args, handle)
        self._added_required: NodeSelectorMatcher | None = None
        self._added_preferred: tuple[WeightedTerm, ...] | None = None
        added = NodeAffinityArgs.checked(args).added_affinity
        if added is None:
            return
        required = added.required_during_scheduling_ignored_during_execution
        if required is not None:
            path = "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution"
            self._added_required = compile_node_selector(required, path)
            for error in self._added_required.errors:
                raise ArgsError(error.path, error.why)
        preferred = added.preferred_during_scheduling_ignored_during_execution
        if preferred:
            path = "addedAffinity.preferredDuringSchedulingIgnoredDuringExecution"
            for index, preference in enumerate(preferred):
                # Differs: kube-scheduler accepts a negative weight and fails on every pod later.
                if preference.weight < 0:
                    raise ArgsError(f"{path}[{index}].weight", "must not be negative")
            try:
                self._added_preferred = _compile_preferences(preferred, path)
            except MalformedObjectError as error:
                raise ArgsError(error.path, error.why) from error

    # --- filtering ----------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, info: PodInfo, nodes: NodesView) -> PreFilterResult:
        """Limit the search to the nodes that the pod's node affinity names.

        Returns
        -------
        Skip when neither the pod nor the profile has requirements; a rejection when each term
        of the affinity requires two names at once; else Success, with the names if every term
        requires one.
        """
        spec = info.pod.spec
        required = required_node_selector(spec)
        if required is None and not spec.node_selector and self._added_required is None:
            return SKIP_FILTER
        if required is None:
            return PROCEED
        demanded = names_demanded(required)
        if demanded is None:
            return PROCEED
        return PreFilterResult(node_names=demanded) if demanded else CONFLICT

    def filter(self, state: CycleState, info: PodInfo, nodes: NodesView) -> NodeVerdicts:
        """Judge all nodes of the view: first by the profile's requirements, then by the pod's."""
        by_pod = required_of(state, info).mask(nodes, state.budget)
        if self._added_required is None:
            return ALL_PASS if by_pod is None else NodeVerdicts(by_pod, status=REJECTED_BY_POD)
        by_added = any_term_mask(self._added_required, nodes)

        def detail() -> tuple[npt.NDArray[np.integer], Sequence[Status]]:
            return by_added.astype(np.intp), (REJECTED_BY_ADDED, REJECTED_BY_POD)

        return NodeVerdicts(by_added if by_pod is None else by_added & by_pod, detail=detail)

    def filter_one(self, state: CycleState, info: PodInfo, node_info: NodeInfo) -> Status:
        """Judge one node."""
        added = self._added_required
        if added is not None and not added.matches(node_info.labels, node_info.name):
            return REJECTED_BY_ADDED
        return SUCCESS if required_of(state, info).matches(node_info) else REJECTED_BY_POD

    # --- scoring ------------------------------------------------------------------------------

    def pre_score(self, state: CycleState, info: PodInfo, nodes: NodesView) -> Status:
        """Compile the pod's preferences; Skip when neither it nor the profile has any.

        Raises
        ------
        MalformedObjectError
            When a preference is malformed.
        """
        preferred = _preferred(info.pod.spec)
        if not preferred and self._added_preferred is None:
            return SKIP
        state.write(_PREFERRED, _compile_preferences(preferred, check=state.budget.glance))
        return SUCCESS

    def score(self, state: CycleState, info: PodInfo, nodes: NodesView) -> IntArray:
        """Return the sum of the weights of the preferences that each node satisfies."""
        return weights_of_terms(self._preferences(state, info), nodes, state.budget)

    def score_one(self, state: CycleState, info: PodInfo, node_info: NodeInfo) -> int:
        """Return the sum of the weights of the preferences that one node satisfies."""
        labels, name = node_info.labels, node_info.name
        preferences = self._preferences(state, info)
        return sum(weight for weight, term in preferences if term.matches(labels, name))

    def normalize(self, state: CycleState, info: PodInfo, scores: IntArray) -> IntArray:
        """Return 100 for the nodes that are preferred most, and the others in proportion."""
        return default_normalize(scores)

    def _preferences(self, state: CycleState, info: PodInfo) -> tuple[WeightedTerm, ...]:
        of_pod = state.get(_PREFERRED)
        if of_pod is None:
            # A profile may enable Score without PreScore.
            of_pod = _compile_preferences(_preferred(info.pod.spec))
        return of_pod if self._added_preferred is None else (*self._added_preferred, *of_pod)

    def signature(self, info: PodInfo) -> Hashable:
        """Return the node selector and the node affinity."""
        spec = info.pod.spec
        affinity = None if spec.affinity is None else spec.affinity.node_affinity
        return affinity, tuple(spec.node_selector.items()) if spec.node_selector else ()

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Return the events: a node that is new or has other labels."""
        return (
            EventRegistration.on(
                Resource.NODE,
                Action.ADD | Action.UPDATE_NODE_LABEL,
                GroupHint(_DEMANDS, self._after_node),
            ),
        )

    def _after_node(self, old: Node | None, new: Node) -> Question[Sample[RequiredNodeAffinity]]:
        """Return the hint for a new or relabelled node: Queue if the pod fits it only since then.

        # Differs: kube-scheduler's hint does not check the old node by the affinity that the
        profile adds. It skips a pod whose own requirements the node met before, even if the new
        label meets the added ones.
        """

        def answer(demands: Sample[RequiredNodeAffinity]) -> bool:
            suits = self._suits(demands.value, new)
            if suits and old is not None and self._suits(demands.value, old):
                return False
            return suits is not False

        return Question(answer)

    def _suits(self, required: RequiredNodeAffinity, node: Node) -> bool | None:
        """Return whether a node meets all requirements; None if a malformed term prevents it."""
        labels, name = node.metadata.labels, node.metadata.name
        if self._added_required is not None and not self._added_required.matches(labels, name):
            return False
        if not required.labels.items() <= labels.items():
            return False
        affinity = required.affinity
        if affinity is None or affinity.matches(labels, name):
            return True
        return None if affinity.errors else False


def _demands(info: PodInfo) -> Sample[RequiredNodeAffinity]:
    required = required_node_affinity(info.pod.spec)
    labels = frozenset(required.labels.items())
    return Sample((labels, required_node_selector(info.pod.spec)), required)


_DEMANDS: Final = Likeness(_demands)


def _preferred(spec: PodSpec) -> tuple[PreferredSchedulingTerm, ...]:
    if spec.affinity is None or spec.affinity.node_affinity is None:
        return ()
    return spec.affinity.node_affinity.preferred_during_scheduling_ignored_during_execution


@remembered(MAX_COMPILED_BYTES)
def _compile_preferences(
    preferred: tuple[PreferredSchedulingTerm, ...],
    path: str = "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution",
    *,
    check: Callable[[], None] | None = None,
) -> tuple[WeightedTerm, ...]:
    """Compile preferences, except those without a weight and those without requirements."""
    compiled = []
    for index, preference in enumerate(preferred):
        if check is not None and index % _SOME == _SOME - 1:
            check()
        if not preference.weight:
            continue
        where = f"{path}[{index}].preference"
        term = compile_node_selector_term(preference.preference, where, check=check)
        for error in term.errors:
            raise error
        if not term.empty:
            compiled.append(WeightedTerm(preference.weight, term))
    return tuple(compiled)
