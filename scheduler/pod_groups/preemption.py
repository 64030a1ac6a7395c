"""Victims for a group: chosen for the placement of all members that it needs, or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cache.pod_group_objects import GroupKey
    from cache.pod_info import PodInfo


@dataclass(frozen=True, slots=True)
class GroupVictims:
    """The pods to remove for a group to fit, and where its members go then.

    Parameters
    ----------
    pods
        The most important first.
    pdb_violations
        The number of evictions that violate a PodDisruptionBudget.
    members
        The members that fit once the victims are gone, each with its node.
    priority
        Of the group as a preemptor.
    gangs
        The gangs that are evicted whole.
    gang_members
        How many of the victims are members of gangs.
    domain
        The value of the topology key; empty without one.
    plugin
        In whose name the victims are evicted.
    """

    pods: tuple[PodInfo, ...]
    pdb_violations: int
    members: tuple[tuple[PodInfo, str], ...]
    priority: int
    gangs: frozenset[GroupKey] = frozenset()
    gang_members: int = 0
    domain: str = ""
    plugin: str = "DefaultPreemption"
