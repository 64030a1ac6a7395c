"""The pods that preemption would remove from one node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cache.pod_info import PodInfo


@dataclass(frozen=True, slots=True)
class Victims:
    """The pods to remove from a node to free resources for a pod.

    Parameters
    ----------
    pods
        At least one; the most important first: by priority, then the one that ran longest.
    pdb_violations
        The number of evictions that violate a PodDisruptionBudget.

    Notes
    -----
    *Source*: k8s.io/kube-scheduler extender/v1/types.go, Victims (1.36).
    """

    pods: tuple[PodInfo, ...]
    pdb_violations: int = 0
