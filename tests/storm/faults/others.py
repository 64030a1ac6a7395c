"""What befalls pods and nodes while Berth decides about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.storm import objects
from tests.storm.cluster import OTHER, OWN, Controller
from tests.storm.faults.registry import (
    action,
    end_app,
    happened,
    is_bind,
    more_pods,
    trouble,
    when_binding,
)
from tests.storm.troubles import INTERNAL, SHUTTING_DOWN, Fate
from tests.storm.users import some

if TYPE_CHECKING:
    import random

    from tests.storm.replica import Replica
    from tests.storm.world import World


@action()
def bound_by_another(world: World, dice: random.Random) -> None:
    """F17: another scheduler binds a pod of ours."""
    pending = world.cluster.pending()
    nodes = list(world.servers.etcd.objects["nodes"])
    if pending and nodes:
        metadata, name = dice.choice(pending)["metadata"], dice.choice(nodes)[1]
        world.cluster.disturb(name)
        world.cluster.bound_by_others.add(metadata["uid"])
        world.servers.bind((metadata["namespace"], metadata["name"]), name, metadata["uid"])
        happened(world, "F17 bound by another")


@action()
def recreate_assumed_pods(world: World, dice: random.Random) -> None:
    """F15: bindings take a while, and their pods are made again under their names meanwhile."""
    etcd, left = world.servers.etcd, [dice.choice((1, 3))]
    trouble(world, dice, "F20 slow bind", 0.7, is_bind, Fate(delay_s=0.03), (2.0,))

    def recreate() -> None:
        leader = world.leader()
        assumed = leader.cache.assumed_nodes() if leader else {}
        for key, stored in list(etcd.objects["pods"].items()):
            pod = stored.data
            uid = pod["metadata"]["uid"]
            if uid in assumed and not pod["spec"].get("nodeName") and left[0]:
                left[0] -= 1
                again = {"name": key[1], "namespace": key[0], "labels": {"app": "again"}}
                spec = {**pod["spec"], "nodeSelector": {objects.HOSTNAME: "nowhere"}}
                etcd.delete("pods", key)
                etcd.create("pods", {"metadata": again, "spec": spec})
                happened(world, "F15 pod made again while it is bound")
                world.simulation.after(20.0, lambda key=key: _delete(world, key))
        if left[0] and world.simulation.now_s < until_s:
            world.simulation.after(0.01, recreate)

    until_s = world.simulation.now_s + 2.0
    more_pods(world, dice)
    recreate()


def _delete(world: World, key: tuple[str, str]) -> None:
    if world.servers.etcd.find("pods", key) is not None:
        world.servers.delete("pods", key)


@action()
def recreate_pods(world: World, dice: random.Random) -> None:
    """F14, F15: pods are deleted, and made again under their names, while they are bound."""

    def recreate() -> None:
        leader = world.leader()
        for pod in world.cluster.pending()[: dice.choice((1, 3))]:
            metadata = pod["metadata"]
            key = (metadata["namespace"], metadata["name"])
            if world.servers.etcd.find("pods", key) is not None:
                world.servers.delete("pods", key)
                is_assumed = metadata["uid"] in (leader.cache.assumed_nodes() if leader else {})
                happened(world, f"{'F14 ' if is_assumed else ''}pending pod deleted")

    for delay_s in (0.0, 0.001, 0.003, 0.01):
        world.simulation.after(delay_s, recreate)


@action()
def nodes_go_while_binding(world: World, dice: random.Random) -> None:
    """F12: a node goes while pods are bound to it."""
    leader = world.leader()
    assumed = sorted(set(leader.cache.assumed_nodes().values())) if leader else []
    etcd = world.servers.etcd
    if assumed and len(etcd.objects["nodes"]) > 2:
        key = ("", dice.choice(assumed))
        if etcd.find("nodes", key) is not None:
            world.cluster.disturb(key[1])
            etcd.delete("nodes", key)
            happened(world, "F12 node deleted while assumed")
            return
    found = some(world, "nodes", dice)
    if found is not None and len(etcd.objects["nodes"]) > 2:
        world.cluster.disturb(found[0][1])
        etcd.delete("nodes", found[0])


@action(1.0)
def dead_kubelet(world: World, dice: random.Random) -> None:
    """F32: a kubelet does nothing for a while, so no pod there ends."""
    found = some(world, "nodes", dice)
    if found is not None:
        name = found[0][1]
        world.cluster.dead_kubelets.add(name)
        happened(world, "F32 dead kubelet")
        world.simulation.after(20.0, lambda: world.cluster.dead_kubelets.discard(name))


@action(1.5)
def unreadable_pods(world: World, dice: random.Random) -> None:
    """F28: pods with an amount that the API server takes and nobody can count with."""
    spec = objects.pod_spec(dice, OWN)
    spec["containers"][0]["resources"]["requests"]["cpu"] = "1e102"
    controller = Controller(
        f"bad-{len(world.cluster.controllers)}", "default", 1, {"metadata": {}, "spec": spec}
    )
    controller.template["metadata"]["labels"] = {"app": "bad"}
    world.cluster.controllers[controller.name] = controller
    world.cluster.reconcile(controller)
    happened(world, "F28 unreadable pod")
    world.simulation.after(dice.choice((1.0, 10.0)), lambda: end_app(world, controller))


@action(1.0)
def flood(world: World, dice: random.Random) -> None:
    """F30: many pods at once, which go soon."""
    controller = Controller(
        f"flood-{len(world.cluster.controllers)}",
        "other",
        60,
        {"metadata": {"labels": {"app": "flood"}}, "spec": objects.pod_spec(dice, OWN)},
    )
    world.cluster.controllers[controller.name] = controller
    world.cluster.reconcile(controller)
    happened(world, "F30 flood of pods")
    world.simulation.after(dice.choice((0.5, 5.0)), lambda: end_app(world, controller))


@action(1.0)
def bound_pods_become_unreadable(world: World, dice: random.Random) -> None:
    """F28: pods that run get an amount that nobody can count with, and some of them go then."""
    etcd = world.servers.etcd
    running = [
        key
        for key, stored in etcd.objects["pods"].items()
        if stored.data["spec"].get("nodeName") and not objects.is_over(stored.data)
    ]
    more_pods(world, dice)
    for key in dice.sample(running, min(len(running), 3)):
        etcd.edit("pods", key, _make_unreadable)
        happened(world, "F28 pod on a node becomes unreadable")
        if dice.random() < 0.5:
            world.simulation.after(
                dice.choice((0.0, 1.0, 8.0)), lambda key=key: _delete(world, key)
            )


def _make_unreadable(pod: dict[str, Any]) -> None:
    """Set an amount that kubelets do not look at here: a real one keeps what it has allocated."""
    pod["spec"]["containers"][0]["resources"]["requests"]["ephemeral-storage"] = "1e102"


@action(2.0)
def room_taken_while_binding(world: World, dice: random.Random) -> None:
    """F17: bindings fail for a while, and another scheduler fills their nodes meanwhile."""
    for_s = dice.choice((2.0, 8.0))
    fate = dice.choice((Fate(False, INTERNAL), Fate(False, SHUTTING_DOWN)))
    trouble(world, dice, "F19 bindings fail", 1.0, is_bind, fate, (for_s,))

    def fill(leader: Replica) -> None:
        for name in sorted(set(leader.cache.assumed_nodes().values())):
            room = world.cluster.free_on(name)
            if room is None or min(room) <= 0:
                continue
            world.cluster.disturb(name)
            happened(world, "F17 node filled by another")
            requests = {"cpu": f"{room[0]}m", "memory": f"{room[1]}Mi"}
            container = {"name": "main", "image": "image", "resources": {"requests": requests}}
            spec = {"schedulerName": OTHER, "containers": [container], "priority": 0}
            metadata = {
                "generateName": "filler-",
                "namespace": "other",
                "labels": {"app": "filler"},
            }
            stored = world.servers.etcd.create("pods", {"metadata": metadata, "spec": spec})
            key = ("other", stored.data["metadata"]["name"])
            world.servers.bind(key, name, stored.data["metadata"]["uid"])
            world.simulation.after(20.0, lambda key=key: _delete(world, key))

    when_binding(world, dice, fill)


@action(1.0)
def kubelet_rejects_app(world: World, dice: random.Random) -> None:
    """F31: a kubelet rejects all pods of an app, for reasons that only it knows."""
    found = some(world, "nodes", dice)
    if found is None:
        return
    name = f"unwanted-{len(world.cluster.controllers)}"
    template = {"metadata": {"labels": {"app": name}}, "spec": objects.pod_spec(dice, OWN)}
    template["spec"].pop("schedulingGates", None)
    template["spec"]["nodeSelector"] = {objects.HOSTNAME: found[0][1]}
    controller = Controller(name, "default", 1, template)
    world.cluster.controllers[name] = controller
    world.cluster.unwanted.add(name)
    world.cluster.reconcile(controller)
    happened(world, "F31 kubelet rejects an app")
    world.simulation.after(40.0, lambda: end_app(world, controller))
