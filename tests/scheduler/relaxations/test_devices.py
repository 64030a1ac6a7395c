"""What helps a pod whose devices are not there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from scheduler.config import default_config, effective_profiles
from scheduler.offline.cluster import Cluster, read_pod
from scheduler.offline.offline_framework import offline_framework
from scheduler.relaxations import find_relaxations
from tests.builders import PodBuilder, node, pod
from tests.scheduler.explain.cluster_files import as_object, raw

if TYPE_CHECKING:
    from scheduler.relaxations import Relaxations

VERSION = "resource.k8s.io/v1"
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
        "driver": "gpu.example.com",
        "nodeName": "n1",
        "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0"}],
    },
}


def claim(count: int) -> dict[str, Any]:
    """Return a claim on some devices of the class."""
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}
    return {
        "apiVersion": VERSION,
        "kind": "ResourceClaim",
        "metadata": {"name": "gpus", "namespace": "default", "uid": "c"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
    }


def found(asked: PodBuilder, *objects: dict[str, Any]) -> Relaxations:
    """Return what helps a pod in a cluster of one node with one device."""
    cluster = Cluster()
    for each in (as_object(node("n1")), CLASS, SLICE, *objects):
        cluster.add(raw(each))
    framework = offline_framework(effective_profiles(default_config()), cluster)
    info = read_pod(raw(as_object(asked)))
    return find_relaxations(framework, cluster.snapshot(), cluster.known.storage, info)


@pytest.mark.parametrize(
    ("asked", "objects", "text"),
    [
        pytest.param(
            pod().resource_claim("gpu", "gpus"), (claim(2),),
            "do without the resource claim gpu", id="a claim on more devices than there are",
        ),
        pytest.param(
            pod().resource_claim("gpu", "gpus"), (),
            "do without the resource claim gpu", id="a claim that does not exist",
        ),
        pytest.param(
            pod().request({"example.com/gpu": "2"}), (),
            "request 1 less example.com/gpu (1 instead of 2)",
            id="an extended resource that is devices",
        ),
    ],
)  # fmt: skip
def test_the_claim_or_the_resource_is_named(
    asked: PodBuilder, objects: tuple[dict[str, Any], ...], text: str
) -> None:
    (group,) = found(asked, *objects).groups
    assert group.relaxations[0].changes[0].text == text
