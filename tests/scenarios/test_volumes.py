"""Volumes on a real API server beside kube-controller-manager's volume controllers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from cache.storage_objects import PersistentVolume, PersistentVolumeClaim
from plugins import names
from scheduler.client.codec import Decoder
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.controller_manager import start_controller_manager
from tests.controlplane.fake_provisioner import SELECTED_NODE, FakeProvisioner, on_node
from tests.controlplane.objects import HOSTNAME_LABEL, make_node, make_pod
from tests.scenarios.running_berth import RunningBerth

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cache.assume_cache import AssumeCache
    from cache.storage import Storage

pytestmark = pytest.mark.controlplane

DRIVER = "csi.example.com"
STATIC, DYNAMIC, TRACKED = "local", "dynamic", "tracked"
NODES = 50
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
"""What a scheduler waits for: the phase of a claim is written after it."""

_decode_volume = Decoder(PersistentVolume).decode
_decode_claim = Decoder(PersistentVolumeClaim).decode


@pytest.fixture
def plane(controlplane_binaries: None) -> Iterator[ControlPlane]:
    """A control plane with kube-controller-manager's volume controllers."""
    with ControlPlane(audit=False, load=True) as started:
        manager = start_controller_manager(started)
        try:
            yield started
        finally:
            manager.terminate()


def storage_class(name: str, provisioner: str) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def local_volume(name: str, node: str, size: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": STATIC,
            "persistentVolumeReclaimPolicy": "Retain",
            "local": {"path": f"/mnt/{name}"},
            "nodeAffinity": on_node(node),
        },
    }


def claim(name: str, class_name: str, size: str = "1Gi") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": class_name,
            "resources": {"requests": {"storage": size}},
        },
    }


def csi_node(name: str, limit: int) -> dict[str, Any]:
    driver = {"name": DRIVER, "nodeID": name, "topologyKeys": [HOSTNAME_LABEL]}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name},
        "spec": {"drivers": [driver | {"allocatable": {"count": limit}}]},
    }


def user_of(claim_name: str) -> dict[str, Any]:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}
    return make_pod(f"pod-{claim_name}", cpu="10m", volumes=[volume])


def storage_of(berth: RunningBerth) -> Storage:
    """Return what berth's plugins know of storage."""
    framework = berth.app.deciding.profiles.get("berth")
    assert framework is not None
    binding = next(each for each in framework.points["filter"] if each.name == names.VOLUME_BINDING)
    return binding.handle.storage


def assert_storage_equals_the_api(berth: RunningBerth, api: BlockingApi) -> None:
    """Nothing is assumed any more, and what is known is what the API server says."""
    storage = storage_of(berth)
    claims = _by_name(api, "/api/v1/persistentvolumeclaims", _decode_claim)
    volumes = _by_name(api, "/api/v1/persistentvolumes", _decode_volume)
    api.wait_until(
        lambda: (
            {name: each for (_, name), each in latest(storage.claims).items()} == claims
            and latest(storage.volumes) == volumes
        ),
        "berth's storage is the API's",
    )
    assert not storage.claims._assumed
    assert not storage.volumes._assumed


def latest(cache: AssumeCache[Any, Any]) -> dict[Any, Any]:
    """What is seen of the objects: what is assumed of them, else what the API has."""
    return {**cache._api, **cache._assumed}


def _by_name(api: BlockingApi, path: str, decode: Any) -> dict[str, Any]:
    found = [decode(msgspec.json.encode(each)) for each in api.list_all(path)]
    return {each.metadata.name: each for each in found}


def bound_volumes(api: BlockingApi) -> dict[str, dict[str, Any]]:
    """Return the volume of each claim that is bound, by the claim's name."""
    volumes = {each["metadata"]["name"]: each for each in api.list_all("/api/v1/persistentvolumes")}
    return {
        each["metadata"]["name"]: volumes[each["spec"]["volumeName"]]
        for each in api.list_all("/api/v1/persistentvolumeclaims")
        if BIND_COMPLETED in each["metadata"].get("annotations", {})
    }


def node_of(volume: dict[str, Any]) -> str:
    """Return the one node that a volume of these tests is reached from."""
    (term,) = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    (name,) = term["matchExpressions"][0]["values"]
    return str(name)


def test_a_thousand_pods_get_the_volumes_that_waited_for_them(plane: ControlPlane) -> None:
    with BlockingApi(plane.admin_kubeconfig) as api:
        node_names = [f"node-{i}" for i in range(NODES)]
        api.create_many([make_node(name) for name in node_names])
        api.create_many([csi_node(name, limit=12) for name in node_names])
        api.create_many(
            [
                storage_class(STATIC, "kubernetes.io/no-provisioner"),
                storage_class(DYNAMIC, DRIVER),
            ]
        )
        api.create_many(
            [local_volume(f"disk-{i}", node_names[i % NODES], "1Gi") for i in range(500)]
        )
        claims = [claim(f"static-{i}", STATIC) for i in range(500)]
        claims += [claim(f"dynamic-{i}", DYNAMIC) for i in range(500)]
        api.create_many(claims)
        api.create_many([user_of(each["metadata"]["name"]) for each in claims])
        with (
            FakeProvisioner(api, DRIVER) as provisioner,
            RunningBerth(plane.berth_kubeconfig()) as berth,
        ):
            api.wait_bound(1000, timeout_s=300)
            homes = {each["metadata"]["name"]: each["spec"]["nodeName"] for each in api.pods()}
            volumes = bound_volumes(api)
            assert len(volumes) == 1000
            assert {homes[f"pod-{name}"] == node_of(each) for name, each in volumes.items()} == {
                True
            }
            assert len({each["metadata"]["name"] for each in volumes.values()}) == 1000
            assert provisioner.refused == []
            api.wait_until(lambda: berth.is_at_rest, "berth is at rest")
            assert_storage_equals_the_api(berth, api)
            assert berth.mismatches(api) == []
            dynamic_pods = [home for name, home in homes.items() if "dynamic" in name]
            assert max(dynamic_pods.count(name) for name in node_names) <= 12


