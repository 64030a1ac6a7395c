"""Random workloads and budgets, as manifests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from random import Random

CPUS: Final = ("250m", "500m", "1", "1500m", "2")
HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"

NEVER_READY: Final = "never-ready"
"""The label of pods that run and do not get ready."""


@dataclass(frozen=True)
class Workload:
    """Pods of one name.

    Attributes
    ----------
    replica_set
        None for pods without a controller.
    pods
        Those without a controller.
    before
        What has to exist before the pods: volumes and claims.
    """

    name: str
    replica_set: dict[str, Any] | None = None
    pods: list[dict[str, Any]] = field(default_factory=list)
    before: list[dict[str, Any]] = field(default_factory=list)

    @property
    def objects(self) -> list[dict[str, Any]]:
        """The objects of the question."""
        own = [] if self.replica_set is None else [self.replica_set]
        return [*self.before, *own, *self.pods]


def random_workload(random: Random, name: str, nodes: list[str]) -> Workload:
    """Return a random workload."""
    kinds = ("plain", "plain", "apart", "spread", "high", "unready", "bare", "local")
    kind = random.choice(kinds)
    spec = _spec(random)
    labels = {"app": name}
    selector = {"matchLabels": {"app": name}}
    replicas = random.randint(3, 16)
    if kind == "apart":
        term = {"topologyKey": HOSTNAME, "labelSelector": selector}
        spec["affinity"] = {
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        }
    elif kind == "spread":
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": ZONE,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": selector,
            }
        ]
    elif kind == "high":
        spec["priorityClassName"] = "high"
        spec["priority"] = 1000
    elif kind == "unready":
        labels[NEVER_READY] = "true"
    elif kind == "bare":
        return Workload(name, pods=_bare(spec, name, random.randint(2, 6)))
    elif kind == "local":
        volumes = _local_volume(name, random.choice(nodes))
        claim = {"name": "data", "persistentVolumeClaim": {"claimName": name}}
        spec = {**spec, "volumes": [claim]}
        return Workload(name, replica_set(name, labels, 1, spec), before=volumes)
    return Workload(name, replica_set(name, labels, replicas, spec))


def _spec(random: Random) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "registry.k8s.io/pause:3.10",
        "resources": {"requests": {"cpu": random.choice(CPUS)}},
    }
    return {
        "schedulerName": "berth",
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
    }


def replica_set(
    name: str, labels: dict[str, str], replicas: int, spec: dict[str, Any]
) -> dict[str, Any]:
    """Return a ReplicaSet."""
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def _bare(spec: dict[str, Any], name: str, count: int) -> list[dict[str, Any]]:
    """Return pods that nobody replaces."""
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{name}-bare-{number}",
                "namespace": "default",
                "labels": {"app": name},
            },
            "spec": spec,
        }
        for number in range(count)
    ]


def _local_volume(name: str, node: str) -> list[dict[str, Any]]:
    """Return a volume that exists on one node, and its claim."""
    term = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [node]}]}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "",
            "local": {"path": "/data"},
            "claimRef": {"namespace": "default", "name": name},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        },
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "storageClassName": "",
            "volumeName": name,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    return [volume, claim]


def disruption_budget(random: Random, name: str, others: list[str]) -> dict[str, Any]:
    """Return a random budget of a workload, sometimes together with another one."""
    selector: dict[str, Any] = {"matchLabels": {"app": name}}
    if others and random.random() < 0.25:
        values = [name, random.choice(others)]
        selector = {"matchExpressions": [{"key": "app", "operator": "In", "values": values}]}
    limit = random.choice(
        (
            {"maxUnavailable": 0},
            {"maxUnavailable": 1},
            {"maxUnavailable": 1},
            {"maxUnavailable": 2},
            {"maxUnavailable": "25%"},
            {"minAvailable": 2},
            {"minAvailable": "50%"},
        )
    )
    policy = random.choice((None, None, "IfHealthyBudget", "AlwaysAllow"))
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            **limit,
            "selector": selector,
            **({} if policy is None else {"unhealthyPodEvictionPolicy": policy}),
        },
    }


def daemon_set() -> dict[str, Any]:
    """Return a DaemonSet with a small pod on each node, which makes room for itself."""
    labels = {"app": "agent"}
    container = {
        "name": "main",
        "image": "registry.k8s.io/pause:3.10",
        "resources": {"requests": {"cpu": "100m"}},
    }
    spec = {
        "schedulerName": "berth",
        "terminationGracePeriodSeconds": 0,
        "priorityClassName": "agents",
        "containers": [container],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }
