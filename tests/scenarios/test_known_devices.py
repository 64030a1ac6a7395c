"""Claims, slices and classes of a real API server are known, and gone when they are deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from cache.device_objects import DeviceId, PoolId
from tests.controlplane.blocking_api import BlockingApi
from tests.scenarios.running_berth import RunningBerth

if TYPE_CHECKING:
    from tests.controlplane.control_plane import ControlPlane

pytestmark = pytest.mark.controlplane

DRIVER: Final = "gpu.example.com"
API: Final = "resource.k8s.io/v1"
CLASS: Final[dict[str, Any]] = {
    "apiVersion": API,
    "kind": "DeviceClass",
    "metadata": {"name": "gpus"},
    "spec": {
        "extendedResourceName": "example.com/gpu",
        "selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}],
    },
}
SLICE: Final[dict[str, Any]] = {
    "apiVersion": API,
    "kind": "ResourceSlice",
    "metadata": {"name": "slice"},
    "spec": {
        "driver": DRIVER,
        "nodeName": "n1",
        "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
        "devices": [
            {
                "name": "gpu-0",
                "attributes": {"model": {"string": "a100"}, "numa": {"int": 1}},
                "capacity": {"memory": {"value": "80Gi"}},
                "taints": [{"key": "broken", "effect": "NoSchedule"}],
            }
        ],
    },
}
CLAIM: Final[dict[str, Any]] = {
    "apiVersion": API,
    "kind": "ResourceClaim",
    "metadata": {"name": "claim", "namespace": "default"},
    "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpus"}}]}},
}
ALLOCATION: Final = {
    "devices": {"results": [{"request": "r", "driver": DRIVER, "pool": "n1", "device": "gpu-0"}]}
}
CLAIM_PATH: Final = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/claim"


def test_what_the_api_server_has_is_known(fresh_control_plane: ControlPlane) -> None:
    plane, device = fresh_control_plane, DeviceId(DRIVER, "n1", "gpu-0")
    with (
        BlockingApi(plane.admin_kubeconfig) as api,
        RunningBerth(plane.berth_kubeconfig()) as berth,
    ):
        api.wait_until(lambda: berth.is_ready, "berth is ready")
        devices = berth.app.known.cluster.devices
        api.create_many([CLASS, SLICE, CLAIM])
        api.wait_until(lambda: devices.claims.get("default", "claim") is not None, "the claim")
        api.wait_until(lambda: PoolId(DRIVER, "n1") in devices.slices.view().by_pool, "the slice")
        api.wait_until(lambda: devices.classes.for_resource("example.com/gpu") is not None, "class")
        (known,) = devices.slices.view().by_node["n1"]
        (gpu,) = known.spec.devices
        assert (gpu.attributes["model"].string_value, gpu.attributes["numa"].int_value) == (
            "a100",
            1,
        )
        assert (gpu.capacity["memory"].value, gpu.taints[0].key) == ("80Gi", "broken")

        api.patch(f"{CLAIM_PATH}/status", {"status": {"allocation": ALLOCATION}})
        api.wait_until(lambda: device in devices.allocated().devices, "the device is in use")
        api.patch(f"{CLAIM_PATH}/status", {"status": {"allocation": None}})
        api.wait_until(lambda: device not in devices.allocated().devices, "the device is free")
        for path in (
            CLAIM_PATH,
            f"/apis/{API}/resourceslices/slice",
            f"/apis/{API}/deviceclasses/gpus",
        ):
            api.delete(path)
        api.wait_until(lambda: not devices.claims.all(), "the claim is gone")
        api.wait_until(lambda: not devices.slices.view().by_pool, "the slice is gone")
        api.wait_until(lambda: not devices.classes.names(1), "the class is gone")
