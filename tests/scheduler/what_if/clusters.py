"""Small clusters, questions and their forecasts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from cache.objects import LabelSelector, OwnerReference, Pod
from cache.workload_objects import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
    WorkloadMeta,
)
from scheduler.config import default_config, running_profiles
from scheduler.offline.cluster import LIMIT_RANGE, RESOURCE_QUOTA, Cluster
from scheduler.what_if import decode_question, forecast
from tests.builders import NodeBuilder, PodBuilder, node, pod

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scheduler.what_if import Forecast

PROFILES = running_profiles(default_config())

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
PACKING = f"""{HEAD}
profiles:
- schedulerName: berth
  pluginConfig:
  - name: NodeResourcesFit
    args: {{scoringStrategy: {{type: MostAllocated, resources: [{{name: cpu, weight: 1}}]}}}}
"""


def machine(name: str, cpu: str = "4") -> NodeBuilder:
    """Return a node with a host name and room for ten pods."""
    amounts = {"cpu": cpu, "memory": "16Gi", "pods": "10"}
    return node(name).capacity(amounts).label("kubernetes.io/hostname", name)


def owned(built: PodBuilder, kind: str = "ReplicaSet", name: str = "web") -> Pod:
    """Return a running pod that a controller manages."""
    owner = OwnerReference("apps/v1", kind, name, f"uid-{kind}-{name}", controller=True)
    made = built.build()
    return replace(
        made,
        metadata=replace(made.metadata, owner_references=(owner,)),
        status=replace(made.status, phase="Running"),
    )


def running(name: str, on: str, cpu: str = "1", kind: str = "ReplicaSet", **labels: str) -> Pod:
    """Return a pod of a controller on a node."""
    built = pod(name).request(cpu=cpu).on(on)
    for key, value in labels.items():
        built = built.label(key, value)
    return owned(built, kind)


def cluster_of(*things: NodeBuilder | PodBuilder | Pod | PodDisruptionBudget) -> Cluster:
    """Return a cluster without quotas."""
    cluster = Cluster()
    cluster.limits |= {RESOURCE_QUOTA: [], LIMIT_RANGE: []}
    for each in things:
        if isinstance(each, NodeBuilder):
            cluster.add_node(each.build())
        elif isinstance(each, PodDisruptionBudget):
            cluster.known.disruption_budgets.budget_changed(None, each)
        else:
            cluster.add_pod(each.build() if isinstance(each, PodBuilder) else each)
    return cluster


def budget(allowed: int, name: str = "web", **labels: str) -> PodDisruptionBudget:
    """Return a budget of the namespace ``default``."""
    return PodDisruptionBudget(
        WorkloadMeta(name, "default"),
        PodDisruptionBudgetSpec(LabelSelector(match_labels=labels)),
        PodDisruptionBudgetStatus(allowed),
    )


def manifest(
    name: str = "web", cpu: str = "1", labels: Mapping[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    """Return a pod as a user writes it."""
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {"schedulerName": "berth", "containers": [container], **spec},
    }


def gang(name: str = "gang", minimum: int = 3) -> dict[str, Any]:
    """Return a PodGroup of scheduler-plugins as a user writes it."""
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": minimum},
    }


GANG_LABEL = "scheduling.x-k8s.io/pod-group"


def ask(cluster: Cluster, *, cpu_s: float = 60.0, **question: Any) -> Forecast:
    """Return the forecast for a question whose fields are those of its JSON."""
    decoded = decode_question(json.dumps(question).encode())
    return forecast(cluster, PROFILES, decoded, cpu_s=cpu_s)


def moves(found: Forecast) -> dict[str, tuple[str, str]]:
    """Return where each pod goes from and to."""
    return {
        each.pod: (each.from_node, each.node) for part in found.parts for each in part.placements
    }
