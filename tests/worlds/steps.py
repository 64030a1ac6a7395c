"""What can happen in a world: all that can in a scenario, and what is said in JSON.

    create <resource> <name> <JSON>        of ``tests.regressions.cluster.KINDS``
    change <resource> <name> <JSON>        a merge patch
    remove <resource> <name>
    kubelets start pods                    those that are bound, and not yet running
    kubelets end pods                      those that are being deleted
    volumes are bound                      the PV controller and the provisioner catch up
    hold watch of <resource>               until it is released
    release watch of <resource>
    refuse next of <verb> with <status>
    lose the next answer of <verb>         it has its effect all the same
    lose the next request of <verb>        it never arrives
    the profile is without <plugin>
    meanwhile <any other step>             in the middle of the next cycle

A step that makes no sense at its time (the pod is gone, is bound already) does nothing: what
happens is made up beforehand, and what the scheduler does is not.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TypeAlias

from tests.fakes.api_objects import ApiProblemError
from tests.regressions import steps as scenario_steps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.fakes.api_objects import JsonObject
    from tests.worlds.playing import RecordedWorld

Action: TypeAlias = "Callable[[RecordedWorld], None]"

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"

_FORMS: Final[list[tuple[re.Pattern[str], Callable[..., None]]]] = []


def _step(pattern: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    def register(run: Callable[..., None]) -> Callable[..., None]:
        _FORMS.append((re.compile(pattern), run))
        return run

    return register


def of(text: str) -> Action:
    """Return what a line does; raises ValueError for one that means nothing."""
    if text.startswith("meanwhile "):
        return scenario_steps.in_the_middle(_if_possible(of(text.removeprefix("meanwhile "))))
    for pattern, run in _FORMS:
        match = pattern.fullmatch(text)
        if match is not None:
            return _if_possible(_with(run, match.groupdict()))
    return _if_possible(scenario_steps.of(text))


def _with(run: Callable[..., None], words: dict[str, str | None]) -> Action:
    return lambda world: run(world, **words)


def _if_possible(action: Action) -> Action:
    def act(world: RecordedWorld) -> None:
        try:
            action(world)
        except ApiProblemError as problem:
            # What others ask of the API server is refused as it would be: 404, 409.
            world.impossible.append(str(problem))

    return act


# --- objects ----------------------------------------------------------------------------------


@_step(r"create (?P<resource>\w+) (?P<name>\S+) (?P<obj>\{.*\})")
def _create(world: RecordedWorld, resource: str, name: str, obj: str) -> None:
    world.cluster.create(resource, name, json.loads(obj))


@_step(r"change (?P<resource>\w+) (?P<name>\S+) (?P<patch>\{.*\})")
def _change(world: RecordedWorld, resource: str, name: str, patch: str) -> None:
    world.cluster.change(resource, name, json.loads(patch))


@_step(r"remove (?P<resource>\w+) (?P<name>\S+)")
def _remove(world: RecordedWorld, resource: str, name: str) -> None:
    world.cluster.remove(resource, name)


@_step(r"(?P<line>(finish pod|the kubelet rejects) (?P<name>\S+).*)")
def _end_on_node(world: RecordedWorld, line: str, name: str) -> None:
    pod = world.cluster.raw("pods", name)
    if _node_of(pod) and not _is_over(pod):
        scenario_steps.of(line)(world)


@_step(r"(?P<line>another scheduler binds (?P<name>\S+) to (?P<node>\S+))")
def _bind_elsewhere(world: RecordedWorld, line: str, name: str, node: str) -> None:
    pod = world.cluster.raw("pods", name)
    world.cluster.raw("nodes", node)
    if not (_node_of(pod) or pod["spec"].get("schedulingGates") or _is_leaving(pod)):
        scenario_steps.of(line)(world)


def _node_of(pod: JsonObject) -> str:
    return pod["spec"].get("nodeName", "")


def _is_over(pod: JsonObject) -> bool:
    return pod["status"].get("phase") in ("Failed", "Succeeded")


def _is_leaving(pod: JsonObject) -> bool:
    return "deletionTimestamp" in pod["metadata"]


# --- kubelets and controllers -----------------------------------------------------------------


@_step("kubelets start pods")
def _start_pods(world: RecordedWorld) -> None:
    now = datetime.fromtimestamp(world.wall_clock(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for pod in world.cluster.pods():
        if _node_of(pod) and pod["status"].get("phase") == "Pending":
            started = {"status": {"phase": "Running", "startTime": now}}
            world.cluster.change("pods", pod["metadata"]["name"], started)


@_step("kubelets end pods")
def _end_pods(world: RecordedWorld) -> None:
    for pod in world.cluster.pods():
        if _is_leaving(pod) and not pod["metadata"].get("finalizers"):
            world.cluster.remove("pods", pod["metadata"]["name"])


@_step("volumes are bound")
def _bind_volumes(world: RecordedWorld) -> None:
    cluster = world.cluster
    for claim in _unbound_claims(world):
        name = claim["metadata"]["name"]
        volume = _volume_for(world, name)
        is_immediate = claim["spec"]["storageClassName"] == "now"
        is_selected = SELECTED_NODE in claim["metadata"].get("annotations", {})
        if volume is None and (is_selected or is_immediate):
            volume = f"pv-of-{name}"
            cluster.create("persistentvolumes", volume, _provisioned(claim))
        if volume is not None:
            done = {"annotations": {BIND_COMPLETED: "yes"}}
            bound = {"spec": {"volumeName": volume}, "status": {"phase": "Bound"}}
            cluster.change("persistentvolumes", volume, {"status": {"phase": "Bound"}})
            cluster.change("persistentvolumeclaims", name, {"metadata": done, **bound})


def _unbound_claims(world: RecordedWorld) -> Iterator[JsonObject]:
    for claim in world.cluster.all_raw("persistentvolumeclaims"):
        if not claim["spec"].get("volumeName"):
            yield claim


def _volume_for(world: RecordedWorld, claim: str) -> str | None:
    for volume in world.cluster.all_raw("persistentvolumes"):
        reference = volume["spec"].get("claimRef") or {}
        if reference.get("name") == claim:
            return volume["metadata"]["name"]
    return None


def _provisioned(claim: JsonObject) -> JsonObject:
    metadata, spec = claim["metadata"], claim["spec"]
    node = metadata.get("annotations", {}).get(SELECTED_NODE)
    made = {
        "capacity": spec["resources"]["requests"],
        "accessModes": spec["accessModes"],
        "storageClassName": spec["storageClassName"],
        "claimRef": {key: metadata[key] for key in ("namespace", "name", "uid")},
        "csi": {"driver": "csi.example.com", "volumeHandle": metadata["name"]},
    }
    if node is not None:
        terms = [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]
        made["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": terms}]}}
    return {"spec": made, "status": {"phase": "Available"}}


# --- the way to the API server, and the scheduler ---------------------------------------------


@_step(r"hold watch of (?P<resource>\w+)")
def _hold_watch(world: RecordedWorld, resource: str) -> None:
    world.cluster.hold_watch(resource)


@_step(r"release watch of (?P<resource>\w+)")
def _release_watch(world: RecordedWorld, resource: str) -> None:
    world.cluster.release_watch(resource)


@_step(r"refuse next of (?P<verb>events|volumes) with (?P<status>\d+)")
def _refuse(world: RecordedWorld, verb: str, status: str) -> None:
    world.cluster.refuse_next(verb, int(status))


@_step(r"lose the next (?P<what>answer|request) of (?P<verb>\w+)")
def _lose(world: RecordedWorld, what: str, verb: str) -> None:
    world.cluster.lose_answer(verb, carried_out=what == "answer")


@_step(r"the profile is without (?P<plugin>\w+)")
def _reload(world: RecordedWorld, plugin: str) -> None:
    world.serve("berth", without=plugin)
