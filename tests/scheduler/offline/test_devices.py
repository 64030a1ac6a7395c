"""A dump's claims, slices and classes are known to plugins as the watches would make them known."""

from __future__ import annotations

import json

import msgspec

from cache.device_objects import DeviceId, PoolId
from scheduler.offline.cluster import Cluster
from scheduler.offline.offline_framework import OfflineServices
from tests.device_builders import (
    DRIVER,
    allocated,
    device,
    device_class,
    resource_claim,
    resource_slice,
)


def dumped(kind: str, known: msgspec.Struct) -> tuple[msgspec.Raw, str]:
    """Return an object as kubectl prints it, with a field that Berth does not read."""
    text = json.loads(msgspec.json.encode(known)) | {"apiVersion": "resource.k8s.io/v1"}
    return msgspec.Raw(json.dumps(text).encode()), kind


def test_all_kinds_of_a_dump_are_known() -> None:
    cluster = Cluster()
    unreadable = cluster.add_all(
        [
            dumped("DeviceClass", device_class("gpu").build()),
            dumped("ResourceSlice", resource_slice("s").on_node("n").devices("gpu-0").build()),
            dumped("ResourceClaim", resource_claim("c").allocated(allocated("gpu-0")).build()),
        ]
    )
    devices = OfflineServices(cluster).devices
    assert unreadable == []
    assert devices.classes.get("gpu") == device_class("gpu").build()
    assert list(devices.slices.view().by_pool) == [PoolId(DRIVER, "pool")]
    assert list(devices.allocated().devices) == [DeviceId(DRIVER, "pool", "gpu-0")]


def test_a_slice_with_an_amount_that_cannot_be_read_is_named() -> None:
    cluster = Cluster()
    bad = resource_slice("bad").devices(device("d").capacity(memory="much"))
    (error,) = cluster.add_all([dumped("ResourceSlice", bad.build())])
    assert str(error).startswith("ResourceSlice bad: 'much' is not a quantity")
    assert not cluster.known.devices.slices.view().by_pool
