"""The members for which it matters in which order they are placed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cache.affinity_terms import compile_selector_once, pod_terms
from cache.label_selectors import NOTHING
from cache.resources import MalformedObjectError
from plugins.framework.cycle_state import CycleState
from plugins.names import INTER_POD_AFFINITY
from scheduler.pod_groups.counting import is_counting, is_fixed
from scheduler.runtime.judgement import pre_filter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cache.pod_info import PodInfo
    from scheduler.pod_groups.shapes import Likeness, Shapes
    from scheduler.pod_groups.trial_placements import TrialPlacements

_HARD: Final = "DoNotSchedule"


def tied_members(
    trial: TrialPlacements, shapes: Shapes, members: Sequence[PodInfo]
) -> set[Likeness]:
    """Return the members that are to be tried in any order.

    A member is not tied when all that its filters look at is fixed, room, or who keeps whom off a
    node, and when no other member looks for it: whatever order places all, it may as well come
    last.

    *Cost*: one run of the PreFilters for each distinct member.
    """
    distinct = {shapes.likeness(info): info for info in members}
    tied = {likeness for likeness, info in distinct.items() if _is_looking(trial, info)}
    wanted = [_looks_for(distinct[likeness]) for likeness in tied]
    for likeness, info in distinct.items():
        if likeness not in tied and any(looks_for(info) for looks_for in wanted):
            tied.add(likeness)
    return tied


def keys_apart(members: Sequence[PodInfo]) -> tuple[str, ...]:
    """Return the topology keys of which each domain takes one of these members at most.

    Each of them keeps off all of them.

    *Cost*: one comparison for each member and each required anti-affinity term of the first one.
    """
    first = members[0]
    return tuple(
        {
            term.topology_key: None
            for term in pod_terms(first.pod).required_anti_affinity
            if first.namespace in term.namespaces
            and all(term.selector.matches(info.labels) for info in members)
        }
    )


def keys_together(members: Sequence[PodInfo]) -> tuple[str, ...]:
    """Return the topology keys of the required affinity of members to each other.

    Members that are alike are given once.
    """
    found: dict[str, None] = {}
    for info in members:
        for term in pod_terms(info.pod).required_affinity:
            if any(term.matches(other.namespace, other.labels, {}) for other in members):
                found[term.topology_key] = None
    return tuple(found)


def _is_looking(trial: TrialPlacements, info: PodInfo) -> bool:
    """Return whether a filter looks at more than what does not depend on the order."""
    framework, nodes = trial.framework, trial.cycle.snapshot.all_nodes()
    state = CycleState(trial.budget)
    if not pre_filter(framework, state, info, nodes).status.is_success:
        return True
    for plugin in framework.judges.filters:
        if plugin.name in state.skip_filter or is_counting(plugin) or is_fixed(plugin, info):
            continue
        if plugin.name != INTER_POD_AFFINITY or pod_terms(info.pod).required_affinity:
            return True
    return False


def _looks_for(info: PodInfo) -> Callable[[PodInfo], bool]:
    """Return whether affinity or spreading of a member may select another."""
    try:
        selectors = [
            compile_selector_once(each.label_selector)
            for each in info.pod.spec.topology_spread_constraints
            if each.when_unsatisfiable == _HARD
        ]
    except MalformedObjectError:
        return lambda _: True
    terms = pod_terms(info.pod).required_affinity
    if not selectors and not terms:
        # Something else: default constraints, which Services select for, or a user's filter.
        return lambda _: True
    namespaces = any(term.namespace_selector is not NOTHING for term in terms)

    def looks_for(other: PodInfo) -> bool:
        return (
            namespaces
            or any(selector.matches(other.labels) for selector in selectors)
            or any(term.matches(other.namespace, other.labels, {}) for term in terms)
        )

    return looks_for
