"""Random changes of a cluster, as questions for a forecast and as calls of the API."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tests.controlplane.objects import make_node

if TYPE_CHECKING:
    from random import Random

SCALE_UP: Final = "scale-up"
DRAIN: Final = "drain"
ADD: Final = "node addition"

CPUS: Final = ("250m", "500m", "1", "1500m", "2")
CAPACITY: Final = ("4", "6", "8")
ZONES: Final = 3


@dataclass(frozen=True)
class Action:
    """One change.

    Attributes
    ----------
    kind
        Scale-up, drain or node addition.
    question
        The fields of the question.
    workload
        The ReplicaSet to create; None for none.
    """

    kind: str
    question: dict[str, Any]
    workload: dict[str, Any] | None = None
    budget: dict[str, Any] | None = None
    drain: tuple[str, ...] = ()
    nodes: list[dict[str, Any]] = field(default_factory=list)


def first_nodes(random: Random, count: int) -> list[dict[str, Any]]:
    """Return the nodes of the cluster before the first action."""
    return [
        make_node(f"node-{number}", cpu=random.choice(CAPACITY), zone=f"zone-{number % ZONES}")
        for number in range(count)
    ]


def replica_set(random: Random, name: str, replicas: int) -> dict[str, Any]:
    """Return a random workload: plain, kept apart, spread over zones, or of a high priority."""
    labels = {"app": name}
    container = {
        "name": "main",
        "image": "registry.k8s.io/pause:3.10",
        "resources": {"requests": {"cpu": random.choice(CPUS)}},
    }
    spec: dict[str, Any] = {
        "schedulerName": "berth",
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
    }
    kind = random.choice(("plain", "plain", "apart", "spread", "high"))
    selector = {"matchLabels": labels}
    if kind == "apart":
        term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
        spec["affinity"] = {
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        }
    elif kind == "spread":
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": selector,
            }
        ]
    elif kind == "high":
        spec["priorityClassName"] = "high"
        spec["priority"] = 1000
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": selector,
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def disruption_budget(random: Random, name: str) -> dict[str, Any]:
    """Return a budget that lets none, one or two pods of a workload go."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "maxUnavailable": random.choice((0, 1, 1, 2)),
            "selector": {"matchLabels": {"app": name}},
        },
    }


def random_action(random: Random, number: int, kind: str, node_names: list[str]) -> Action:
    """Return the action of a round; each question asks about the pending pods, too."""
    if kind == DRAIN:
        drained = tuple(random.sample(node_names, random.choice((1, 1, 2))))
        return Action(kind, {"drain": drained, "pending": True}, drain=drained)
    workload = replica_set(random, f"app-{number}", random.randint(3, 16))
    budget = disruption_budget(random, f"app-{number}") if random.random() < 0.4 else None
    question: dict[str, Any] = {"objects": [workload], "pending": True}
    if kind == SCALE_UP:
        return Action(kind, question, workload, budget)
    return Action(
        kind,
        {**question, "add": [{"like": random.choice(node_names), "count": random.randint(1, 2)}]},
        workload,
        budget,
    )
