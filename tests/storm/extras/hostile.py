"""F28: objects that an API server takes, and that no scheduler likes: huge ones and odd ones.

A huge pod is bound as any other. An odd one, of which nobody knows what it asks for, may wait; it
must do nobody else any harm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tests.storm import objects
from tests.storm.cluster import OWN, Controller
from tests.storm.extras.extra import Actions, Extra

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from tests.storm.world import World

action: Final = Actions()

ODD_TERM: Final = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": ""}

ODDITIES: Final[dict[str, dict[str, Any]]] = {
    "operator of a node selector": {
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "a", "operator": "Fancy", "values": ["b"]}]}
                    ]
                }
            }
        }
    },
    "topology key": {
        "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [ODD_TERM]}}
    },
    "spread": {
        "topologySpreadConstraints": [
            {"maxSkew": -1, "topologyKey": objects.ZONE, "whenUnsatisfiable": "Perhaps"}
        ]
    },
    "toleration": {"tolerations": [{"key": "team", "operator": "Perhaps", "effect": "Never"}]},
    "priority": {"priority": 2**31 - 1, "preemptionPolicy": "Perhaps"},
}


class Hostile(Extra):
    """Pods of tenants who are not trusted."""

    NAME = "hostile"
    actions = action

    def is_decided_elsewhere(self, pod: dict[str, Any]) -> bool:
        """Return whether nobody knows what a pod asks for."""
        return bool(pod["metadata"].get("labels", {}).get("hostile") == "odd")


def _new_app(world: World, spec: dict[str, Any], labels: dict[str, str], count: int) -> None:
    cluster = world.cluster
    if sum(each.wanted for each in cluster.controllers.values()) > 60:
        return
    name = f"hostile-{len(cluster.controllers)}"
    template = {"metadata": {"labels": {"app": name, **labels}}, "spec": spec}
    controller = Controller(name, "other", count, template)
    cluster.controllers[name] = controller
    cluster.reconcile(controller)


@action(2.0)
def odd_pods(world: World, dice: random.Random) -> None:
    """Pods with a field whose value nobody knows."""
    what = dice.choice(list(ODDITIES))
    world.simulation.counts[f"F28 odd {what}"] += 1
    spec = {**objects.pod_spec(dice, OWN), **ODDITIES[what]}
    _new_app(world, spec, {"hostile": "odd"}, dice.choice((1, 2)))


def _many_labels(spec: dict[str, Any], labels: dict[str, str]) -> None:
    labels.update({f"label-{number}": "x" * 60 for number in range(300)})


def _many_terms(spec: dict[str, Any], labels: dict[str, str]) -> None:
    terms = [
        {"labelSelector": {"matchLabels": {"nobody": str(number)}}, "topologyKey": objects.HOSTNAME}
        for number in range(100)
    ]
    spec["affinity"] = {
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    }


def _many_tolerations(spec: dict[str, Any], labels: dict[str, str]) -> None:
    spec["tolerations"] = [{"key": f"key-{number}", "operator": "Exists"} for number in range(500)]
    spec["tolerations"].append({"key": "team", "operator": "Exists"})


def _many_containers(spec: dict[str, Any], labels: dict[str, str]) -> None:
    nothing = {"image": "image", "env": [{"name": "A", "value": "x" * 500}]}
    spec["containers"] += [{"name": f"container-{number}", **nothing} for number in range(100)]


_HUGE: Final[tuple[Callable[[dict[str, Any], dict[str, str]], None], ...]] = (
    _many_labels,
    _many_terms,
    _many_tolerations,
    _many_containers,
)


@action(2.0)
def huge_pods(world: World, dice: random.Random) -> None:
    """Pods with very much of something."""
    world.simulation.counts["F28 huge pods"] += 1
    spec, labels = objects.pod_spec(dice, OWN), {"hostile": "huge"}
    dice.choice(_HUGE)(spec, labels)
    _new_app(world, spec, labels, dice.choice((1, 3)))
