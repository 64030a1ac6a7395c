"""Clusters with devices of any size for benchmarks without an API server, and claims on them."""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from cache.device_objects import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceClass,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceSlice,
)
from cache.objects import PodResourceClaim
from tests.bench.device_templates import CLASS, DRIVER, EMPTY_CLASS, device_classes
from tests.bench.large_clusters import node_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cache.objects import Pod

ONE_KIND: Final = "template claims of one kind"
COUNTERS: Final = "devices that draw from counters"

_DOMAIN: Final = f'device.attributes["{DRIVER}"]'
_FAMILIES: Final = 2
_PARTITIONS: Final = 4


def classes() -> Iterator[DeviceClass]:
    """Yield the classes that claims ask for."""
    for each in device_classes():
        if each["metadata"]["name"] in (CLASS, EMPTY_CLASS):
            yield msgspec.convert(each, DeviceClass)


# --- slices -----------------------------------------------------------------------------------


def slices(kind: str, nodes: int, devices: int) -> Iterator[ResourceSlice]:
    """Yield the slices of so many nodes, each with a pool of so many devices.

    No two devices are equal: each has a UUID. In the slices of ``COUNTERS`` each device draws
    from one of the counters of its pool, which has enough for half of the devices.
    """
    for index in range(nodes):
        name = node_name(index)
        with_counters = kind == COUNTERS
        if with_counters:
            counters = {
                f"c{n}": {"value": str(max(devices // _PARTITIONS // 2, 1))}
                for n in range(_PARTITIONS)
            }
            sets = [{"name": "set", "counters": counters}]
            yield _slice(f"{name}-counters", name, 2, sharedCounters=sets)
        published = [_device(name, number, with_counters) for number in range(devices)]
        for start in range(0, devices, 128):
            count = 2 if with_counters else -(-devices // 128)
            yield _slice(f"{name}-{start}", name, count, devices=published[start : start + 128])


def _slice(name: str, node: str, slices: int, **spec: object) -> ResourceSlice:
    pool = {"name": node, "generation": 1, "resourceSliceCount": slices}
    json = {
        "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"},
        "spec": {"driver": DRIVER, "nodeName": node, "pool": pool, **spec},
    }
    # Through JSON, as from the API server: what is shared then is shared here.
    return msgspec.json.decode(msgspec.json.encode(json), type=ResourceSlice)


def _device(node: str, number: int, with_counters: bool) -> dict[str, Any]:
    device: dict[str, Any] = {
        "name": f"gpu-{number}",
        "attributes": {
            "uuid": {"string": f"GPU-{node}-{number:04}"},
            "model": {"string": "LATEST-GPU-MODEL"},
            "family": {"string": f"family-{number % _FAMILIES}"},
            "driverVersion": {"version": "1.2.3"},
            "index": {"int": number},
        },
        "capacity": {"memory": {"value": "80Gi"}},
    }
    if with_counters:
        drawn = {f"c{number % _PARTITIONS}": {"value": "1"}}
        device["consumesCounters"] = [{"counterSet": "set", "counters": drawn}]
    return device


# --- claims -----------------------------------------------------------------------------------


def _devices(*requests: dict[str, Any], **more: object) -> dict[str, Any]:
    return {"requests": list(requests), **more}


def _exactly(name: str = "r", count: int = 1, *expressions: str) -> dict[str, Any]:
    selectors = [{"cel": {"expression": each}} for each in expressions]
    wanted = {"deviceClassName": CLASS, "allocationMode": "ExactCount", "count": count}
    return {"name": name, "exactly": {**wanted, "selectors": selectors}}


def _alternative(name: str, class_name: str) -> dict[str, Any]:
    return {
        "name": name,
        "deviceClassName": class_name,
        "allocationMode": "ExactCount",
        "count": 1,
    }


def _unlike(place: int) -> dict[str, Any]:
    return _devices(_exactly("r", 1, f"{_DOMAIN}.index >= {place}"))


def _fixed(devices: dict[str, Any], place: int) -> dict[str, Any]:
    return devices


KINDS: Final[dict[str, Callable[[int], dict[str, Any]]]] = {
    ONE_KIND: partial(_fixed, _devices(_exactly())),
    "claims that all differ": _unlike,
    "two devices with matchAttribute": partial(
        _fixed,
        _devices(
            _exactly("r", 2),
            constraints=[{"requests": ["r"], "matchAttribute": f"{DRIVER}/family"}],
        ),
    ),
    "firstAvailable": partial(
        _fixed,
        _devices(
            {
                "name": "r",
                "firstAvailable": [_alternative("a", EMPTY_CLASS), _alternative("b", CLASS)],
            }
        ),
    ),
    COUNTERS: partial(_fixed, _devices(_exactly())),
}
"""What the claim at a place of a pod asks for, by kind."""


def claim_of(kind: str, place: int) -> ResourceClaim:
    """Return the claim at a place of a pod, without a name."""
    return msgspec.convert({"spec": {"devices": KINDS[kind](place)}}, ResourceClaim)


def named(claim: ResourceClaim, name: str) -> ResourceClaim:
    """Return a claim with a name and UID."""
    meta = replace(
        claim.metadata,
        name=name,
        namespace="default",
        uid=f"uid-claim-{name}",
        resource_version="1",
    )
    return replace(claim, metadata=meta)


def with_claims(pod: Pod, names: list[str]) -> Pod:
    """Return a pod that uses claims."""
    used = tuple(
        PodResourceClaim(name=f"claim-{place}", resource_claim_name=name)
        for place, name in enumerate(names)
    )
    return replace(pod, spec=replace(pod.spec, resource_claims=used))


def allocated_claims(count: int, nodes: int, devices: int) -> Iterator[ResourceClaim]:
    """Yield claims that have a device each, dealt out to the nodes."""
    free = ((node_name(node), number) for number in range(devices) for node in range(nodes))
    base = claim_of(ONE_KIND, 0)
    for index, (node, number) in enumerate(islice(free, count)):
        result = DeviceRequestAllocationResult("r", DRIVER, node, f"gpu-{number}")
        allocation = AllocationResult(DeviceAllocationResult((result,)))
        status = replace(base.status, allocation=allocation)
        yield replace(named(base, f"allocated-{index}"), status=status)
