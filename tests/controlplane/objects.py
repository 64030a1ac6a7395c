"""Nodes and pods as the API takes them: plain dicts, ready to be posted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

HOSTNAME_LABEL: Final = "kubernetes.io/hostname"
ZONE_LABEL: Final = "topology.kubernetes.io/zone"
REGION_LABEL: Final = "topology.kubernetes.io/region"


def make_node(
    name: str,
    *,
    cpu: str = "4",
    memory: str = "32Gi",
    pods: str = "110",
    labels: Mapping[str, str] | None = None,
    taints: Iterable[Mapping[str, str]] = (),
    unschedulable: bool = False,
    zone: str | None = None,
    region: str | None = None,
    images: Iterable[Mapping[str, Any]] = (),
    extra: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return a Ready node with its status, as a kubelet would have registered it.

    Parameters
    ----------
    taints
        ``{"key": ..., "value": ..., "effect": ...}`` each.
    images
        ``{"names": [...], "sizeBytes": n}`` each.
    extra
        Further resources of capacity and allocatable, such as ``{"example.com/gpu": "4"}``.
    """
    resources = {"cpu": cpu, "memory": memory, "pods": pods, **(extra or {})}
    all_labels = {HOSTNAME_LABEL: name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    if zone is not None:
        all_labels[ZONE_LABEL] = zone
    if region is not None:
        all_labels[REGION_LABEL] = region
    spec: dict[str, Any] = {}
    if taint_list := [dict(taint) for taint in taints]:
        spec["taints"] = taint_list
    if unschedulable:
        spec["unschedulable"] = True
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**all_labels, **(labels or {})}},
        "spec": spec,
        "status": {
            "capacity": resources,
            "allocatable": dict(resources),
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "KubeletReady",
                    "message": "kubelet is posting ready status",
                }
            ],
            "images": [dict(image) for image in images],
        },
    }


def make_pod(
    name: str,
    *,
    namespace: str = "default",
    scheduler_name: str = "berth",
    cpu: str | None = None,
    memory: str | None = None,
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """Return a pod of one container that asks for `cpu` and `memory` and nothing more.

    Parameters
    ----------
    spec
        Fields of the pod's spec under their API names (``nodeSelector={...}``); ``containers``
        replaces the one container.
    """
    requests = {
        key: value for key, value in (("cpu", cpu), ("memory", memory)) if value is not None
    }
    container: dict[str, Any] = {"name": "main", "image": "registry.k8s.io/pause:3.10"}
    if requests:
        container["resources"] = {"requests": requests}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels or {})},
        "spec": {"schedulerName": scheduler_name, "containers": [container], **spec},
    }


def make_restricted_pod(name: str, namespace: str, node: str) -> dict[str, Any]:
    """Return a pod on a node, as a namespace with the restricted security standard takes it."""
    container = {
        "name": "main",
        "image": "registry.k8s.io/pause:3.10",
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    security = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    return make_pod(
        name, namespace=namespace, nodeName=node, containers=[container], securityContext=security
    )


def make_namespace(name: str, labels: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return a namespace."""
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": dict(labels or {})},
    }
