"""What an explanation says of pods with volumes."""

from __future__ import annotations

from typing import Any

from tests.builders import node, pod
from tests.scheduler.explain.cluster_files import as_object
from tests.scheduler.explain.test_batch import ask

NODES = [as_object(node(name).label("kubernetes.io/hostname", name)) for name in ("n1", "n2")]
POD = as_object(pod("web").claim("data"))

CLASS = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "late"},
    "provisioner": "kubernetes.io/no-provisioner",
    "volumeBindingMode": "WaitForFirstConsumer",
}


def claim(**spec: Any) -> dict[str, Any]:
    asks = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default", "uid": "c", "resourceVersion": "1"},
        "spec": {**asks, "storageClassName": "late", **spec},
        "status": {"phase": "Pending"},
    }


def volume_on(node_name: str) -> dict[str, Any]:
    near = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node_name]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"disk-{node_name}", "uid": "v", "resourceVersion": "1"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "late",
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [near]}]}},
        },
        "status": {"phase": "Available"},
    }


def test_a_claim_that_does_not_exist_is_told() -> None:
    (answer,) = ask({"objects": NODES, "pod": POD})
    assert answer["prefilter"]["code"] == 3
    assert answer["prefilter"]["reasons"] == ['persistentvolumeclaim "data" not found']


def test_a_node_without_a_fitting_volume_is_told() -> None:
    (answer,) = ask({"objects": [*NODES, CLASS, claim(), volume_on("n1")], "pod": POD})
    assert "total" in answer["nodes"]["n1"]
    assert answer["nodes"]["n2"]["rejected"] == "VolumeBinding"
    assert answer["nodes"]["n2"]["reasons"] == [
        "node(s) didn't find available persistent volumes to bind"
    ]


def test_the_objects_of_csi_drivers_count() -> None:
    limited = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": "n1"},
        "spec": {"drivers": [{"name": "csi.example", "nodeID": "n1", "allocatable": {"count": 0}}]},
    }
    bound = volume_on("n1")
    bound["spec"] |= {
        "csi": {"driver": "csi.example", "volumeHandle": "h"},
        "claimRef": {"namespace": "default", "name": "data", "uid": "c"},
    }
    bound["metadata"]["name"] = "disk"
    taken = claim(volumeName="disk")
    taken["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    (answer,) = ask({"objects": [*NODES, CLASS, taken, bound, limited], "pod": POD})
    assert answer["nodes"]["n1"]["reasons"] == ["node(s) exceed max volume count"]
    assert answer["nodes"]["n2"]["rejected"] == "VolumeBinding"
