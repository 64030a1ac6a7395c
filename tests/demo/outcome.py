"""What became of a scene, worked out from the API's objects alone.

Nothing of berth's own code takes part, so a mistake there cannot hide here: requests are added up
again from the manifests that the API server returns.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from tests.controlplane.objects import ZONE_LABEL
from tests.demo.scene import KIND_LABEL, ZONES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tests.demo.scene import Kind, Scene

Object = dict[str, Any]

RESOURCES: Final = ("cpu", "memory", "pods")

_SUFFIXES: Final[Mapping[str, Fraction]] = {
    "": Fraction(1),
    "m": Fraction(1, 1000),
    "Ki": Fraction(1 << 10),
    "Mi": Fraction(1 << 20),
    "Gi": Fraction(1 << 30),
}


@dataclass(frozen=True, slots=True)
class NodeUsage:
    """A node and what its pods ask for: cores, bytes, numbers of pods."""

    name: str
    zone: str
    unschedulable: bool
    allocatable: Mapping[str, Fraction]
    requested: Mapping[str, Fraction]

    def share(self, resource: str) -> float:
        """Return how much of a resource is asked for, 1.0 being all of it."""
        return float(self.requested[resource] / self.allocatable[resource])

    @property
    def fullness(self) -> tuple[float, ...]:
        """The shares from the highest to the lowest, for comparing nodes."""
        return tuple(sorted((self.share(each) for each in RESOURCES), reverse=True))


@dataclass(frozen=True, slots=True)
class ZoneUsage:
    """The nodes of a zone together."""

    name: str
    nodes: int
    pods: int
    cpu_share: float


@dataclass(frozen=True, slots=True)
class Placed:
    """Pods that wanted the same: how many are bound, and to how many different nodes."""

    kind: Kind
    bound: int
    nodes: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """A pod of berth's that is not bound, and what it says of itself."""

    name: str
    wants: str
    reason: str
    message: str
    event_note: str | None
    """What the latest FailedScheduling Event says; None where there is none."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """All that the summary tells."""

    placeable: int
    bound: int
    seconds: float
    """From the first bind to the last."""
    placed: tuple[Placed, ...]
    zones: tuple[ZoneUsage, ...]
    fullest: NodeUsage
    emptiest: NodeUsage
    """Of the nodes that take pods."""
    waiting: tuple[Waiting, ...]
    foreign: int
    """Pods that asked for another scheduler and are as they were created."""
    problems: tuple[str, ...]
    """What should not be; empty when all is well."""

    @property
    def pods_per_s(self) -> float:
        """Pods bound for each second."""
        return (self.bound - 1) / max(self.seconds, 1e-9)


def work_out(
    scene: Scene,
    nodes: Sequence[Object],
    pods: Sequence[Object],
    events: Sequence[Object],
    seconds: float,
) -> Outcome:
    """Judge what the API holds after the scene was played.

    Parameters
    ----------
    nodes, pods, events
        All nodes; pods and Events (events.k8s.io/v1) of the scene's namespace.
    seconds
        From the first bind to the last.
    """
    usages = _usages(nodes, pods)
    notes = _failure_notes(events)
    bound = {_name(pod) for pod in pods if _node_of(pod)}
    foreign = [pod for pod in pods if _name(pod) in scene.foreign]
    touched = [pod for pod in foreign if _is_touched(pod, events)]
    open_nodes = [usage for usage in usages if not usage.unschedulable]
    return Outcome(
        placeable=len(scene.placeable),
        bound=len(scene.placeable & bound),
        seconds=seconds,
        placed=tuple(_placed(kind, pods) for kind in scene.kinds),
        zones=tuple(_zone(zone, usages) for zone in ZONES),
        fullest=max(open_nodes, key=lambda usage: usage.fullness),
        emptiest=min(open_nodes, key=lambda usage: usage.fullness),
        waiting=tuple(
            _waiting(pod, scene, notes.get(_name(pod)))
            for pod in sorted(pods, key=_name)
            if not _node_of(pod) and _name(pod) not in scene.foreign
        ),
        foreign=len(foreign) - len(touched),
        problems=(
            *_misplaced(scene, bound, {_name(pod) for pod in pods}),
            *(f"{_name(pod)} is not berth's and was touched" for pod in touched),
            *_overcommitted(usages, pods),
        ),
    )


# --- what should not be


def _misplaced(scene: Scene, bound: set[str], existing: set[str]) -> Iterable[str]:
    for name in sorted(scene.placeable - bound):
        yield f"{name} should be bound and is not"
    for name in sorted(scene.pending.keys() & bound):
        yield f"{name} should wait and is bound"
    for name in sorted((scene.placeable | scene.pending.keys() | scene.foreign) - existing):
        yield f"{name} has gone"


def _overcommitted(usages: Sequence[NodeUsage], pods: Sequence[Object]) -> Iterable[str]:
    known = {usage.name for usage in usages}
    for usage in usages:
        for resource in RESOURCES:
            if usage.requested[resource] > usage.allocatable[resource]:
                yield (
                    f"{usage.name} is overcommitted: {float(usage.requested[resource]):g} of "
                    f"{float(usage.allocatable[resource]):g} {resource}"
                )
        if usage.unschedulable and usage.requested["pods"]:
            yield f"{usage.name} is cordoned and has pods"
    ports: Counter[tuple[str, int]] = Counter()
    for pod in pods:
        if not (node := _node_of(pod)):
            continue
        if node not in known:
            yield f"{_name(pod)} is bound to {node}, which does not exist"
        for container in pod["spec"]["containers"]:
            for port in container.get("ports", ()):
                if "hostPort" in port:
                    ports[node, port["hostPort"]] += 1
    for (node, port), count in ports.items():
        if count > 1:
            yield f"{node} is overcommitted: {count} pods have host port {port}"


def _is_touched(pod: Object, events: Sequence[Object]) -> bool:
    return (
        bool(_node_of(pod))
        or bool(pod["status"].get("conditions"))
        or any(event["regarding"].get("name") == _name(pod) for event in events)
    )


# --- parts of the outcome


def _usages(nodes: Sequence[Object], pods: Sequence[Object]) -> list[NodeUsage]:
    requested: defaultdict[tuple[str, str], Fraction] = defaultdict(Fraction)
    for pod in pods:
        node_name = _node_of(pod)
        requested[node_name, "pods"] += 1
        for container in pod["spec"]["containers"]:
            requests = container.get("resources", {}).get("requests", {})
            for resource, quantity in requests.items():
                requested[node_name, resource] += amount(quantity)
    return [
        NodeUsage(
            name=_name(node),
            zone=node["metadata"]["labels"].get(ZONE_LABEL, ""),
            unschedulable=node["spec"].get("unschedulable", False),
            allocatable={each: amount(node["status"]["allocatable"][each]) for each in RESOURCES},
            requested={each: requested[_name(node), each] for each in RESOURCES},
        )
        for node in nodes
    ]


def _zone(name: str, usages: Sequence[NodeUsage]) -> ZoneUsage:
    inside = [usage for usage in usages if usage.zone == name]
    cpu = sum(usage.allocatable["cpu"] for usage in inside)
    return ZoneUsage(
        name,
        nodes=len(inside),
        pods=int(sum(usage.requested["pods"] for usage in inside)),
        cpu_share=float(sum(usage.requested["cpu"] for usage in inside) / cpu) if cpu else 0.0,
    )


def _placed(kind: Kind, pods: Sequence[Object]) -> Placed:
    own = [pod for pod in pods if pod["metadata"]["labels"].get(KIND_LABEL) == kind.name]
    nodes = [node for pod in own if (node := _node_of(pod))]
    return Placed(kind, bound=len(nodes), nodes=len(set(nodes)))


def _waiting(pod: Object, scene: Scene, note: str | None) -> Waiting:
    name = _name(pod)
    said = scheduled_condition(pod)
    return Waiting(
        name,
        wants=scene.pending.get(name, "a node like the others"),
        reason=said.get("reason", ""),
        message=said.get("message", ""),
        event_note=note,
    )


def _failure_notes(events: Sequence[Object]) -> dict[str, str]:
    """Return the note of the latest FailedScheduling Event by pod name."""
    failures = [event for event in events if event["reason"] == "FailedScheduling"]
    failures.sort(key=lambda event: event["eventTime"])
    return {event["regarding"]["name"]: event["note"] for event in failures}


# --- reading objects


def scheduled_condition(pod: Object) -> Object:
    """Return the pod's condition PodScheduled, or an empty one."""
    conditions: list[Object] = pod["status"].get("conditions", [])
    return next((each for each in conditions if each["type"] == "PodScheduled"), {})


def amount(quantity: str) -> Fraction:
    """Return the value of a quantity in cores, bytes or pieces.

    Raises
    ------
    ValueError
        It is none that the scene uses.
    """
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([a-zA-Z]*)", quantity)
    if match is None or match[2] not in _SUFFIXES:
        raise ValueError(f"not a quantity: {quantity!r}")
    return Fraction(match[1]) * _SUFFIXES[match[2]]


def _name(thing: Object) -> str:
    name: str = thing["metadata"]["name"]
    return name


def _node_of(pod: Object) -> str:
    node: str = pod["spec"].get("nodeName", "")
    return node
