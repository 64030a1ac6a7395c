"""What an explanation says of devices."""

from __future__ import annotations

import io
import json
from typing import Any

from scheduler.explain import Batch
from tests.builders import node, pod
from tests.scheduler.explain.cluster_files import as_object

DRIVER = "gpu.example.com"
VERSION = "resource.k8s.io/v1"
NODE = as_object(node("n1"))
CLASS = {
    "apiVersion": VERSION,
    "kind": "DeviceClass",
    "metadata": {"name": "gpu"},
    "spec": {"extendedResourceName": "example.com/gpu"},
}
SLICE = {
    "apiVersion": VERSION,
    "kind": "ResourceSlice",
    "metadata": {"name": "s1"},
    "spec": {
        "driver": DRIVER,
        "nodeName": "n1",
        "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0"}],
    },
}


def claim(node_name: str = "") -> dict[str, Any]:
    """A claim on one device; with a node's name it is allocated there."""
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    status: dict[str, Any] = {}
    if node_name:
        result = {"request": "r", "driver": DRIVER, "pool": node_name, "device": "gpu-0"}
        field = {"key": "metadata.name", "operator": "In", "values": [node_name]}
        selector = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        status["allocation"] = {"devices": {"results": [result]}, "nodeSelector": selector}
    return {
        "apiVersion": VERSION,
        "kind": "ResourceClaim",
        "metadata": {"name": "gpus", "namespace": "default", "uid": "c"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
        "status": status,
    }


def explained(requested: dict[str, Any], *objects: dict[str, Any]) -> dict[str, Any]:
    """The answer to a pod with these fields in a cluster of one node."""
    asked = as_object(pod("web"))
    asked["spec"] |= requested
    question = {"objects": [NODE, CLASS, SLICE, *objects], "pod": asked}
    answer = io.BytesIO()
    Batch().serve(io.BytesIO(json.dumps(question).encode() + b"\n"), answer)
    decoded: dict[str, Any] = json.loads(answer.getvalue())
    return decoded


CLAIMED = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpus"}]}


def test_a_feasible_node_has_the_devices_that_the_pod_would_get() -> None:
    [allocation] = explained(CLAIMED, claim())["nodes"]["n1"]["allocations"]
    assert allocation["claim"] == "gpus"
    assert "requests" not in allocation
    [result] = allocation["allocation"]["devices"]["results"]
    assert (result["pool"], result["device"]) == ("n1", "gpu-0")


def test_extended_resources_that_are_devices_have_a_claim_with_requests() -> None:
    container = {"name": "main", "resources": {"requests": {"example.com/gpu": "1"}}}
    [allocation] = explained({"containers": [container]})["nodes"]["n1"]["allocations"]
    [request] = allocation["requests"]
    assert request["exactly"]["deviceClassName"] == "gpu"


def test_a_pod_without_claims_has_no_allocations() -> None:
    answer = explained({})
    assert "allocations" not in answer["nodes"]["n1"]
    assert "deallocation" not in answer


def test_a_claim_that_keeps_the_pod_from_all_nodes_would_be_given_back() -> None:
    answer = explained(CLAIMED, claim("elsewhere"))
    assert answer["deallocation"] == "deallocation of ResourceClaim completed"
