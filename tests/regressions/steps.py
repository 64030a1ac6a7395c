"""What can happen in a scenario, one function for each form of line."""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from cache.pod_group_objects import GROUP_LABEL, PREFERRED_TOPOLOGY_KEY, TOPOLOGY_KEY
from scheduler.kinds import X_POD_GROUPS

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tests.fakes.api_objects import JsonObject
    from tests.regressions.world import World

Action: TypeAlias = "Callable[[World], None]"
Options: TypeAlias = "dict[str, str]"

_NODE_OPTIONS: Final = frozenset({"cpu", "rack"})
_GROUP_OPTIONS: Final = frozenset({"min", "rack"})
_POD_OPTIONS: Final = frozenset(
    {
        "cpu",
        "priority",
        "on",
        "gate",
        "finalizer",
        "copies",
        "namespace",
        "owner",
        "group",
        "scheduler",
    }
)

_NUMBERS: Final = {
    "cpu": r"\d+(e\d+|m)?",
    "priority": r"\d+",
    "copies": r"\d+",
    "min": r"-?\d+",
}


class _Form(NamedTuple):
    pattern: re.Pattern[str]
    options: frozenset[str]
    run: Callable[..., None]


_FORMS: list[_Form] = []


def _step(form: str, options: frozenset[str] = frozenset()) -> Callable[..., Any]:
    """Register a function for lines of a form; ``{word}`` stands for a word that it is given."""
    pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^\\s=]+)", form)

    def register(run: Callable[..., None]) -> Callable[..., None]:
        more = r"(?P<options>( \S+)*)" if options else ""
        _FORMS.append(_Form(re.compile(pattern + more), options, run))
        return run

    return register


def of(text: str) -> Action:
    """Return what a line does; raises ValueError for one that means nothing."""
    text = " ".join(text.split())
    for form in _FORMS:
        match = form.pattern.fullmatch(text)
        if match is None:
            continue
        words: dict[str, Any] = match.groupdict()
        if form.options:
            words["options"] = _options(words["options"], form.options)
        return lambda world: form.run(world, **words)
    raise ValueError(f"no step reads {text!r}")


def _options(text: str, known: frozenset[str]) -> Options:
    options: Options = {}
    for word in text.split():
        key, equals, value = word.partition("=")
        if key not in known or not equals or not value:
            raise ValueError(f"{word!r} is none of {', '.join(f'{k}=' for k in sorted(known))}")
        if key in _NUMBERS and not re.fullmatch(_NUMBERS[key], value):
            raise ValueError(f"{word!r}: {value!r} is no number")
        options[key] = value
    return options


def in_the_middle(action: Action) -> Action:
    """Return a step that lets something happen in the middle of the next cycle."""

    def happen(world: World) -> None:
        action(world)
        world.hear()

    return lambda world: world.bystander.meanwhile.append(lambda: happen(world))


# --- the cluster ------------------------------------------------------------------------------


@_step("node {name}", _NODE_OPTIONS)
def _node(world: World, name: str, options: Options) -> None:
    room = {"cpu": options.get("cpu", "4"), "memory": "16Gi", "pods": "110"}
    node: JsonObject = {"status": {"capacity": room, "allocatable": room}}
    if "rack" in options:
        node["metadata"] = {"labels": {"rack": options["rack"]}}
    _create_or_change(world, "nodes", name, node)


def _create_or_change(world: World, resource: str, name: str, obj: JsonObject) -> None:
    if world.cluster.exists(resource, name):
        world.cluster.change(resource, name, obj)
    else:
        world.cluster.create(resource, name, obj)


@_step("group {name}", _GROUP_OPTIONS)
def _group(world: World, name: str, options: Options) -> None:
    group: JsonObject = {"spec": {"minMember": int(options.get("min", "1"))}}
    if "rack" in options:
        key = {"required": TOPOLOGY_KEY, "preferred": PREFERRED_TOPOLOGY_KEY}[options["rack"]]
        group["metadata"] = {"annotations": {key: "rack"}}
    _create_or_change(world, X_POD_GROUPS.resource, name, group)


@_step("delete group {name}")
def _delete_group(world: World, name: str) -> None:
    world.cluster.remove(X_POD_GROUPS.resource, name)


