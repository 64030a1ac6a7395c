"""What a scenario can expect, and how that is looked up.

    expect <room>: <pods>             of the queue: active, backoff, unschedulable, gated, in-flight
    expect nominated: <pod>=<node>    as the scheduler counts
    expect nominated in the API: ...  as the pods say
    expect bound: <pod>=<node>        all pods that say so
    expect assumed: <pods>            without the watch's word
    expect evicted: <pods>            every DELETE so far, in order
    expect marked: <pods>             by the condition DisruptionTarget
    expect refused in the API: <pods> by the condition PodScheduled
    expect reason of <pod>: <reason>  of that condition
    expect message of <pod>: <text>   what that condition contains
    expect bind requests: ...         every POST so far, in order
    expect tried: <pod>               by the last cycle
    expect free on <node>: <cpu>      by the scheduler's books
    expect at most <n> questions
    expect at most <n> bind requests
    expect at most <n>ms for <ns>     of the thread, by all pods of a namespace
    expect rest                       nothing is assumed, nominated, in flight, held or kept
    expect the cache equals the API   node by node, sum by sum
    expect every pod that fits is bound   by its CPU alone; no pod waits for room that is there
    expect each victim is deleted once

``nobody`` stands for none, ``1000 pods`` for a number; of the pods that had one name, the second
is called ``name#2``.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final, TypeAlias

from cache.comparer import compare

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.fakes.api_objects import JsonObject
    from tests.regressions.world import World

Action: TypeAlias = "Callable[[World], None]"

_ROOMS: Final = {
    "active": "active",
    "backoff": "backoff",
    "unschedulable": "unschedulable",
    "gated": "gated",
    "in-flight": "in_flight",
}
_NAMES = r"(?P<names>nobody|\d+ pods|[\w#-]+(?: [\w#-]+)*)"
_PLACES = r"(?P<names>nobody|\d+ pods|[\w#-]+=[\w-]+(?: [\w#-]+=[\w-]+)*)"


class Unmet(Exception):  # noqa: N818 - it reads "except Unmet"
    """What is found instead."""


def of(text: str) -> Action:
    """Return the check of what follows ``expect``; raises ValueError if it means nothing."""
    text = " ".join(text.split())
    for form, look in _FORMS.items():
        pattern = re.compile(form)
        match = pattern.fullmatch(text)
        if match is not None:
            return look(**match.groupdict())
    raise ValueError(f"nothing can be expected as {text!r}")


def _demand(found: Iterable[str], names: str, *, ordered: bool = False) -> None:
    listed = list(found)
    if names.endswith(" pods"):
        if len(listed) != int(names.removesuffix(" pods")):
            raise Unmet(f"found {len(listed)}")
        return
    wanted = [] if names == "nobody" else names.split()
    if (listed if ordered else sorted(listed)) != (wanted if ordered else sorted(wanted)):
        raise Unmet(f"found {' '.join(listed) or 'nobody'}")


def _room(room: str, names: str) -> Action:
    def check(world: World) -> None:
        pods = getattr(world.queue.pending(), _ROOMS[room])
        _demand([each.info.uid for each in pods], names)

    return check


def _nominated(names: str) -> Action:
    return lambda world: _demand(_nominations(world), names)


def _nominations(world: World) -> list[str]:
    nominator = world.queue.nominator
    return [
        f"{info.uid}={node}"
        for node in nominator.latest.node_names()
        for info in nominator.nominated_pods_for_node(node)
    ]


def _nominated_in_api(names: str) -> Action:
    def check(world: World) -> None:
        told = ((pod, pod["status"].get("nominatedNodeName")) for pod in world.cluster.pods())
        _demand([f"{pod['metadata']['uid']}={node}" for pod, node in told if node], names)

    return check


def _bound(names: str) -> Action:
    def check(world: World) -> None:
        told = ((pod, pod["spec"].get("nodeName")) for pod in world.cluster.pods())
        _demand([f"{pod['metadata']['uid']}={node}" for pod, node in told if node], names)

    return check


def _assumed(names: str) -> Action:
    return lambda world: _demand(world.cache.dump().assumed, names)


def _evicted(names: str) -> Action:
    return lambda world: _demand(world.cluster.deletes, names, ordered=True)


def _marked(names: str) -> Action:
    return lambda world: _demand(_pods_with(world, "DisruptionTarget", "True"), names)


def _refused(names: str) -> Action:
    return lambda world: _demand(_pods_with(world, "PodScheduled", "False"), names)


def _pods_with(world: World, condition_type: str, status: str) -> list[str]:
    return [
        pod["metadata"]["uid"]
        for pod in world.cluster.pods()
        for condition in pod["status"].get("conditions") or []
        if (condition["type"], condition["status"]) == (condition_type, status)
    ]


def _bind_requests(names: str) -> Action:
    def check(world: World) -> None:
        _demand([f"{uid}={node}" for uid, node in world.cluster.binds], names, ordered=True)

    return check


def _tried(names: str) -> Action:
    return lambda world: _demand([] if world.tried is None else [world.tried], names)


def _free(node: str, cpu: str) -> Action:
    def check(world: World) -> None:
        info = world.cache.dump().nodes.get(node)
        if info is None:
            raise Unmet(f"found no node {node}")
        free = info.allocatable.get("cpu", 0) - info.requested.get("cpu", 0)
        if free != int(cpu) * 1000:
            raise Unmet(f"found {free / 1000:g}")

    return check


def _questions(count: str) -> Action:
    def check(world: World) -> None:
        if world.questions > int(count):
            raise Unmet(f"found {world.questions}")

    return check


def _few_bind_requests(count: str) -> Action:
    def check(world: World) -> None:
        if len(world.cluster.binds) > int(count):
            raise Unmet(f"found {len(world.cluster.binds)}")

    return check


def _reason(name: str, reason: str) -> Action:
    def check(world: World) -> None:
        conditions = world.cluster.raw("pods", name)["status"].get("conditions") or []
        found = [each["reason"] for each in conditions if each["type"] == "PodScheduled"]
        if found != [reason]:
            raise Unmet(f"found {' '.join(found) or 'nothing'}")

    return check


def _message(name: str, text: str) -> Action:
    def check(world: World) -> None:
        conditions = world.cluster.raw("pods", name)["status"].get("conditions") or []
        found = [each["message"] for each in conditions if each["type"] == "PodScheduled"]
        if not any(text in each for each in found):
            raise Unmet(f"found {found}")

    return check


def _time(milliseconds: str, namespace: str) -> Action:
    def check(world: World) -> None:
        used_ms = world.bystander.used_s[namespace] * 1000
        if used_ms > int(milliseconds):
            raise Unmet(f"found {used_ms:g} ms")

    return check


def _rest() -> Action:
    def check(world: World) -> None:
        in_flight = world.queue._pods.in_flight
        left = {
            "assumed": list(world.cache.dump().assumed),
            "nominated": _nominations(world),
            "in flight": [each.queued.info.uid for each in in_flight],
            "events kept": len(in_flight.events()),
            "held by Permit": len(world.waiting_pods.list()),
            "bindings": world.bindings.in_flight,
            "preemptions": len(world.preemptions._running),
        }
        found = {what: value for what, value in left.items() if value}
        if found:
            raise Unmet(f"found {found}")

    return check


def _cache_is_true() -> Action:
    def check(world: World) -> None:
        nodes, pods = world.cluster.objects("nodes"), world.cluster.objects("pods")
        for found in compare(world.cache.dump(), nodes, pods):
            raise Unmet(str(found))

    return check


def _none_waits_in_vain() -> Action:
    def check(world: World) -> None:
        free = {
            node["metadata"]["name"]: _milli(node["status"]["allocatable"]["cpu"])
            for node in world.cluster.all_raw("nodes")
            if not node.get("spec", {}).get("unschedulable")
        }
        waiting = []
        for pod in world.cluster.pods():
            spec = pod["spec"]
            if pod["status"].get("phase") in ("Succeeded", "Failed"):
                continue
            if spec.get("nodeName") in free:
                free[spec["nodeName"]] -= _cpu_of(spec)
            elif not (spec.get("nodeName") or spec.get("schedulingGates")):
                waiting.append(pod)
        for pod in waiting:
            name = pod["metadata"]["name"]
            for node_name, milli in free.items():
                if _cpu_of(pod["spec"]) <= milli and "deletionTimestamp" not in pod["metadata"]:
                    raise Unmet(f"found that {name} fits on {node_name}")

    return check


def _cpu_of(spec: JsonObject) -> int:
    return sum(_milli(each["resources"]["requests"]["cpu"]) for each in spec["containers"])


def _milli(amount: str) -> int:
    if "e" in amount:
        return 10**9  # what nobody can read fits nowhere
    return int(amount[:-1]) if amount.endswith("m") else int(amount) * 1000


def _victims_once() -> Action:
    def check(world: World) -> None:
        twice = [uid for uid, count in Counter(world.cluster.deletes).items() if count > 1]
        if twice:
            raise Unmet(f"found {' '.join(twice)}")

    return check


_FORMS: Final[dict[str, Callable[..., Action]]] = {
    rf"(?P<room>{'|'.join(_ROOMS)}): {_NAMES}": _room,
    rf"nominated: {_PLACES}": _nominated,
    rf"nominated in the API: {_PLACES}": _nominated_in_api,
    rf"bound: {_PLACES}": _bound,
    rf"assumed: {_NAMES}": _assumed,
    rf"evicted: {_NAMES}": _evicted,
    rf"marked: {_NAMES}": _marked,
    rf"refused in the API: {_NAMES}": _refused,
    rf"bind requests: {_PLACES}": _bind_requests,
    rf"tried: {_NAMES}": _tried,
    r"free on (?P<node>\S+): (?P<cpu>-?\d+)": _free,
    r"at most (?P<count>\d+) questions": _questions,
    r"at most (?P<count>\d+) bind requests": _few_bind_requests,
    r"reason of (?P<name>\S+): (?P<reason>\w+)": _reason,
    r"message of (?P<name>\S+): (?P<text>.+)": _message,
    r"at most (?P<milliseconds>\d+)ms for (?P<namespace>\S+)": _time,
    r"rest": _rest,
    r"the cache equals the API": _cache_is_true,
    r"every pod that fits is bound": _none_waits_in_vain,
    r"each victim is deleted once": _victims_once,
}
