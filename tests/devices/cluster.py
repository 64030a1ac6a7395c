"""Nodes with devices, and pods whose claims come from templates."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

from tests.controlplane.controller_manager import start_controller_manager
from tests.controlplane.objects import make_node, make_pod

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.controlplane.blocking_api import BlockingApi
    from tests.controlplane.control_plane import ControlPlane

DRIVER: Final = "gpu.example.com"
OWNER: Final = "scheduler"
CONTROLLERS: Final = ("resourceclaim-controller", "garbage-collector-controller")


def create_devices(
    api: BlockingApi, nodes: int, devices: int, owners: Sequence[str] = ("",)
) -> None:
    """Create nodes with so many devices each, and their classes.

    Parameters
    ----------
    owners
        The devices of each node are dealt out to these, and each has a class of its own, which
        selects them by an attribute; see :func:`class_of`.
    """
    names = [f"node-{index:03}" for index in range(nodes)]
    api.create_many(_class(owner) for owner in owners)
    api.create_many(make_node(name, cpu="64", pods="1000") for name in names)
    api.create_many(_slice(name, devices, owners) for name in names)


def class_of(owner: str) -> str:
    """Return the name of the class of an owner's devices."""
    return f"gpu-{owner}" if owner else "gpu"


def _class(owner: str) -> dict[str, Any]:
    expression = f"device.driver == '{DRIVER}'"
    if owner:
        expression += f" && device.attributes['{DRIVER}'].{OWNER} == '{owner}'"
    return _object(
        "DeviceClass", class_of(owner), {"selectors": [{"cel": {"expression": expression}}]}
    )


def create_template(api: BlockingApi, name: str, count: int, owner: str = "") -> None:
    """Create a template of claims for `count` devices of an owner each."""
    exactly = {"deviceClassName": class_of(owner), "count": count}
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


def _slice(node: str, devices: int, owners: Sequence[str]) -> dict[str, Any]:
    spec = {
        "driver": DRIVER,
        "nodeName": node,
        "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
        "devices": [_device(index, owners[index % len(owners)]) for index in range(devices)],
    }
    return _object("ResourceSlice", node, spec)


def _device(index: int, owner: str) -> dict[str, Any]:
    device: dict[str, Any] = {"name": f"gpu-{index}"}
    if owner:
        device["attributes"] = {OWNER: {"string": owner}}
    return device
