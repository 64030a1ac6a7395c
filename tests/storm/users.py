"""What users, other schedulers and the cluster's operators do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tests.storm import objects
from tests.storm.cluster import OTHER, OWN, Controller

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from tests.storm.etcd import Key, Stored
    from tests.storm.world import World

ACTIONS: Final[dict[str, Callable[[World, random.Random], object]]] = {}
WEIGHTS: Final[dict[str, float]] = {}


def _action(weight: float) -> Callable[[Any], Any]:
    def register(act: Any) -> Any:
        ACTIONS[act.__name__] = act
        WEIGHTS[act.__name__] = weight
        return act

    return register


def some(world: World, resource: str, dice: random.Random) -> tuple[Key, Stored] | None:
    """Return one of the objects of a resource, or None."""
    objs = world.servers.etcd.objects[resource]
    return dice.choice(list(objs.items())) if objs else None


def _some_pod(world: World, dice: random.Random, *, pending: bool) -> tuple[Key, Stored] | None:
    pods = [
        (key, stored)
        for key, stored in world.servers.etcd.objects["pods"].items()
        if not stored.data["spec"].get("nodeName") or not pending
    ]
    return dice.choice(pods[-8:] if pending else pods) if pods else None


# --- pods ---------------------------------------------------------------------------------------


@_action(6.0)
def new_app(world: World, dice: random.Random) -> None:
    """A controller appears, with its pods."""
    cluster = world.cluster
    if sum(each.wanted for each in cluster.controllers.values()) > 60:
        shrink_app(world, dice)
        return
    app = dice.choice(objects.APPS)
    spec = objects.pod_spec(dice, OWN if dice.random() < 0.93 else OTHER)
    if dice.random() < 0.12:
        spec["affinity"] = objects.apart(app)
    elif dice.random() < 0.12:
        spec["topologySpreadConstraints"] = [objects.spread(app)]
    metadata: dict[str, Any] = {"labels": {"app": app}}
    if dice.random() < 0.05:
        metadata["finalizers"] = ["example.com/wait"]
    name = f"{app}-{len(cluster.controllers)}"
    controller = Controller(
        name,
        dice.choice(objects.NAMESPACES),
        dice.choice((1, 2, 3, 5, 8)),
        {"metadata": metadata, "spec": spec},
        names_stay=dice.random() < 0.4,
    )
    cluster.controllers[name] = controller
    cluster.reconcile(controller)


@_action(3.0)
def shrink_app(world: World, dice: random.Random) -> None:
    """A controller wants fewer pods."""
    _scale(world, dice, -dice.choice((1, 2, 99)))


@_action(2.0)
def grow_app(world: World, dice: random.Random) -> None:
    """A controller wants more pods."""
    _scale(world, dice, dice.choice((1, 2)))


def _scale(world: World, dice: random.Random, by: int) -> None:
    controllers = world.cluster.controllers
    if controllers:
        controller = controllers[dice.choice(list(controllers))]
        controller.wanted = min(max(controller.wanted + by, 0), 12)
        world.cluster.reconcile(controller)


@_action(6.0)
def delete_pod(world: World, dice: random.Random) -> None:
    """A pod is deleted; its controller makes another."""
    found = _some_pod(world, dice, pending=dice.random() < 0.4)
    if found is not None:
        world.servers.delete("pods", found[0])


@_action(1.0)
def kill_pod(world: World, dice: random.Random) -> None:
    """A pod is deleted without a grace period."""
    found = _some_pod(world, dice, pending=False)
    if found is not None:
        key, stored = found
        if stored.data["spec"].get("nodeName"):
            world.cluster.disturb(stored.data["spec"]["nodeName"], 5.0)
        world.servers.etcd.delete("pods", key)


@_action(2.0)
def finish_pod(world: World, dice: random.Random) -> None:
    """A pod ends by itself."""
    found = _some_pod(world, dice, pending=False)
    if found is not None and found[1].data["spec"].get("nodeName"):
        phase = dice.choice(("Succeeded", "Failed"))
        world.servers.etcd.edit("pods", found[0], lambda pod: pod["status"].update(phase=phase))


@_action(1.5)
def ungate_pods(world: World, dice: random.Random) -> None:
    """Gates are taken away."""
    for key, stored in list(world.servers.etcd.objects["pods"].items()):
        if stored.data["spec"].get("schedulingGates") and dice.random() < 0.7:
            world.servers.etcd.edit("pods", key, lambda pod: pod["spec"].pop("schedulingGates"))


@_action(1.5)
def label_pod(world: World, dice: random.Random) -> None:
    """A pod gets another label."""
    found = _some_pod(world, dice, pending=dice.random() < 0.5)
    if found is not None:
        app = dice.choice(objects.APPS)
        spec = found[1].data["spec"]
        if spec.get("nodeName"):
            world.cluster.disturb(spec["nodeName"], 5.0)
        world.servers.etcd.edit(
            "pods", found[0], lambda pod: pod["metadata"]["labels"].update(app=app)
        )


# --- nodes --------------------------------------------------------------------------------------


@_action(0.8)
def new_node(world: World, dice: random.Random) -> None:
    """A node joins."""
    if len(world.servers.etcd.objects["nodes"]) < 12:
        world.add_node(dice)


@_action(0.6)
def delete_node(world: World, dice: random.Random) -> None:
    """A node leaves; its pods are collected later."""
    found = some(world, "nodes", dice)
    if found is not None and len(world.servers.etcd.objects["nodes"]) > 2:
        world.cluster.disturb(found[0][1])
        world.servers.etcd.delete("nodes", found[0])


@_action(0.6)
def halve_node(world: World, dice: random.Random) -> None:
    """A node vanishes and comes back, half the size."""
    found = some(world, "nodes", dice)
    if found is None:
        return
    key, stored = found
    cpu = max(objects.milli(stored.data["status"]["allocatable"]["cpu"]) // 2, 1000)
    zone = stored.data["metadata"]["labels"][objects.ZONE]
    world.cluster.disturb(key[1])
    world.simulation.counts["F13 node comes back half the size"] += 1
    world.servers.etcd.delete("nodes", key)

    def come_back() -> None:
        if world.servers.etcd.find("nodes", key) is None:
            world.servers.etcd.create("nodes", objects.node(key[1], cpu, 2048, zone))

    world.simulation.after(dice.choice((0.0, 0.002, 0.5, 5.0)), come_back)


@_action(1.5)
def change_node(world: World, dice: random.Random) -> None:
    """A node is cordoned, tainted, labelled, or neither any more."""
    found = some(world, "nodes", dice)
    if found is None:
        return
    change = dice.choice(("cordon", "uncordon", "uncordon", "taint", "untaint", "untaint", "zone"))

    def edit(node: dict[str, Any]) -> None:
        match change:
            case "cordon":
                node["spec"]["unschedulable"] = True
            case "uncordon":
                node["spec"].pop("unschedulable", None)
            case "taint":
                node["spec"]["taints"] = [objects.TAINT]
            case "untaint":
                node["spec"].pop("taints", None)
            case "zone":
                node["metadata"]["labels"][objects.ZONE] = dice.choice(objects.ZONES)

    world.servers.etcd.edit("nodes", found[0], edit)


@_action(1.0)
def heartbeat(world: World, dice: random.Random) -> None:
    """All nodes report that they are well."""
    for key in list(world.servers.etcd.objects["nodes"]):
        message = {"message": str(dice.random())}
        world.servers.etcd.edit(
            "nodes",
            key,
            lambda node, message=message: node["status"]["conditions"][0].update(message),
        )


# --- others -------------------------------------------------------------------------------------


@_action(1.5)
def other_scheduler(world: World, dice: random.Random) -> None:
    """Another scheduler binds its pods; it knows of no others."""
    nodes = list(world.servers.etcd.objects["nodes"])
    for pod in world.cluster.pending(OTHER):
        if nodes:
            metadata, name = pod["metadata"], dice.choice(nodes)[1]
            world.cluster.disturb(name)
            world.servers.bind((metadata["namespace"], metadata["name"]), name, metadata["uid"])


@_action(0.4)
def budget(world: World, dice: random.Random) -> None:
    """A disruption budget appears, changes or goes."""
    etcd, app = world.servers.etcd, dice.choice(objects.APPS)
    namespace = dice.choice(objects.NAMESPACES)
    key = (namespace, f"budget-{app}")
    allowed = dice.choice((0, 1, 2))
    if etcd.find("poddisruptionbudgets", key) is None:
        etcd.create(
            "poddisruptionbudgets",
            {
                "metadata": {"name": key[1], "namespace": namespace},
                "spec": {"selector": {"matchLabels": {"app": app}}},
                "status": {"disruptionsAllowed": allowed},
            },
        )
    elif dice.random() < 0.5:
        etcd.delete("poddisruptionbudgets", key)
    else:
        etcd.edit(
            "poddisruptionbudgets",
            key,
            lambda obj: obj["status"].update(disruptionsAllowed=allowed),
        )
