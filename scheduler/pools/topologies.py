"""Refuse pods whose constraints reach across pools, where a pool cannot know whether they hold.

A topology spread constraint or a term of inter-pod affinity counts pods in domains of nodes: all
nodes with one value of a label. A pool knows the nodes of its own. Where a domain may have nodes of
other pools, what it counts may be wrong, and the pod is refused with the reason:

- ``kubernetes.io/hostname`` is a domain of one node, and counted in full;
- so is a label by which the pool is selected alone: ``zone in (a,b)`` has the zones as a whole;
- a spread constraint with ``nodeAffinityPolicy: Honor`` counts nodes that the pod selects: it is
  counted in full if the pod itself selects the pool's nodes only;
- of the labels that the pool's configuration names, each pool counts its own nodes.

What a pod prefers (``ScheduleAnyway``, preferred terms, default constraints) counts in the pool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plugins.framework.status import SUCCESS, Code, Status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cache.label_selectors import Requirement
    from cache.objects import Pod
    from scheduler.pools.options import PoolOptions

HOSTNAME: Final = "kubernetes.io/hostname"
GATE: Final = "PoolTopology"
"""Under which the queue shows what keeps such a pod out."""


class TopologyGate:
    """Lets the pods in whose required constraints a pool can count in full.

    Notes
    -----
    *Concurrency*: immutable.
    """

    def __init__(self, pool: PoolOptions) -> None:
        requirements = pool.node_selector.requirements
        keys = {each.key for each in requirements}
        self._pool = pool
        self._closed = {HOSTNAME, *pool.topology_keys, *(keys if len(keys) == 1 else ())}

    def check(self, pod: Pod) -> Status:
        """Return Success, or why the pod is refused. *Cost*: less than a microsecond."""
        if not pod.spec.topology_spread_constraints and pod.spec.affinity is None:
            return SUCCESS
        for what, key in self._reaching(pod):
            why = (
                f"{what} with the topology key {key} may reach across pools: {self._pool} knows "
                "its own nodes only"
            )
            return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (why,), GATE)
        return SUCCESS

    def _reaching(self, pod: Pod) -> Iterator[tuple[str, str]]:
        for spread in pod.spec.topology_spread_constraints:
            if spread.when_unsatisfiable != "DoNotSchedule" or spread.topology_key in self._closed:
                continue
            if spread.node_affinity_policy == "Ignore" or not self._is_within(pod):
                yield "a topology spread constraint", spread.topology_key
        affinity = pod.spec.affinity
        if affinity is None:
            return
        for what, terms in (
            ("required pod affinity", affinity.pod_affinity),
            ("required pod anti-affinity", affinity.pod_anti_affinity),
        ):
            for term in (
                () if terms is None else terms.required_during_scheduling_ignored_during_execution
            ):
                if term.topology_key not in self._closed:
                    yield what, term.topology_key

    def _is_within(self, pod: Pod) -> bool:
        """Return whether a pod itself selects nodes of this pool only."""
        return all(_implies(pod, each) for each in self._pool.node_selector.requirements)


def _implies(pod: Pod, requirement: Requirement) -> bool:
    value = pod.spec.node_selector.get(requirement.key)
    if value is not None:
        return requirement.matches_value(value)
    affinity = pod.spec.affinity
    node = None if affinity is None else affinity.node_affinity
    wanted = None if node is None else node.required_during_scheduling_ignored_during_execution
    if wanted is None:
        return False
    return bool(wanted.node_selector_terms) and all(
        any(
            each.key == requirement.key
            and each.operator == "In"
            and all(map(requirement.matches_value, each.values))
            for each in term.match_expressions
        )
        for term in wanted.node_selector_terms
    )
