"""Every single change of a pod, one after another, with what the profile says of each.

The costs are those of docs/relaxations.md, written down a second time.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from scheduler.config import default_config, effective_profiles
from scheduler.explain import explain
from scheduler.offline.cluster import Cluster, read_pod
from scheduler.offline.offline_framework import offline_framework
from tests.relaxations.json_changes import (
    REQUIRED,
    carried_out,
    request_at_most,
    requested,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scheduler.explain import Explanation
    from tests.relaxations.random_clusters import Json

PROFILES: Final = effective_profiles(default_config())
_HARD: Final = ("NoSchedule", "NoExecute")
_CORDON: Final = "node.kubernetes.io/unschedulable:NoSchedule"
_ALL_OR_NOTHING: Final = {
    "nodeSelector": 1.0,
    "nodeAffinity": 1.0,
    "hostPort": 1.0,
    "podAffinity": 1.5,
    "podAntiAffinity": 1.5,
    "label": 2.5,
    "volumePlace": 2.8,
    "volume": 3.5,
}


@dataclass(frozen=True, slots=True)
class Cheapest:
    """The cheapest single change for a node, and its cost."""

    cost: float
    what: str


def cluster_of(objects: list[Json]) -> Cluster:
    """Return a cluster of JSON objects."""
    cluster = Cluster()
    for each in objects:
        cluster.add(msgspec.Raw(msgspec.json.encode(each)))
    return cluster


def explained(pod: Json, objects: list[Json]) -> Explanation:
    """Return what a new profile says of a pod in a new cluster."""
    cluster = cluster_of(objects)
    framework = offline_framework(PROFILES, cluster)
    return explain(framework, cluster.snapshot(), read_pod(_raw(pod)))


def cheapest_changes(pod: Json, objects: list[Json]) -> dict[str, Cheapest]:
    """Return the cheapest single change for each node that one change would open."""
    found: dict[str, Cheapest] = {}
    for cost, what, nodes in _tries(pod, objects):
        for name in nodes:
            if name not in found or cost < found[name].cost:
                found[name] = Cheapest(cost, what)
    return found


def _tries(pod: Json, objects: list[Json]) -> Iterator[tuple[float, str, list[str]]]:
    now = explained(pod, objects)
    room = now.room_to_make
    yield 0.0, "preemption", [] if room is None else list(room.candidates)
    for change, cost in _all_or_nothing(pod, objects):
        changed, others = carried_out(pod, objects, [change])
        yield cost, f"{change['kind']} {change['subject']}", list(explained(changed, others).ranked)
    yield from _less(pod, objects)
    yield from _more_skew(pod, objects)
    yield from _priorities(pod, objects)


def _raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


def _change(kind: str, path: str, subject: str, to: str = "") -> Json:
    return {"kind": kind, "path": path, "subject": subject, "to": to}


def _all_or_nothing(pod: Json, objects: list[Json]) -> Iterator[tuple[Json, float]]:
    spec = pod["spec"]
    for key in spec.get("nodeSelector", {}):
        yield _change("nodeSelector", f"spec.nodeSelector[{key}]", key), 1.0
    if len(spec.get("nodeSelector", {})) > 2:
        yield _change("nodeSelector", "spec.nodeSelector", ""), 3.0
    for key in pod["metadata"]["labels"]:
        yield _change("label", "", key), _ALL_OR_NOTHING["label"]
    for taint in _taints(objects):
        cost = 3.0 if taint.startswith("node.kubernetes.io/") else 1.0
        yield _change("toleration", "", taint, taint), cost
    for at, container in enumerate(spec["containers"]):
        for index, port in enumerate(container.get("ports", ())):
            path = f"spec.containers[{at}].ports[{index}].hostPort"
            yield _change("hostPort", path, str(port["hostPort"])), 1.0
    affinity = spec.get("affinity", {})
    terms = affinity.get("nodeAffinity", {}).get(REQUIRED, {}).get("nodeSelectorTerms", ())
    for at, term in enumerate(terms):
        for index, expression in enumerate(term["matchExpressions"]):
            path = f"terms[{at}].matchExpressions[{index}]"
            yield _change("nodeAffinity", path, expression["key"]), 1.0
    if sum(len(term["matchExpressions"]) for term in terms) > 2:
        yield _change("nodeAffinity", "required", ""), 3.0
    for kind in ("podAffinity", "podAntiAffinity"):
        for at in range(len(affinity.get(kind, {}).get(REQUIRED, ()))):
            yield _change(kind, f"spec.affinity.{kind}.{REQUIRED}[{at}]", str(at)), 1.5
    for at, constraint in enumerate(spec.get("topologySpreadConstraints", ())):
        if constraint["whenUnsatisfiable"] == "DoNotSchedule":
            path = f"spec.topologySpreadConstraints[{at}].whenUnsatisfiable"
            yield _change("maxSkew", path, constraint["topologyKey"], "ScheduleAnyway"), 2.0
    for volume in spec.get("volumes", ()):
        yield _change("volume", "", volume["name"]), _ALL_OR_NOTHING["volume"]
    used = {each["persistentVolumeClaim"]["claimName"] for each in spec.get("volumes", ())}
    for each in objects:
        if each["kind"] == "PersistentVolume" and each["spec"]["claimRef"]["name"] in used:
            name = each["metadata"]["name"]
            yield _change("volumePlace", "", name), _ALL_OR_NOTHING["volumePlace"]


def _taints(objects: list[Json]) -> list[str]:
    found = {_CORDON}
    for each in objects:
        for taint in each.get("spec", {}).get("taints", ()) if each["kind"] == "Node" else ():
            if taint["effect"] in _HARD:
                value = f"={taint['value']}" if taint.get("value") else ""
                found.add(f"{taint['key']}{value}:{taint['effect']}")
    return sorted(found)


def _less(pod: Json, objects: list[Json]) -> Iterator[tuple[float, str, list[str]]]:
    """Yield the smallest reduction of each resource for each node, by halves."""
    names = {name for each in pod["spec"]["containers"] for name in each["resources"]["requests"]}
    for name in sorted(names):
        total = requested(pod["spec"], name)
        opened = _opened_by_less(pod, objects, name, total)
        for node in opened:
            low, high = 0, total
            while high - low > 1:
                middle = (low + high) // 2
                if node in _opened_by_less(pod, objects, name, middle):
                    high = middle
                else:
                    low = middle
            yield 4.0 * high / total, f"resource {name} {high}", [node]


def _opened_by_less(pod: Json, objects: list[Json], name: str, less: int) -> list[str]:
    changed = deepcopy(pod)
    request_at_most(changed["spec"], name, requested(pod["spec"], name) - less)
    return list(explained(changed, objects).ranked)


def _more_skew(pod: Json, objects: list[Json]) -> Iterator[tuple[float, str, list[str]]]:
    most = sum(each["kind"] == "Pod" for each in objects) + 1
    for at, constraint in enumerate(pod["spec"].get("topologySpreadConstraints", ())):
        if constraint["whenUnsatisfiable"] == "DoNotSchedule":
            for more in range(1, most + 1):
                changed = deepcopy(pod)
                spread = changed["spec"]["topologySpreadConstraints"][at]
                spread["maxSkew"] += more
                opened = list(explained(changed, objects).ranked)
                yield 2.0 * more / (more + 1), f"maxSkew {at} {more}", opened


def _priorities(pod: Json, objects: list[Json]) -> Iterator[tuple[float, str, list[str]]]:
    spec = pod["spec"]
    if spec.get("preemptionPolicy") == "Never":
        changed = deepcopy(pod)
        changed["spec"]["preemptionPolicy"] = "PreemptLowerPriority"
        room = explained(changed, objects).room_to_make
        yield 2.1, "preemptionPolicy", [] if room is None else list(room.candidates)
        return
    placed = [each for each in objects if each["kind"] == "Pod"]
    for priority in sorted({each["spec"]["priority"] + 1 for each in placed}):
        if priority > spec["priority"]:
            changed = deepcopy(pod)
            changed["spec"]["priority"] = priority
            now = explained(changed, objects)
            room = [] if now.room_to_make is None else list(now.room_to_make.candidates)
            yield 2.2, f"priority {priority}", [*now.ranked, *room]