@_step("cordon node {name}")
def _cordon_node(world: World, name: str) -> None:
    world.cluster.change("nodes", name, {"spec": {"unschedulable": True}})


@_step("uncordon node {name}")
def _uncordon_node(world: World, name: str) -> None:
    world.cluster.change("nodes", name, {"spec": {"unschedulable": None}})


@_step("delete node {name}")
def _delete_node(world: World, name: str) -> None:
    world.cluster.remove("nodes", name)


@_step("pod {name}", _POD_OPTIONS)
def _pod(world: World, name: str, options: Options) -> None:
    copies = options.get("copies")
    names = [name] if copies is None else [f"{name}-{index}" for index in range(int(copies))]
    for each in names:
        world.cluster.create("pods", each, _pod_object(options))


def _pod_object(options: Options) -> JsonObject:
    requests = {"cpu": options.get("cpu", "1")}
    spec: JsonObject = {
        "schedulerName": options.get("scheduler", "berth"),
        "priority": int(options.get("priority", "0")),
        "containers": [{"name": "main", "image": "pause", "resources": {"requests": requests}}],
    }
    if "on" in options:
        spec["nodeName"] = options["on"]
    if "gate" in options:
        spec["schedulingGates"] = [{"name": options["gate"]}]
    metadata: JsonObject = {}
    if "finalizer" in options:
        metadata["finalizers"] = [options["finalizer"]]
    if "namespace" in options:
        metadata["namespace"] = options["namespace"]
    if "group" in options:
        metadata["labels"] = {GROUP_LABEL: options["group"]}
    if "owner" in options:
        owner = {"kind": "ReplicaSet", "name": options["owner"], "uid": options["owner"]}
        metadata["ownerReferences"] = [{**owner, "apiVersion": "apps/v1", "controller": True}]
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}


@_step("the kubelet rejects {name} with {reason}")
def _reject(world: World, name: str, reason: str) -> None:
    world.cluster.change("pods", name, {"status": {"phase": "Failed", "reason": reason}})


@_step("delete pod {name}")
def _delete_pod(world: World, name: str) -> None:
    world.cluster.ask_to_go(name)


@_step("end pod {name}")
def _end_pod(world: World, name: str) -> None:
    world.cluster.remove("pods", name)


@_step("deleted pods end")
def _end_deleted_pods(world: World) -> None:
    for pod in world.cluster.pods():
        if "deletionTimestamp" in pod["metadata"]:
            world.cluster.remove("pods", pod["metadata"]["name"])


@_step("finish pod {name}")
def _finish_pod(world: World, name: str) -> None:
    world.cluster.change("pods", name, {"status": {"phase": "Succeeded"}})


@_step("resize pod {name}", frozenset({"cpu"}))
def _resize_pod(world: World, name: str, options: Options) -> None:
    containers = _pod_object(options)["spec"]["containers"]
    world.cluster.change("pods", name, {"spec": {"containers": containers}})


@_step("recreate pod {name}")
def _recreate_pod(world: World, name: str) -> None:
    old = copy.deepcopy(world.cluster.raw("pods", name))
    spec, metadata = old["spec"], {"namespace": old["metadata"]["namespace"]}
    spec.pop("nodeName", None)
    world.cluster.remove("pods", name)
    new = {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}
    world.cluster.create("pods", name, new)


@_step("ungate pod {name}")
def _ungate_pod(world: World, name: str) -> None:
    world.cluster.change("pods", name, {"spec": {"schedulingGates": None}})


@_step("label pod {name} {key}={value}")
def _label_pod(world: World, name: str, key: str, value: str) -> None:
    world.cluster.change("pods", name, {"metadata": {"labels": {key: value}}})


@_step("another scheduler binds {name} to {node}")
def _bind(world: World, name: str, node: str) -> None:
    world.cluster.assign(name, node)


# --- the way to the API server ----------------------------------------------------------------


@_step("hold watch of (?P<resource>pods|nodes)")
def _hold_watch(world: World, resource: str) -> None:
    world.cluster.hold_watch(resource)


@_step("release watch of (?P<resource>pods|nodes)")
def _release_watch(world: World, resource: str) -> None:
    world.cluster.release_watch(resource)


