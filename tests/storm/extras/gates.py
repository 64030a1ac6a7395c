"""Gates: pods wait behind several, which open one by one, while pods are tried, and at the end.

I7 is checked at each binding, as in all worlds: nobody binds a pod behind a gate. I3 is checked at
rest, after gates have opened and nothing else has happened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tests.storm import objects
from tests.storm.cluster import OWN, Controller
from tests.storm.extras.extra import Actions, Extra

if TYPE_CHECKING:
    import random

    from tests.storm.world import World

action: Final = Actions()

GATES: Final = ("quota", "image", "license")


class Gates(Extra):
    """Gated pods, and who opens their gates."""

    NAME = "gates"
    actions = action

    def calm(self) -> None:
        """Open all gates in some of the calms."""
        if self.rng.random() < 0.5:
            for name in GATES:
                open_gate(self.world, name, 1.0, self.rng)


def open_gate(world: World, name: str, share: float, dice: random.Random) -> None:
    """Take a gate away from a share of the pods that have it."""
    etcd = world.servers.etcd
    for key, stored in list(etcd.objects["pods"].items()):
        gates = stored.data["spec"].get("schedulingGates", ())
        left = [gate for gate in gates if gate["name"] != name]
        if len(left) == len(gates) or dice.random() >= share:
            continue
        world.simulation.counts["gate opened" if not left else "one gate of several opened"] += 1

        def edit(pod: dict[str, Any], left: list[Any] = left) -> None:
            if left:
                pod["spec"]["schedulingGates"] = left
            else:
                pod["spec"].pop("schedulingGates")

        etcd.edit("pods", key, edit)


@action(5.0)
def new_gated_app(world: World, dice: random.Random) -> None:
    """An app appears whose pods wait behind gates."""
    cluster = world.cluster
    if sum(each.wanted for each in cluster.controllers.values()) > 60:
        return
    name = f"gated-{len(cluster.controllers)}"
    spec = objects.pod_spec(dice, OWN)
    spec["schedulingGates"] = [
        {"name": gate} for gate in dice.sample(GATES, dice.choice((1, 1, 2, 3)))
    ]
    template = {"metadata": {"labels": {"app": name}}, "spec": spec}
    controller = Controller(name, dice.choice(objects.NAMESPACES), dice.choice((1, 3, 8)), template)
    cluster.controllers[name] = controller
    cluster.reconcile(controller)


@action(4.0)
def open_some_gates(world: World, dice: random.Random) -> None:
    """A gate is taken away from some pods, or from all."""
    open_gate(world, dice.choice(GATES), dice.choice((0.3, 1.0)), dice)


@action(1.0)
def open_while_others_go(world: World, dice: random.Random) -> None:
    """Pods behind gates are deleted while the gates of others open."""
    pods = [
        key
        for key, stored in world.servers.etcd.objects["pods"].items()
        if stored.data["spec"].get("schedulingGates")
    ]
    for key in pods:
        if dice.random() < 0.3:
            world.servers.delete("pods", key)
    open_gate(world, dice.choice(GATES), 1.0, dice)
