"""Clusters of any size for benchmarks without an API server, and pods to be placed in them.

Built by replacing a few fields of one object, so that half a million pods take seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from cache.pod_info import PodInfo
from tests.builders import node, pod

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cache.objects import Node, Pod
    from tests.builders import PodBuilder

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"

ZONES = 3
APPS = 20
"""Label sets of the pods that run, as far as they have no terms."""

UNLIKE = 1000
"""Different requests of pods that are not like each other."""

WITH_TERMS = 10
"""One of so many pods that run has a term, if there are any."""


def nodes(count: int) -> Iterator[Node]:
    """Yield nodes of 4 CPUs in three zones, with room for many small pods."""
    base = node("node").capacity(cpu="4", memory="32Gi", pods="1000").build()
    for index in range(count):
        labels = {HOSTNAME: node_name(index), ZONE: f"zone-{index % ZONES}"}
        meta = replace(base.metadata, name=node_name(index), uid=f"uid-node-{index}", labels=labels)
        yield replace(base, metadata=meta)


def node_name(index: int) -> str:
    """Return the name of a node."""
    return f"node-{index:06}"


def running(count: int, num_nodes: int, terms: int) -> Iterator[PodInfo]:
    """Yield pods dealt out to the nodes; some of them have one of so many anti-affinity terms.

    The terms are about pods that do not exist: they cost what terms cost and forbid nothing.
    """
    small = pod().request(cpu="10m", memory="16Mi").default_tolerations()
    plain = [small.label("app", f"app-{number}").build() for number in range(APPS)]
    with_terms = [
        small.label("app", f"app-{number % APPS}")
        .pod_anti_affinity(HOSTNAME, enemy=f"enemy-{number}")
        .build()
        for number in range(terms)
    ]
    for index in range(count):
        has_term = bool(terms) and index % WITH_TERMS == 0
        kinds, place = (with_terms, index // WITH_TERMS) if has_term else (plain, index)
        yield PodInfo(
            renamed(kinds[place % len(kinds)], f"running-{index}", node_name(index % num_nodes))
        )


def renamed(base: Pod, name: str, host: str = "") -> Pod:
    """Return a pod of another name and UID, on a node if one is named."""
    meta = replace(base.metadata, name=name, uid=f"uid-{name}")
    spec = replace(base.spec, node_name=host) if host else base.spec
    return replace(base, metadata=meta, spec=spec)


def kinds() -> dict[str, tuple[Pod, ...]]:
    """Return the pods of each kind that decisions are measured with, to be taken in turn.

    Of most kinds there is one, which all that follow are like; ``unlike requests`` has a thousand.
    """
    small = pod().request(cpu="10m", memory="16Mi").default_tolerations().label("app", "app-1")
    made: dict[str, PodBuilder] = {
        "nothing": small,
        "zone affinity": small.pod_affinity(ZONE, app="app-1"),
        "host anti-affinity": small.label("app", "apart").pod_anti_affinity(HOSTNAME, app="apart"),
        "preferred host affinity": small.prefers_pods(5, HOSTNAME, app="app-1"),
        "zone spread": small.spread(ZONE, max_skew=5, app="app-1"),
        "preferred host spread": small.spread(
            HOSTNAME, when_unsatisfiable="ScheduleAnyway", app="app-1"
        ),
    }
    return {
        **{name: (each.build(),) for name, each in made.items()},
        "unlike requests": tuple(
            small.request(cpu="10m", memory=f"{16384 + number}Ki").build()
            for number in range(UNLIKE)
        ),
    }