def test_a_pod_whose_provisioning_fails_goes_to_another_node(plane: ControlPlane) -> None:
    """The node that the pod prefers has room for volumes as far as anybody knows, and has none."""
    preferred = {"matchExpressions": [_requirement(HOSTNAME_LABEL, "full")]}
    weighted = {"weight": 100, "preference": preferred}
    affinity = {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}
    with BlockingApi(plane.admin_kubeconfig) as api:
        api.create_many([make_node("full"), make_node("other")])
        api.create_many([storage_class(TRACKED, DRIVER)])
        driver = {"metadata": {"name": DRIVER}, "spec": {"storageCapacity": True}}
        api.create_many([{"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver"} | driver])
        api.create_many([_capacity(name) for name in ("full", "other")])
        with (
            FakeProvisioner(api, DRIVER, without_room=["full"]) as provisioner,
            RunningBerth(plane.berth_kubeconfig()) as berth,
        ):
            api.wait_until(lambda: berth.is_ready, "berth is ready")
            unlucky = user_of("unlucky")
            unlucky["spec"]["affinity"] = {"nodeAffinity": affinity}
            api.create_many([claim("unlucky", TRACKED), unlucky])
            api.wait_bound(1, timeout_s=60)
            (pod,) = api.pods()
            assert provisioner.refused == [("unlucky", "full")]
            assert pod["spec"]["nodeName"] == "other"
            assert node_of(bound_volumes(api)["unlucky"]) == "other"
            api.wait_until(lambda: berth.is_at_rest, "berth is at rest")
            assert_storage_equals_the_api(berth, api)


def test_an_ephemeral_volume_is_made_with_its_pod(plane: ControlPlane) -> None:
    with BlockingApi(plane.admin_kubeconfig) as api:
        api.create_many([make_node("only"), storage_class(DYNAMIC, DRIVER)])
        template = {"spec": claim("", DYNAMIC)["spec"]}
        volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}
        with FakeProvisioner(api, DRIVER), RunningBerth(plane.berth_kubeconfig()) as berth:
            api.create_many([make_pod("worker", volumes=[volume])])
            api.wait_bound(1, timeout_s=60)
            assert set(bound_volumes(api)) == {"worker-scratch"}
            api.wait_until(lambda: berth.is_at_rest, "berth is at rest")
            assert_storage_equals_the_api(berth, api)


def test_a_pod_whose_volume_is_being_made_when_berth_is_told_to_stop(plane: ControlPlane) -> None:
    """The process ends well, and the next one goes on where it was."""
    with BlockingApi(plane.admin_kubeconfig) as api:
        api.create_many([make_node(f"node-{i}") for i in range(20)])
        api.create_many([storage_class(DYNAMIC, DRIVER)])
        with RunningBerth(plane.berth_kubeconfig()) as berth:
            api.wait_until(lambda: berth.is_ready, "berth is ready")
            api.create_many([claim("slow", DYNAMIC)])
            api.create_many([user_of("slow")])
            api.wait_until(lambda: _selected_node(api) != "", "a volume is asked for")
            assert berth.stop() == 0
            assert berth.app.known.pods.cache.counts().assumed_pods == 0
            assert berth.app.known.pods.waiting.list() == []
            assert not storage_of(berth).claims._assumed
        (pod,) = api.pods()
        assert pod["status"]["nominatedNodeName"] == _selected_node(api)
        reasons = [each.get("reason") for each in pod["status"].get("conditions", [])]
        assert "SchedulerError" not in reasons
        with (
            FakeProvisioner(api, DRIVER),
            RunningBerth(plane.berth_kubeconfig(), seed=2) as berth,
        ):
            api.wait_bound(1, timeout_s=60)
            assert api.pods()[0]["spec"]["nodeName"] == _selected_node(api)
            api.wait_until(lambda: berth.is_at_rest, "berth is at rest")
            assert_storage_equals_the_api(berth, api)


def _selected_node(api: BlockingApi) -> str:
    (found,) = api.list_all("/api/v1/persistentvolumeclaims")
    return str(found["metadata"].get("annotations", {}).get(SELECTED_NODE, ""))


def _requirement(key: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": list(values)}


def _capacity(node: str) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIStorageCapacity",
        "metadata": {"name": f"room-{node}", "namespace": "default"},
        "storageClassName": TRACKED,
        "nodeTopology": {"matchLabels": {HOSTNAME_LABEL: node}},
        "capacity": "10Gi",
    }
