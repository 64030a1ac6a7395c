"""The promises about gangs, each judged on what the API server has at rest and has recorded."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from tests.controlplane.access import USER
from tests.controlplane.audit import accepted_deletes, check_binds
from tests.devices.promises import Promise
from tests.gangs.gangs import NODE_MILLI, gang_of
from tests.scenarios.failovers import binds_carried_out
from tests.scenarios.lease_witness import testify, writer_of
from tests.scenarios.replicas import LEASE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.gangs.faulty_life import Life
    from tests.gangs.gangs import Gang

_FAILING = "False"


def judge(life: Life) -> list[Promise]:
    """Return all promises about a life with faults."""
    return [
        _came_to_rest(life),
        _whole_or_said_why(life),
        _nobody_forgotten(life),
        _preemptors_whole(life),
        _nothing_held(life),
        _cache_is_right(life),
        _victims_once(life),
        _bound_once(life),
        _not_overcommitted(life),
        _written_by_leaders(life),
    ]


def free_milli(life: Life) -> dict[str, int]:
    """Return the free CPU of each node at rest."""
    free = {node["metadata"]["name"]: NODE_MILLI for node in life.nodes}
    for pod in life.pods:
        node = pod["spec"].get("nodeName")
        if node in free:
            free[node] -= milli_of(pod)
    return free


def milli_of(pod: Mapping[str, Any]) -> int:
    """Return the CPU that a pod requests."""
    quantity: str = pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    return int(quantity[:-1]) if quantity.endswith("m") else 1000 * int(quantity)


def bound_members(life: Life) -> Counter[str]:
    """Return how many members of each gang have a node at rest."""
    return Counter(gang_of(_name(pod)) for pod in life.pods if pod["spec"].get("nodeName"))


def partial(life: Life) -> list[Gang]:
    """Return the gangs below their minimum at rest that have members with nodes."""
    bound = bound_members(life)
    return [gang for gang in life.gangs if 0 < bound[gang.name] < gang.members]


def _came_to_rest(life: Life) -> Promise:
    broken = [] if life.is_at_rest else ["pods still changed when the time was up"]
    seconds = life.acts[-1][1] if life.acts else 0.0
    return Promise("all comes to rest", f"after {seconds:.0f} s", broken)


def _whole_or_said_why(life: Life) -> Promise:
    waiting: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for pod in life.pods:
        if not pod["spec"].get("nodeName"):
            waiting[gang_of(_name(pod))].append(pod)
    free = free_milli(life)
    broken = []
    found = partial(life)
    bound = bound_members(life)
    for gang in found:
        has = f"{gang.name} has {bound[gang.name]} of {gang.members}"
        members = waiting[gang.name]
        if not members:
            broken.append(f"{has}, and none waits")
        if any(room >= gang.milli for room in free.values()):
            broken.append(f"{has}, and a node has room")
        broken += [f"{has}, {_name(pod)} says nothing" for pod in members if not _says_why(pod)]
    figures = f"{len(life.gangs)} gangs, {len(found)} without room for the rest"
    return Promise("no gang is partial unless its room is gone and it says so", figures, broken)


def _says_why(pod: Mapping[str, Any]) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    return any(
        each["type"] == "PodScheduled" and each["status"] == _FAILING and each.get("message")
        for each in conditions
    )


def _nobody_forgotten(life: Life) -> Promise:
    free = sorted(free_milli(life).values())
    bound = bound_members(life)
    gangs = {gang.name: gang for gang in life.gangs}
    broken, waiting = [], 0
    alone = [pod for pod in life.pods if not pod["spec"].get("nodeName")]
    for pod in alone:
        gang = gangs.get(gang_of(_name(pod)))
        if gang is None or bound[gang.name]:
            waiting += 1
            if milli_of(pod) <= free[-1]:
                broken.append(f"{_name(pod)} waits, and a node has room")
    members = Counter(gang_of(_name(pod)) for pod in alone)
    for gang in life.gangs:
        if not bound[gang.name] and members[gang.name] >= gang.members:
            waiting += 1
            if sum(room // gang.milli for room in free) >= gang.members:
                broken.append(f"{gang.name} waits, and all of it fits")
    return Promise("nobody waits for whom there is room", f"{waiting} wait", broken)


def _preemptors_whole(life: Life) -> Promise:
    seen: defaultdict[str, set[str]] = defaultdict(set)
    for pod in life.versions:
        if pod.node:
            seen[gang_of(pod.name)].add(pod.uid)
    broken = [
        f"{gang.name}: {len(seen[gang.name])} of {gang.members} were bound"
        for gang in life.preemptors
        if len(seen[gang.name]) < gang.members
    ]
    figures = f"{len(life.preemptors)} gangs of a high priority"
    return Promise("every gang that preempts becomes whole", figures, broken)


def _nothing_held(life: Life) -> Promise:
    assumed = life.cache["cache"]["assumed"]
    broken = [f"{pod} is assumed on {node}" for pod, node in assumed.items()]
    in_flight = life.cache["queue"]["in_flight"]["count"]
    if in_flight:
        broken.append(f"{in_flight} pods are in flight")
    nominated = [
        f"{_name(pod)} is nominated for {node}"
        for pod in life.pods
        if not pod["spec"].get("nodeName")
        and (node := pod.get("status", {}).get("nominatedNodeName"))
    ]
    figures = f"{len(assumed)} assumed, {len(nominated)} nominated"
    return Promise("nothing is held at rest", figures, broken + nominated)


def _cache_is_right(life: Life) -> Promise:
    found = life.cache["comparison"]
    broken = [f"{found['count']} differences: {found}"] if found["count"] else []
    figures = f"{len(life.cache['cache']['nodes'])} nodes"
    return Promise("the cache is what the API server has", figures, broken)


def _victims_once(life: Life) -> Promise:
    deletes = [x for x in accepted_deletes(life.log, user=USER) if x.resource == "pods"]
    counts = Counter(each.name for each in deletes)
    broken = [f"{name} was deleted {count} times" for name, count in counts.items() if count > 1]
    if life.preemptors and not counts:
        broken.append("there was no victim")
    high = {gang.name for gang in life.preemptors}
    broken += [f"{name} was a victim" for name in counts if gang_of(name) in high]
    return Promise("each victim is deleted once", f"{len(counts)} victims", broken)


def _bound_once(life: Life) -> Promise:
    last = {each.uid: each for each in life.versions if each.node}
    pods = [
        {
            "metadata": {"uid": pod.uid, "name": pod.name, "namespace": "default"},
            "spec": {"nodeName": pod.node},
        }
        for pod in last.values()
    ]
    # A request in which the API server was killed is not in its log.
    counts = Counter(binds_carried_out(life.log, pods))
    broken = [f"{number} pods were bound {n} times" for n, number in counts.items() if n > 1]
    broken += check_binds(life.log, user="", pods=pods)
    by_writer: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for event in life.log:
        by_writer[writer_of(event)].append(event)
    for events in by_writer.values():
        broken += check_binds(events, user=USER)
    return Promise("each pod is bound once", f"{len(last)} pods", broken)


def _not_overcommitted(life: Life) -> Promise:
    broken = [f"{name} lacks {-room} m CPU" for name, room in free_milli(life).items() if room < 0]
    return Promise("no node has more than it can hold", f"{len(life.nodes)} nodes", broken)


def _written_by_leaders(life: Life) -> Promise:
    testimony = testify(life.log, user=USER, lease=LEASE)
    broken: Sequence[str] = testimony.violations(life.size.times.lease_s)
    figures = f"{len(testimony.tenures)} leaders, {len(testimony.writes)} writes"
    return Promise("only the leader writes", figures, broken)


def _name(pod: Mapping[str, Any]) -> str:
    name: str = pod["metadata"]["name"]
    return name
