"""Chooses the candidate on which preemption does the least harm.

*Source*: kube-scheduler 1.36, pkg/scheduler/framework/preemption/preemption.go
(pickOneNodeForPreemption).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from plugins.default_preemption.importance import own_priority, start_time_s

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cache.pod_info import PodInfo
    from plugins.framework.victims import Victims

_LIFT: Final = 2**31
"""Added to each priority, so that one more victim makes a sum larger, whatever its priority."""


class Harm(NamedTuple):
    """The harm of preemption on a node: the first field that differs decides, less is better.

    Parameters
    ----------
    pdb_violations
        How many victims would violate a PodDisruptionBudget.
    highest_priority
        The priority of the most important victim.
    sum_of_priorities
        The sum over all victims; each priority is shifted to be above 0.
    num_victims
        How many pods would be evicted.
    running_since_s
        Minus the time at which the first of the victims with the highest priority started.
    displaced_nominees
        How many pods of lower priority would lose their nomination for the node. Not among
        kube-scheduler's criteria, so it only decides between nodes that are equals by those.
    """

    pdb_violations: int
    highest_priority: int
    sum_of_priorities: int
    num_victims: int
    running_since_s: float
    displaced_nominees: int

    @classmethod
    def of(
        cls,
        victims: Victims,
        displaced_nominees: int = 0,
        priority_of: Callable[[PodInfo], int] = own_priority,
    ) -> Harm:
        """Return the harm of evicting some victims."""
        pods = victims.pods
        priorities = [priority_of(info) for info in pods]
        highest = max(priorities)
        return cls(
            victims.pdb_violations,
            priorities[0],
            sum(priorities) + _LIFT * len(pods),
            len(pods),
            -min(
                start_time_s(info.pod)
                for info, priority in zip(pods, priorities, strict=True)
                if priority == highest
            ),
            displaced_nominees,
        )


class Candidate(NamedTuple):
    """A node on which the pod fits once its victims are gone."""

    victims: Victims
    harm: Harm

    @classmethod
    def of(
        cls,
        victims: Victims,
        displaced_nominees: int = 0,
        priority_of: Callable[[PodInfo], int] = own_priority,
    ) -> Candidate:
        """Return the candidate with these victims."""
        return cls(victims, Harm.of(victims, displaced_nominees, priority_of))


def pick_node(candidates: Mapping[str, Candidate]) -> str:
    """Return the best candidate: the first one of equals.

    Raises
    ------
    ValueError
        When there is no candidate.
    """
    return min(candidates, key=lambda name: candidates[name].harm)


def decisive_rung(candidates: Mapping[str, Candidate], chosen: str) -> str | None:
    """Return the field of ``Harm`` that decided between the chosen node and the last other one.

    None when there is no other candidate, or an equal one.
    """
    mine = candidates[chosen].harm
    decisive = -1
    for name, candidate in candidates.items():
        if name == chosen:
            continue
        pairs = enumerate(zip(mine, candidate.harm, strict=True))
        first = next((rung for rung, (one, other) in pairs if one != other), None)
        if first is None:
            return None
        decisive = max(decisive, first)
    return None if decisive < 0 else Harm._fields[decisive]
