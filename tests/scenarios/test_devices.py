"""Devices on a real API server beside kube-controller-manager's controller of claims."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.controller_manager import start_controller_manager
from tests.controlplane.objects import make_node, make_pod
from tests.scenarios.running_berth import RunningBerth

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.controlplane

GROUP = "/apis/resource.k8s.io/v1"
CLAIMS = f"{GROUP}/resourceclaims"
CONTROLLERS = ("resourceclaim-controller", "garbage-collector-controller")
NODES, DEVICES, PODS = 5, 3, 10


@pytest.fixture(scope="module")
def plane(controlplane_binaries: None) -> Iterator[ControlPlane]:
    """A control plane with the controller that makes claims of templates and frees them."""
    with ControlPlane(audit=False, load=True) as started:
        manager = start_controller_manager(started, CONTROLLERS)
        try:
            yield started
        finally:
            manager.terminate()


def resource(kind: str, name: str, spec: dict[str, Any], **metadata: str) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


def cluster(api: BlockingApi, name: str, *, nodes: int, devices: int) -> str:
    """Publish devices of a class on nodes; return an extended resource that the class provides."""
    driver, extended = f"{name}.example.com", f"example.com/{name}"
    selectors = [{"cel": {"expression": f"device.driver == '{driver}'"}}]
    spec = {"selectors": selectors, "extendedResourceName": extended}
    requests = [{"name": "r", "exactly": {"deviceClassName": name}}]
    template = {"spec": {"devices": {"requests": requests}}}
    api.create_many(
        [
            resource("DeviceClass", name, spec),
            resource("ResourceClaimTemplate", name, template, namespace="default"),
        ]
    )
    names = [f"{name}-{index}" for index in range(nodes)]
    api.create_many([make_node(each) for each in names])
    api.create_many([slice_of(driver, each, devices) for each in names])
    return extended


def slice_of(driver: str, node: str, devices: int) -> dict[str, Any]:
    spec = {
        "driver": driver,
        "nodeName": node,
        "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": f"gpu-{index}"} for index in range(devices)],
    }
    return resource("ResourceSlice", node, spec)


def pod_of_template(name: str, template: str) -> dict[str, Any]:
    claims = [{"name": "gpu", "resourceClaimTemplateName": template}]
    return make_pod(name, cpu="10m", resourceClaims=claims)


def allocations(api: BlockingApi) -> dict[str, list[tuple[str, str]]]:
    """Return pool and device of each allocated claim, by the name of the claim."""
    found = {}
    for claim in api.list_all(CLAIMS):
        allocation = claim.get("status", {}).get("allocation")
        if allocation:
            results = allocation["devices"]["results"]
            found[claim["metadata"]["name"]] = [(each["pool"], each["device"]) for each in results]
    return found


def test_ten_pods_of_a_template_get_a_device_each_and_give_it_back(plane: ControlPlane) -> None:
    with BlockingApi(plane.admin_kubeconfig) as api, RunningBerth(plane.berth_kubeconfig()) as _:
        cluster(api, "many", nodes=NODES, devices=DEVICES)
        names = [f"p{index}" for index in range(PODS)]
        api.create_many([pod_of_template(name, "many") for name in names])
        api.wait_bound(PODS)
        node_of = {each["metadata"]["name"]: each["spec"]["nodeName"] for each in api.pods()}
        claims = api.list_all(CLAIMS)
        assert len(claims) == PODS
        used = Counter(each for devices in allocations(api).values() for each in devices)
        assert (len(used), set(used.values())) == (PODS, {1})
        for claim in claims:
            (owner,) = claim["metadata"]["ownerReferences"]
            (consumer,) = claim["status"]["reservedFor"]
            assert (consumer["name"], consumer["uid"]) == (owner["name"], owner["uid"])
            ((pool, _),) = allocations(api)[claim["metadata"]["name"]]
            assert pool == node_of[owner["name"]]
            assert claim["status"]["allocation"]["allocationTimestamp"]
        for name in names:
            api.delete(f"/api/v1/namespaces/default/pods/{name}")
        api.wait_until(lambda: not allocations(api), "every device is free again")


def test_a_pod_waits_for_the_device_of_another(plane: ControlPlane) -> None:
    with BlockingApi(plane.admin_kubeconfig) as api, RunningBerth(plane.berth_kubeconfig()) as _:
        cluster(api, "only", nodes=1, devices=1)
        api.create_many([pod_of_template("first", "only")])
        first = "/api/v1/namespaces/default/pods/first"
        api.wait_until(lambda: "nodeName" in api.get(first)["spec"], "the first is bound")
        api.create_many([pod_of_template("second", "only")])
        path = "/api/v1/namespaces/default/pods/second"

        def message() -> str:
            conditions = api.get(path)["status"].get("conditions", [])
            return next((each.get("message", "") for each in conditions), "")

        api.wait_until(lambda: "cannot allocate all claims" in message(), "it says why it waits")
        api.delete(first)
        api.wait_until(lambda: "nodeName" in api.get(path)["spec"], "it is bound")
        api.delete(path)
        api.wait_until(lambda: not allocations(api), "the device is free again")


def test_pods_that_share_a_claim_are_all_reserved_on_its_node(plane: ControlPlane) -> None:
    with BlockingApi(plane.admin_kubeconfig) as api, RunningBerth(plane.berth_kubeconfig()) as _:
        cluster(api, "common", nodes=3, devices=1)
        requests = [{"name": "r", "exactly": {"deviceClassName": "common"}}]
        spec = {"devices": {"requests": requests}}
        api.create_many([resource("ResourceClaim", "common", spec, namespace="default")])
        claims = [{"name": "gpu", "resourceClaimName": "common"}]
        names = [f"shares-{index}" for index in range(PODS)]
        api.create_many([make_pod(name, cpu="10m", resourceClaims=claims) for name in names])
        api.wait_bound(PODS)
        pods = [each for each in api.pods() if each["metadata"]["name"] in names]
        claim = api.get(f"{GROUP}/namespaces/default/resourceclaims/common")
        reserved = [each["uid"] for each in claim["status"]["reservedFor"]]
        assert sorted(reserved) == sorted(each["metadata"]["uid"] for each in pods)
        assert {each["spec"]["nodeName"] for each in pods} == {
            pool for pool, _ in allocations(api)["common"]
        }
        for name in names:
            api.delete(f"/api/v1/namespaces/default/pods/{name}")
        api.wait_until(lambda: not allocations(api), "the device is free again")


def test_a_class_provides_an_extended_resource(plane: ControlPlane) -> None:
    with BlockingApi(plane.admin_kubeconfig) as api, RunningBerth(plane.berth_kubeconfig()) as _:
        amounts = {cluster(api, "mapped", nodes=1, devices=1): "1"}
        pod = make_pod("web")
        pod["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
        api.create_many([pod])
        path = "/api/v1/namespaces/default/pods/web"
        api.wait_until(lambda: "nodeName" in api.get(path)["spec"], "it is bound")
        shown = api.get(path)["status"]["extendedResourceClaimStatus"]["resourceClaimName"]
        assert allocations(api) == {shown: [("mapped-0", "gpu-0")]}
