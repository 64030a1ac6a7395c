"""The pods that preemption would remove for a pod to fit on a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cache.value import Value

if TYPE_CHECKING:
    from cache.pod_group_objects import GroupKey
    from cache.pod_info import PodInfo


class Victims(Value, frozen=True):
    """The pods to remove to free resources for a pod on a node.

    Parameters
    ----------
    pods
        At least one; the most important first: by priority, then the one that ran longest. Members
        of gangs that are evicted whole may be on other nodes.
    pdb_violations
        The number of evictions that violate a PodDisruptionBudget.
    gangs
        The gangs that are evicted whole.
    gang_members
        How many of the pods are members of gangs.

    Notes
    -----
    *Source*: k8s.io/kube-scheduler extender/v1/types.go, Victims (1.36).
    """

    pods: tuple[PodInfo, ...]
    pdb_violations: int = 0
    gangs: frozenset[GroupKey] = frozenset()
    gang_members: int = 0
