"""What a berth says of itself, and asks of the API server, when a bit of everything happens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from scheduler.config import default_config
from tests.controlplane.access import NAMESPACE, USER
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.objects import make_node, make_pod
from tests.controlplane.pod_groups import (
    FIELD_API,
    LABEL_API,
    by_field,
    by_label,
    groups_path,
    install_x_pod_groups,
    make_pod_group,
    make_x_pod_group,
)
from tests.scenarios.running_berth import RunningBerth

if TYPE_CHECKING:
    from scheduler.config import SchedulerConfig

PRIORITY = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 10,
}
NEAR_A_FRIEND = {
    "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "topologyKey": "topology.kubernetes.io/zone",
                "labelSelector": {"matchLabels": {"app": "friend"}},
            }
        ]
    }
}
VOLUME = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "disk"},
    "spec": {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "local",
        "hostPath": {"path": "/disk"},
    },
}
DEVICES = "gpu.example.com"
GPU = "example.com/gpu"
DEVICE_CLASS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "gpu"},
    "spec": {"extendedResourceName": GPU},
}
RESOURCE_SLICE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "gpus"},
    "spec": {
        "driver": DEVICES,
        "allNodes": True,
        "pool": {"name": "gpus", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0"}, {"name": "gpu-1"}],
    },
}


@dataclass(frozen=True)
class Life:
    """What was left behind.

    Attributes
    ----------
    metrics
        All of them, in Prometheus's format.
    used
        Verb, group and resource of each request for a resource that berth made.
    refused
        The requests that were answered with 401 or 403, as the audit log has them.
    """

    metrics: str
    used: frozenset[tuple[str, str, str]]
    refused: tuple[dict[str, Any], ...]


def storage_class(name: str, provisioner: str) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def claim(name: str, class_name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": class_name,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def user_of(claim_name: str) -> dict[str, Any]:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}
    return make_pod(f"pod-{claim_name}", cpu="10m", volumes=[volume])


def user_of_devices(name: str) -> dict[str, Any]:
    """Return a pod for which a claim has to be created, by an extended resource."""
    pod = make_pod(name, cpu="10m")
    amounts = {"cpu": "10m", GPU: "1"}
    pod["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": {GPU: "1"}}
    return pod


def claimant(name: str) -> list[dict[str, Any]]:
    """Return a claim on a device, and a pod that uses it."""
    pod = make_pod(name, cpu="10m")
    pod["spec"]["resourceClaims"] = [{"name": "device", "resourceClaimName": name}]
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [request]}},
    }
    return [claim, pod]


def electing_config() -> SchedulerConfig:
    """Return a configuration with an election where the shipped rights allow one."""
    config = default_config("berth")
    election = msgspec.structs.replace(config.leader_election, resource_namespace=NAMESPACE)
    return msgspec.structs.replace(
        config,
        leader_election=election,
        given=config.given | {"leaderElection", "leaderElection.resourceNamespace"},
    )


def live() -> Life:
    """Live on an API server without streaming lists, so that berth lists as well as it watches."""
    no_streams = ["--feature-gates=WatchList=false"]
    with ControlPlane(pod_groups=True, extra_apiserver_args=no_streams) as plane:
        install_x_pod_groups(plane)
        return live_on(plane)


def live_on(plane: ControlPlane, *, by_resource: bool = True) -> Life:
    """Let berth elect itself, place, refuse and evict pods, allocate volumes and devices.

    Parameters
    ----------
    by_resource
        Whether a second pod gets a device by an extended resource, which API servers before 1.36
        and without beta features do not let a class provide.
    """
    with BlockingApi(plane.admin_kubeconfig) as api:
        with RunningBerth(plane.berth_kubeconfig(), config=electing_config()) as berth:
            api.create_many([storage_class("local", "kubernetes.io/no-provisioner")])
            api.create_many([storage_class("dynamic", "csi.example.com")])
            api.create_many([PRIORITY, VOLUME, claim("kept", "local"), claim("made", "dynamic")])
            # There is no controller that would say so.
            api.patch("/api/v1/persistentvolumes/disk/status", {"status": {"phase": "Available"}})
            api.create_many([make_node("n1"), make_node("n2"), DEVICE_CLASS, RESOURCE_SLICE])
            api.create_many(
                [make_pod(f"low-{i}", cpu="3", terminationGracePeriodSeconds=0) for i in range(2)]
            )
            api.wait_bound(2)
            devices = berth.app.known.cluster.devices
            api.wait_until(lambda: devices.classes.get("gpu") is not None, "the class is known")
            api.create_many(
                [
                    *claimant("gpu"),
                    *([user_of_devices("gpu-by-resource")] if by_resource else []),
                    user_of("kept"),
                    user_of("made"),
                    make_pod("huge", cpu="100"),
                    make_pod("lonely", cpu="10m", affinity=NEAR_A_FRIEND),
                    make_pod("high", cpu="3", priorityClassName="high"),
                ]
            )
            api.wait_until(lambda: _reserved(api) == "kept", "the volume is kept for a claim")
            api.wait_until(lambda: _has_node(api, "made"), "a volume was asked for, for a node")
            api.wait_until(lambda: _node_of(api, "high") != "", "the preemptor is bound")
            with_devices = ("gpu", "gpu-by-resource") if by_resource else ("gpu",)
            api.wait_until(
                lambda: all(_node_of(api, name) for name in with_devices),
                "the pods with devices are bound",
            )
            api.wait_until(lambda: bool(_events_of(api, "lonely")), "it was said why it waits")
            # A friend wakes it in vain, nodes having no zone: the same Event once more is a patch.
            api.create_many([make_pod("friend", cpu="10m", labels={"app": "friend"})])
            api.wait_until(
                lambda: any((each.get("series") or {}) for each in _events_of(api, "lonely")),
                "an Event was counted on",
            )
            if plane.pod_groups:
                _live_with_groups(api)
            berth.on_loop(berth.app.tell_state)
            api.wait_until(
                lambda: berth.app.checks.debugger.mismatches is not None, "it has compared"
            )
            text = berth.app.metrics.render()[0].decode()
        events = [each for each in plane.audit_events() if each["user"]["username"] == USER]
        return Life(
            text,
            frozenset(_access(each) for each in events if "objectRef" in each),
            tuple(each for each in events if each["responseStatus"]["code"] in (401, 403)),
        )


def _live_with_groups(api: BlockingApi) -> None:
    """Let a group of each API be placed, and its status be written."""
    group_paths = [f"{groups_path(each)}/ring" for each in (FIELD_API, LABEL_API)]
    api.create_many([make_pod_group("ring", 1), make_x_pod_group("ring", 1)])
    by_each = (by_field, "in-field"), (by_label, "in-label")
    api.create_many(name_group(make_pod(name, cpu="10m"), "ring") for name_group, name in by_each)
    api.wait_until(
        lambda: all(api.get(path).get("status") for path in group_paths), "statuses are written"
    )


def _access(event: dict[str, Any]) -> tuple[str, str, str]:
    target = event["objectRef"]
    resource = "/".join(filter(None, (target["resource"], target.get("subresource"))))
    return event["verb"], target.get("apiGroup", ""), resource


def _reserved(api: BlockingApi) -> str:
    volume = api.get("/api/v1/persistentvolumes/disk")
    return str(volume["spec"].get("claimRef", {}).get("name", ""))


def _has_node(api: BlockingApi, name: str) -> bool:
    found = api.get(f"/api/v1/namespaces/default/persistentvolumeclaims/{name}")
    return "volume.kubernetes.io/selected-node" in found["metadata"].get("annotations", {})


def _node_of(api: BlockingApi, name: str) -> str:
    (pod,) = [each for each in api.pods("default") if each["metadata"]["name"] == name]
    return str(pod["spec"].get("nodeName", ""))


def _events_of(api: BlockingApi, pod: str) -> list[dict[str, Any]]:
    events = api.list_all("/apis/events.k8s.io/v1/namespaces/default/events")
    return [each for each in events if each["regarding"].get("name") == pod]
