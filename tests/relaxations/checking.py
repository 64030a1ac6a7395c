"""Checks of one pod's relaxations: each is true, and none that is single could be cheaper."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec

from plugins.framework.cycle_state import CycleState
from scheduler.cycle.host_selection import HostSelector
from scheduler.cycle.scheduling_cycle import SchedulingCycle
from scheduler.offline.cluster import read_pod
from scheduler.offline.offline_framework import offline_framework
from scheduler.relaxations import Budget, find_relaxations, relaxations_data
from tests.relaxations.brute_force import (
    PROFILES,
    cheapest_changes,
    cluster_of,
    explained,
)
from tests.relaxations.json_changes import carried_out
from tests.relaxations.random_clusters import random_cluster, random_pods

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scheduler.explain import Explanation
    from tests.relaxations.random_clusters import Json

PODS_OF_A_CLUSTER = 10
_SAME = 0.001
"""Costs in JSON have three digits."""


@dataclass(slots=True)
class Tally:
    """What a campaign has seen."""

    pods: int = 0
    placed: int = 0
    refused: int = 0
    helped: int = 0
    only_pairs: int = 0
    only_new_node: int = 0
    no_help: int = 0
    relaxations: int = 0
    pairs: int = 0
    groups: int = 0
    groups_helped: int = 0
    minimal: int = 0
    new_nodes: int = 0
    instead: int = 0
    kinds: dict[str, int] = field(default_factory=dict)
    cpu_s: list[float] = field(default_factory=list)


def check_case(seed: str, index: int, tally: Tally) -> Iterator[str]:
    """Yield a sentence for each wrong relaxation of the pods of one random cluster."""
    random = Random(f"{seed}-{index}")
    objects = random_cluster(random)
    for pod in random_pods(random, PODS_OF_A_CLUSTER):
        for wrong in check_pod(pod, objects, tally):
            yield f"seed {seed}, cluster {index}, pod {pod['metadata']['name']}: {wrong}"


def check_pod(pod: Json, objects: list[Json], tally: Tally) -> Iterator[str]:
    """Yield a sentence for each wrong relaxation of one pod."""
    found = relaxations_of(pod, objects)
    tally.pods += 1
    tally.cpu_s.append(found["cpuSeconds"])
    if found["notes"]:
        yield f"notes {found['notes']}"
    now = explained(pod, objects)
    if now.ranked:
        tally.placed += 1
        yield from _check_deciding(pod, objects, found["deciding"], now, tally)
        return
    tally.refused += 1
    _count(found, tally)
    cheapest = cheapest_changes(pod, objects)
    for group in found["groups"]:
        for relaxation in group["relaxations"]:
            yield from _check_truth(pod, objects, relaxation)
        yield from _check_minimum(group, cheapest)
        tally.minimal += 1
    if found["newNode"] is not None:
        tally.new_nodes += 1
        yield from _check_new_node(pod, objects, found["newNode"])


def relaxations_of(pod: Json, objects: list[Json]) -> Json:
    """Return the relaxations in their JSON form, as a user of ``berth explain`` reads them."""
    cluster = cluster_of(objects)
    framework = offline_framework(PROFILES, cluster)
    info = read_pod(msgspec.Raw(msgspec.json.encode(pod)))
    snapshot, storage = cluster.snapshot(), cluster.known.storage
    found = find_relaxations(
        framework, snapshot, storage, info, Budget(cpu_s=60, verifications=10**6)
    )
    data: Any = msgspec.json.decode(msgspec.json.encode(relaxations_data(found)))
    return data


def _count(found: Json, tally: Tally) -> None:
    relaxations = [each for group in found["groups"] for each in group["relaxations"]]
    sizes = {_size(each) for each in relaxations}
    tally.helped += bool(relaxations)
    tally.only_pairs += sizes == {2}
    tally.only_new_node += not relaxations and found["newNode"] is not None
    tally.no_help += not relaxations and found["newNode"] is None
    tally.relaxations += len(relaxations)
    tally.pairs += sum(_size(each) == 2 for each in relaxations)
    tally.groups += len(found["groups"])
    tally.groups_helped += sum(bool(group["relaxations"]) for group in found["groups"])
    for each in relaxations:
        kind = "+".join(sorted(change["kind"] for change in each["changes"])) or "preemption"
        kind = kind if len(each["changes"]) < 2 else "a pair"
        kind = kind if len(each["changes"]) == _size(each) or not each["changes"] else "preempting"
        tally.kinds[kind] = tally.kinds.get(kind, 0) + 1


def _size(relaxation: Json) -> int:
    """Return how many things have to happen: preemption counts beside a change it does not need."""
    changes = relaxation["changes"]
    needed = {"priority", "preemptionPolicy"}
    and_preemption = bool(relaxation["victims"]) and not any(e["kind"] in needed for e in changes)
    return len(changes) + (and_preemption and bool(changes))


def _check_truth(pod: Json, objects: list[Json], relaxation: Json) -> Iterator[str]:
    """Carry out the changes, let the victims go, and let a new scheduling cycle decide."""
    changed, others = carried_out(pod, objects, relaxation["changes"])
    gone = set(relaxation["victims"])
    others = [each for each in others if f"default/{each['metadata']['name']}" not in gone]
    said = [change["text"] for change in relaxation["changes"]] or ["preemption"]
    node = decided(changed, others)
    if not node:
        yield f"{said} does not help"
        return
    names = relaxation["names"][:1] if gone else relaxation["names"]
    missing = set(names) - set(explained(changed, others).ranked)
    if missing:
        yield f"{said} does not help on {sorted(missing)}"


def decided(pod: Json, objects: list[Json]) -> str:
    """Return the node that the scheduling cycle chooses; empty if there is none."""
    cluster = cluster_of(objects)
    framework = offline_framework(PROFILES, cluster)
    info = read_pod(msgspec.Raw(msgspec.json.encode(pod)))
    cycle = SchedulingCycle(cluster.snapshot(), HostSelector(0))
    decision = cycle.decide(framework, CycleState(), info)
    return decision.node_name if decision.is_placed else ""


def _check_minimum(group: Json, cheapest: Any) -> Iterator[str]:
    """Compare the first relaxation with the cheapest single change for a node of the group."""
    best = min((cheapest[name] for name in group["names"] if name in cheapest),
               key=lambda each: each.cost, default=None)  # fmt: skip
    first = group["relaxations"][0] if group["relaxations"] else None
    if best is None:
        if first is not None and _size(first) < 2:
            yield f"{first} helps where no single change does"
        return
    if first is None or _size(first) > 1:
        yield f"{best} was not found for {group['names']}"
    elif abs(first["cost"] - best.cost) > _SAME:
        yield f"{best} is not as cheap as {first['changes']}, {first['cost']}"


def _check_new_node(pod: Json, objects: list[Json], new_node: Json) -> Iterator[str]:
    name = "a-new-node"
    if new_node.get("like"):
        (like,) = (
            each
            for each in objects
            if each["kind"] == "Node" and each["metadata"]["name"] == new_node["like"]
        )
        made = deepcopy(like)
        made["metadata"] |= {"name": name, "uid": name}
        made["metadata"]["labels"]["kubernetes.io/hostname"] = name
        made["spec"].pop("unschedulable", None)
        taints = made["spec"].get("taints", ())
        made["spec"]["taints"] = [e for e in taints if not e["key"].startswith("node.kubernetes")]
    else:
        labels = {"kubernetes.io/hostname": name, **new_node["labels"]}
        amounts = {**new_node["allocatable"], "pods": "1"}
        made = {
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "uid": name, "labels": labels},
            "status": {"allocatable": amounts, "capacity": amounts},
        }  # fmt: skip
    node = decided(pod, [*objects, made])
    if not node:
        yield f"a new node {new_node} does not help"


def _check_deciding(
    pod: Json, objects: list[Json], deciding: Json, now: Explanation, tally: Tally
) -> Iterator[str]:
    """Compare with the ranking, and let the runner-up win by what is said to do that."""
    names = list(now.ranked)
    if deciding["node"] != names[0]:
        yield f"the winner is {names[0]}, not {deciding['node']}"
    if deciding["runnerUp"] != (names[1] if len(names) > 1 else ""):
        yield f"the runner-up is not {deciding['runnerUp']} of {names}"
    for each in deciding["instead"]:
        tally.instead += 1
        if each["kind"] == "weight":
            best = _with_weight(now, each["subject"], each["weight"])
        elif each["kind"] == "pod":
            left = [e for e in objects if f"default/{e['metadata']['name']}" != each["subject"]]
            best = _best(explained(pod, left))
        else:
            continue
        if deciding["runnerUp"] not in best or deciding["node"] in best:
            yield f"{each['text']} makes {sorted(best)} win, not {deciding['runnerUp']}"


def _best(explanation: Explanation) -> set[str]:
    ranked = explanation.ranked
    most = max(each.total for each in ranked.values())
    return {name for name, each in ranked.items() if each.total == most}


def _with_weight(now: Explanation, plugin: str, weight: int) -> set[str]:
    old = PROFILES[0].score_weights[plugin]
    totals = {
        name: each.total + each.scores.get(plugin, 0) // old * (weight - old)
        for name, each in now.ranked.items()
    }
    most = max(totals.values())
    return {name for name, total in totals.items() if total == most}
