"""Nodes with devices, and pods whose claims come from templates."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

from tests.controlplane.controller_manager import start_controller_manager
from tests.controlplane.objects import make_node, make_pod

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.controlplane.blocking_api import BlockingApi
    from tests.controlplane.control_plane import ControlPlane

DRIVER: Final = "gpu.example.com"
CLASS: Final = "gpu"
CONTROLLERS: Final = ("resourceclaim-controller", "garbage-collector-controller")


def create_devices(api: BlockingApi, nodes: int, devices: int) -> None:
    """Create nodes with so many devices each, and their class."""
    names = [f"node-{index:03}" for index in range(nodes)]
    expression = f"device.driver == '{DRIVER}'"
    selectors = [{"cel": {"expression": expression}}]
    api.create_many([_object("DeviceClass", CLASS, {"selectors": selectors})])
    api.create_many(make_node(name, cpu="64", pods="1000") for name in names)
    api.create_many(_slice(name, devices) for name in names)


def create_template(api: BlockingApi, name: str, count: int) -> None:
    """Create a template of claims for `count` devices each."""
    exactly = {"deviceClassName": CLASS, "count": count}
    spec = {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}}
    api.create_many([_object("ResourceClaimTemplate", name, spec, namespace="default")])


def pod_of_template(name: str, template: str, scheduler: str = "berth") -> dict[str, Any]:
    """Return a pod with one claim from a template."""
    claims = [{"name": "gpu", "resourceClaimTemplateName": template}]
    return make_pod(name, scheduler_name=scheduler, cpu="10m", resourceClaims=claims)


@contextlib.contextmanager
def claim_controller(plane: ControlPlane) -> Iterator[None]:
    """Run kube-controller-manager with what creates, frees and deletes claims."""
    manager = start_controller_manager(plane, CONTROLLERS)
    try:
        yield
    finally:
        manager.terminate()


def _object(kind: str, name: str, spec: dict[str, Any], **metadata: str) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


def _slice(node: str, devices: int) -> dict[str, Any]:
    spec = {
        "driver": DRIVER,
        "nodeName": node,
        "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": f"gpu-{index}"} for index in range(devices)],
    }
    return _object("ResourceSlice", node, spec)