@_step("lose events of (?P<resource>pods|nodes)")
def _lose_events(world: World, resource: str) -> None:
    world.cluster.lose_events(resource)


@_step("hold (?P<verb>binds|statuses|deletes|connections)( of (?P<name>\\S+))?")
def _hold(world: World, verb: str, name: str | None) -> None:
    world.cluster.hold(verb, name or "")


@_step("release (?P<verb>binds|statuses|deletes|connections)( with (?P<status>\\d+))?")
def _release(world: World, verb: str, status: str | None) -> None:
    world.cluster.release(verb, int(status or "0"))


@_step("refuse next of (?P<verb>binds|statuses|deletes) with (?P<status>\\d+)( for (?P<s>\\d+)s)?")
def _refuse(world: World, verb: str, status: str, s: str | None) -> None:
    world.cluster.refuse_next(verb, int(status), int(s or "0"))


@_step("refuse (?P<verb>binds|statuses|deletes) of {name} with (?P<status>\\d+)")
def _refuse_all(world: World, verb: str, name: str, status: str) -> None:
    world.cluster.refuse(verb, name, int(status))


@_step("lose answers of binds of {name}")
def _lose_answers(world: World, name: str) -> None:
    world.cluster.lose_answers(name)


@_step("refuse (?P<verb>binds|statuses|deletes) of {name} no longer")
def _refuse_no_longer(world: World, verb: str, name: str) -> None:
    world.cluster.refuse(verb, name, 0)


@_step("save etcd")
def _save_etcd(world: World) -> None:
    world.cluster.save()


@_step("restore etcd")
def _restore_etcd(world: World) -> None:
    world.restore()


# --- the scheduler ----------------------------------------------------------------------------


@_step("cycle")
def _cycle(world: World) -> None:
    world.cycle()


@_step("the next (?P<what>hand-over|report) breaks down")
def _break_next(world: World, what: str) -> None:
    world.break_next(what)


@_step("the profile is taken away")
def _take_profile_away(world: World) -> None:
    world.serve("another")


@_step("the profile comes back")
def _bring_profile_back(world: World) -> None:
    world.serve("berth")


@_step("advance (?P<seconds>\\d+)s")
def _advance(world: World, seconds: str) -> None:
    world.advance(float(seconds))


@_step("look for lost events")
def _look(world: World) -> None:
    world.look()


@_step("queue forgets {name}")
def _forget(world: World, name: str) -> None:
    world.queue.delete(world.cluster.raw("pods", name)["metadata"]["uid"])


@_step("loop is busy")
def _busy_loop(world: World) -> None:
    world.busy_loop = True


@_step("loop is free")
def _free_loop(world: World) -> None:
    world.free_loop()


@_step("plugin keeps {name} out")
def _keep_out(world: World, name: str) -> None:
    world.bystander.kept_out.add(name)


@_step("plugin lets {name} in")
def _let_in(world: World, name: str) -> None:
    world.bystander.kept_out.discard(name)


@_step("plugin holds {name}")
def _hold_at_permit(world: World, name: str) -> None:
    world.bystander.held.add(name)


@_step("plugin (?P<verb>allows|rejects) {name}")
def _decide_at_permit(world: World, verb: str, name: str) -> None:
    world.bystander.held.discard(name)
    waiting = world.waiting_pods.get(world.cluster.raw("pods", name)["metadata"]["uid"])
    if waiting is None:
        raise ValueError(f"nobody holds {name}")
    if verb == "allows":
        waiting.allow("Bystander")
    else:
        waiting.reject("Bystander", "not now")


@_step("plugin fails next reserve")
def _fail_reserve(world: World) -> None:
    world.bystander.fails_reserve = True


@_step("plugin fails next filter")
def _fail_filter(world: World) -> None:
    world.judge.fails = True


@_step("plugin needs (?P<milliseconds>\\d+)ms for {name}")
def _need_time(world: World, milliseconds: str, name: str) -> None:
    world.bystander.needs_s[name] = int(milliseconds) / 1000


@_step("activate {name}")
def _activate(world: World, name: str) -> None:
    world.queue.activate([name])


@_step("count questions")
def _count(world: World) -> None:
    world.questions = 0
