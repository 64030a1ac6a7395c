"""What pods of the workloads look like: labels, spec, and what they ask for.

They recreate kube-scheduler 1.36, test/integration/scheduler_perf/templates.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.bench.device_templates import CLASSES, GPU, extended_resource, implicit_resource
from tests.controlplane.objects import HOSTNAME_LABEL, ZONE_LABEL

if TYPE_CHECKING:
    from collections.abc import Mapping

Json = dict[str, Any]

SCHEDULER_NAME = "bench"
"""Every contender answers to it, so that all of them find the very same pods."""

BEFORE, MEASURED, ASIDE = "sched-0", "sched-1", "aside"
"""Namespaces: of pods that run already, of those that count, of those that come and go."""

SINGLE_NODE = "scheduler-perf-node"
"""The node with room for 90 000 pods."""

HIGH_PRIORITY = "high"

CSI_DRIVER = "ebs.csi.aws.com"
CSI_VOLUMES_PER_NODE = 39

_BOTH = (MEASURED, BEFORE)


@dataclass(frozen=True)
class PodTemplate:
    """One kind of pod.

    Parameters
    ----------
    labels, spec
        As in the API; the spec without its container.
    requests
        Of the container, which are its limits, too.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    spec: Mapping[str, Any] = field(default_factory=dict)
    requests: Mapping[str, str] = field(default_factory=lambda: {"cpu": "100m", "memory": "500Mi"})

    def pod(self, name: str, namespace: str, node_name: str = "", claim: str = "") -> Json:
        """Return a pod, on a node if one is named, with a volume if a claim is named."""
        container: Json = {
            "name": "pause",
            "image": "registry.k8s.io/pause:3.10",
            "ports": [{"containerPort": 80}],
        }
        if self.requests:
            container["resources"] = {
                "requests": dict(self.requests),
                "limits": dict(self.requests),
            }
        spec: Json = {"schedulerName": SCHEDULER_NAME, "containers": [container], **self.spec}
        if node_name:
            spec["nodeName"] = node_name
        if claim:
            spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "labels": dict(self.labels)},
            "spec": spec,
        }


def _required(kind: str, color: str, topology_key: str) -> PodTemplate:
    rules = {"requiredDuringSchedulingIgnoredDuringExecution": [_term(color, topology_key)]}
    return PodTemplate({"color": color}, {"affinity": {kind: rules}})


def _preferred(kind: str, color: str) -> PodTemplate:
    weighted = {"weight": 1, "podAffinityTerm": _term(color, HOSTNAME_LABEL)}
    rules = {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}
    return PodTemplate({"color": color}, {"affinity": {kind: rules}})


def _term(color: str, topology_key: str) -> Json:
    return {
        "labelSelector": {"matchLabels": {"color": color}},
        "topologyKey": topology_key,
        "namespaces": list(_BOTH),
    }


def _spread(labels: Mapping[str, str], key: str, max_skew: int, **more: str) -> PodTemplate:
    constraint = {
        "maxSkew": max_skew,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": dict(labels)},
        **more,
    }
    return PodTemplate(labels, {"topologySpreadConstraints": [constraint]})


