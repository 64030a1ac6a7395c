"""What a change costs: the order in which relaxations are preferred.

The numbers only compare changes with each other. A change that the owner of the pod makes in one
line is cheap, one that gives up something that the pod asks for costs more, and one that moves data
or evicts other pods costs most. The cost of several changes is the sum.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """The kinds of changes; the values appear in JSON."""

    RESOURCE = "resource"
    TOLERATION = "toleration"
    NODE_SELECTOR = "nodeSelector"
    NODE_AFFINITY = "nodeAffinity"
    POD_AFFINITY = "podAffinity"
    POD_ANTI_AFFINITY = "podAntiAffinity"
    MAX_SKEW = "maxSkew"
    HOST_PORT = "hostPort"
    LABEL = "label"
    VOLUME_PLACE = "volumePlace"
    VOLUME = "volume"
    RESOURCE_CLAIM = "resourceClaim"
    PREEMPTION_POLICY = "preemptionPolicy"
    PRIORITY = "priority"


WHOLE_REQUEST: Final = 4.0
"""To give up all that is requested of a resource; a part of it costs its share."""

WHOLE_SELECTOR: Final = 3.0
"""To give up a nodeSelector, or required affinity, of more than two demands as a whole."""

DROPPED_CONSTRAINT: Final = 2.0
"""To give up a spread constraint; a larger maxSkew costs less, see :func:`skew_cost`."""

SICK_NODE: Final = 3.0
"""To tolerate a taint that Kubernetes sets itself: the node is cordoned or not well."""

SYSTEM_TAINT_PREFIX: Final = "node.kubernetes.io/"

COSTS: Final = {
    Kind.TOLERATION: 1.0,
    Kind.NODE_SELECTOR: 1.0,
    Kind.NODE_AFFINITY: 1.0,
    Kind.HOST_PORT: 1.0,
    Kind.POD_AFFINITY: 1.5,
    Kind.POD_ANTI_AFFINITY: 1.5,
    Kind.LABEL: 2.5,
    Kind.PRIORITY: 2.2,
    Kind.PREEMPTION_POLICY: 2.1,
    Kind.VOLUME_PLACE: 2.8,
    Kind.VOLUME: 3.5,
    Kind.RESOURCE_CLAIM: 3.5,
}
"""The costs that depend on nothing but the kind."""


def request_cost(given_up: int, requested: int) -> float:
    """Return the cost of requesting less of a resource."""
    return WHOLE_REQUEST * given_up / requested


def skew_cost(more: int) -> float:
    """Return the cost of a ``maxSkew`` that is larger by ``more``: 1 for the first step."""
    return DROPPED_CONSTRAINT * more / (more + 1)


def toleration_cost(key: str) -> float:
    """Return the cost of a toleration for a taint with a key."""
    return SICK_NODE if key.startswith(SYSTEM_TAINT_PREFIX) else COSTS[Kind.TOLERATION]
