"""Which versions of the configuration are read, and how to move from the ones that are not.

Source: Kubernetes documentation, "Scheduler Configuration" (the migrations of each version), and
KEP-785 for the versions in which each one came and went.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scheduler.config.config_error import Mistake, shown
from scheduler.config.configuration import API_VERSION, GROUP, KIND

if TYPE_CHECKING:
    from collections.abc import Mapping

_FROM_V1BETA3: Final = (
    f"set apiVersion to {API_VERSION} and take the plugin SelectorSpread out "
    "(PodTopologySpread, on by default, does its work)"
)
_FROM_V1BETA2: Final = (
    f"{_FROM_V1BETA3}; since v1beta3 the default weight of InterPodAffinity and NodeAffinity is 2 "
    "and that of TaintToleration 3: give weights of 1 to keep the old scores"
)
_FROM_V1BETA1: Final = (
    f"{_FROM_V1BETA2}; NodeResourcesLeastAllocated, NodeResourcesMostAllocated and "
    "RequestedToCapacityRatio became scoringStrategy.type of NodeResourcesFitArgs, NodeLabel and "
    "ServiceAffinity gave way to node and pod affinity, NodePreferAvoidPods to taints, and "
    "healthzBindAddress and metricsBindAddress are gone"
)

MIGRATIONS: Final[Mapping[str, str]] = {
    f"{GROUP}/v1beta3": f"was removed in Kubernetes 1.29; to move: {_FROM_V1BETA3}",
    f"{GROUP}/v1beta2": f"was removed in Kubernetes 1.28; to move: {_FROM_V1BETA2}",
    f"{GROUP}/v1beta1": f"was removed in Kubernetes 1.23; to move: {_FROM_V1BETA1}",
    f"{GROUP}/v1alpha2": f"was removed long ago; to move: {_FROM_V1BETA1}",
    f"{GROUP}/v1alpha1": f"was removed long ago; write a new file for {API_VERSION}",
}


def check_version(data: Mapping[str, object]) -> list[Mistake]:
    """Return what is wrong with ``apiVersion`` and ``kind``."""
    version, kind = data.get("apiVersion"), data.get("kind")
    if kind == "Policy":
        why = f"scheduling policies were removed in Kubernetes 1.23; write a {KIND} instead"
        return [Mistake("kind", why)]
    mistakes = []
    if version in (None, ""):
        mistakes.append(Mistake("apiVersion", f"is required; it must be {API_VERSION}"))
    elif isinstance(version, str) and version in MIGRATIONS:
        mistakes.append(Mistake("apiVersion", f"{version} {MIGRATIONS[version]}"))
    elif version != API_VERSION:
        mistakes.append(Mistake("apiVersion", f"must be {API_VERSION}, not {shown(version)}"))
    if kind in (None, ""):
        mistakes.append(Mistake("kind", f"is required; it must be {KIND}"))
    elif kind != KIND:
        mistakes.append(Mistake("kind", f"must be {KIND}, not {shown(kind)}"))
    return mistakes