def _on_nodes(where: str, *requirements: Json) -> PodTemplate:
    terms = {"nodeSelectorTerms": [{where: list(requirements)}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return PodTemplate({}, {"affinity": affinity})


PLAIN = PodTemplate()
LIGHT = PodTemplate({}, {"terminationGracePeriodSeconds": 0}, {})
VARIED = tuple(
    PodTemplate({}, {}, {"cpu": f"{cpu}m", "memory": f"{memory}Mi"})
    for cpu in (50, 75, 100, 150, 200)
    for memory in (64, 128, 200, 256, 320, 512, 640, 768)
)
"""Forty different requests, 115 milli-CPU and 361 MiB on average."""
VARIED_1000 = tuple(
    PodTemplate({}, {}, {"cpu": f"{cpu}m", "memory": f"{memory}Mi"})
    for cpu in range(55, 180, 5)
    for memory in range(65, 665, 15)
)
"""A thousand different requests, 115 milli-CPU and 358 MiB on average."""
OF_50_CLASSES = tuple(
    PodTemplate({}, {}, {extended_resource(index): "1"}) for index in range(CLASSES)
)
OF_25_CLASSES = OF_50_CLASSES[:25]
"""One device each, of a class of its own, by an extended resource."""
OF_IMPLICIT_RESOURCES = tuple(
    PodTemplate({}, {}, {implicit_resource(index): "1"}) for index in range(25)
)
OF_ONE_RESOURCE = PodTemplate({}, {}, {GPU: "1"})
IN_ZONES = _on_nodes(
    "matchExpressions", {"key": ZONE_LABEL, "operator": "In", "values": ["zone1", "zone2"]}
)
ON_SINGLE_NODE = PodTemplate(
    {},
    _on_nodes(
        "matchFields", {"key": "metadata.name", "operator": "In", "values": [SINGLE_NODE]}
    ).spec,
    {},
)
TOGETHER = _required("podAffinity", "blue", ZONE_LABEL)
APART = _required("podAntiAffinity", "green", HOSTNAME_LABEL)
RATHER_TOGETHER = _preferred("podAffinity", "red")
RATHER_APART = _preferred("podAntiAffinity", "yellow")
SPREAD = _spread({"color": "blue"}, ZONE_LABEL, 5)
RATHER_SPREAD = _spread({"color": "blue"}, ZONE_LABEL, 5, whenUnsatisfiable="ScheduleAnyway")
ONE_ON_EACH = _spread(
    {"foo": "bar"}, HOSTNAME_LABEL, 1, nodeAffinityPolicy="Honor", nodeTaintsPolicy="Honor"
)
SERVED = PodTemplate({"app": "scheduler-perf"})
GATED = PodTemplate({}, {"schedulingGates": [{"name": "test.k8s.io/hold"}]}, {})
LOW = PodTemplate({}, {"terminationGracePeriodSeconds": 0}, {"cpu": "900m", "memory": "500Mi"})
HIGH = PodTemplate({}, {"priorityClassName": HIGH_PRIORITY}, {"cpu": "3000m", "memory": "500Mi"})
TOO_LARGE = PodTemplate({}, {"priorityClassName": HIGH_PRIORITY}, {"cpu": "9", "memory": "500Mi"})
"""Fits on no node of 4 CPUs, not even on an empty one."""


def service(name: str, namespace: str, selector: Mapping[str, str]) -> Json:
    """Return a Service in front of the pods that ``selector`` selects."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": dict(selector), "ports": [{"port": 80}], "clusterIP": "None"},
    }


def priority_class() -> Json:
    """Return the priority class of pods that come first."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": HIGH_PRIORITY},
        "value": 10,
    }


def csi_node(name: str) -> Json:
    """Return what a node says of its CSI driver."""
    driver = {
        "name": CSI_DRIVER,
        "nodeID": name,
        "topologyKeys": [],
        "allocatable": {"count": CSI_VOLUMES_PER_NODE},
    }
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name},
        "spec": {"drivers": [driver]},
    }


def bound_claim(name: str, namespace: str) -> list[Json]:
    """Return a volume and a claim that are bound to each other."""
    volume = f"{namespace}-{name}"
    room = {"storage": "1Gi"}
    modes = ["ReadOnlyMany"]
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": volume},
            "spec": {
                "capacity": room,
                "accessModes": modes,
                "persistentVolumeReclaimPolicy": "Retain",
                "claimRef": {"kind": "PersistentVolumeClaim", "namespace": namespace, "name": name},
                "csi": {"driver": CSI_DRIVER, "volumeHandle": volume},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "annotations": {"pv.kubernetes.io/bind-completed": "true"},
            },
            "spec": {
                "accessModes": modes,
                "resources": {"requests": room},
                "storageClassName": "",
                "volumeName": volume,
            },
        },
    ]
