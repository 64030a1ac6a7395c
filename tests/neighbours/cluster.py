"""The nodes, the pods that fill them, and the pods that two schedulers place at once.

A node has a number of places, each as large as the largest pod, and there are a few more places
than pods: so each pod has a place whatever the order, and in the end most nodes are full.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tests.controlplane.objects import make_node, make_pod

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FIRST: Final = "default-scheduler"
SECOND: Final = "neighbor"
PARTIES: Final = (FIRST, SECOND)
"""The names to which the two schedulers answer."""

PARTY: Final = "party"
"""The label of the pods to be placed, with the name of their scheduler."""

NAMESPACE: Final = "default"

_SIZES_MILLI: Final = (300, 350, 400)
_PLACE_MILLI: Final = max(_SIZES_MILLI)
_MIB_PER_MILLI: Final = 4
_KINDS_OF_NODES: Final = (1, 2, 4)
"""How large the nodes are to each other."""

_SPREAD: Final = (0.5, 1.5)
"""The places of a node, of the mean of its kind."""

_REST_MILLI: Final = 100
"""Less than so much is free besides the places, so that no two nodes are alike."""

_MORE_OF_THE_OTHER: Final = 1.2
"""Half of the nodes run out of CPU first, half of memory: so much more is free of the other."""

_FULL_OF_PODS: Final = 16
"""Each so many nodes run out of places for pods, before CPU and memory."""

_RUNNING: Final = 2
_MAX_PODS: Final = 110
_SETS: Final = 20
"""Sets of equal pods of each scheduler, each with a controller of its own."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large the cluster is, and how many pods come.

    Attributes
    ----------
    pods
        Of each scheduler.
    fill
        The share of CPU and memory that is in use before.
    slack
        How many places there are more than pods, as a share of these.
    """

    nodes: int = 800
    pods: int = 2000
    fill: float = 0.9
    slack: float = 0.02


class Cluster:
    """The objects of one seed.

    Attributes
    ----------
    nodes
        The manifests by name.
    running
        Pods that fill the nodes.
    pods
        Pods to be placed, those of the two schedulers in turn.
    """

    def __init__(self, size: Size, seed: int) -> None:
        rng = random.Random(seed)
        self.pods = list(_pods(size, rng))
        self.nodes: dict[str, dict[str, Any]] = {}
        self.running: list[dict[str, Any]] = []
        kinds = [rng.choice(_KINDS_OF_NODES) for _ in range(size.nodes)]
        wishes = [kind * rng.uniform(*_SPREAD) for kind in kinds]
        places = _apportioned(round((1 + size.slack) * len(self.pods)), wishes)
        free = sum(places) * _PLACE_MILLI * (1 + 1 / _FULL_OF_PODS) * (1 + _MORE_OF_THE_OTHER) / 2
        unit = free / (1 - size.fill) / sum(kinds)
        for index, (kind, count) in enumerate(zip(kinds, places, strict=True)):
            self._add(f"node-{index:04}", round(kind * unit), count, index, rng)

    def _add(self, name: str, whole: int, places: int, index: int, rng: random.Random) -> None:
        is_full_of_pods = not index % _FULL_OF_PODS
        free = min(
            (1 + is_full_of_pods) * places * _PLACE_MILLI + rng.randrange(_REST_MILLI), whole
        )
        more = min(int(free * _MORE_OF_THE_OTHER), whole)
        milli, mib = (free, more) if rng.random() < 0.5 else (more, free)
        pods = _RUNNING + places if is_full_of_pods else _MAX_PODS
        memory = f"{whole * _MIB_PER_MILLI}Mi"
        self.nodes[name] = make_node(name, cpu=f"{whole}m", memory=memory, pods=str(pods))
        parts = zip(_parts(whole - milli, _RUNNING), _parts(whole - mib, _RUNNING), strict=True)
        for number, (cpu, memory_parts) in enumerate(parts):
            pod = make_pod(
                f"running-{name}-{number}",
                cpu=f"{cpu}m",
                memory=f"{memory_parts * _MIB_PER_MILLI}Mi",
                nodeName=name,
            )
            self.running.append(pod)


def seeds(text: str) -> list[int]:
    """Return the seeds of a list of numbers and ranges."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def successor(pod: dict[str, Any]) -> dict[str, Any]:
    """Return the pod that a controller creates in place of one that has failed."""
    name, _, number = pod["metadata"]["name"].rpartition("-")
    return {**pod, "metadata": {**pod["metadata"], "name": f"{name}-{int(number) + 1}"}}


def original(name: str) -> str:
    """Return what a pod and its successors have in common."""
    return name.rpartition("-")[0]


def _pods(size: Size, rng: random.Random) -> Iterator[dict[str, Any]]:
    controllers = {party: [_owner(party, index) for index in range(_SETS)] for party in PARTIES}
    for index in range(size.pods):
        for party in PARTIES:
            controller = rng.randrange(_SETS)
            milli = _SIZES_MILLI[controller % len(_SIZES_MILLI)]
            pod = make_pod(
                f"{party}-{index:05}-0",
                namespace=NAMESPACE,
                scheduler_name=party,
                cpu=f"{milli}m",
                memory=f"{milli * _MIB_PER_MILLI}Mi",
                labels={PARTY: party},
            )
            pod["metadata"]["ownerReferences"] = [controllers[party][controller]]
            yield pod


def _owner(party: str, index: int) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": f"{party}-{index:02}",
        "uid": f"{PARTIES.index(party)}-{index:02}",
        "controller": True,
    }


def _apportioned(total: int, wishes: Sequence[float]) -> list[int]:
    """Return integers in proportion to the wishes whose sum is the total."""
    scale, sums = total / sum(wishes), list(itertools.accumulate(wishes))
    ends = [round(scale * each) for each in sums]
    return [end - before for before, end in zip([0, *ends], ends, strict=False)]


def _parts(total: int, count: int) -> list[int]:
    """Divide a number into nearly equal parts."""
    return [total // count + (index < total % count) for index in range(count)]
