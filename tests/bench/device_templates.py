"""The devices of workloads: slices of nodes and clusters, classes, and claims on them.

They recreate kube-scheduler 1.36, test/integration/scheduler_perf/dra/templates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

Json = dict[str, Any]

DRIVER: Final = "test-driver.cdi.k8s.io"
CLASS: Final = "test-class"
SHARING_CLASS: Final = "test-class-shared"
EMPTY_CLASS: Final = "no-devices-class"
NODE_LABEL: Final = "node-with-dra"
API: Final = "resource.k8s.io/v1"

TAINT: Final = "example.com/taint"
GPU: Final = "example.com/gpu"

CLASSES: Final = 50
"""Classes that provide an extended resource each."""

SAME_RESOURCE: Final = 20
"""Classes that all provide :data:`GPU`."""


def device_classes() -> list[Json]:
    """Return all classes of the workloads."""
    shared = f'device.driver == "{DRIVER}" && device.allowMultipleAllocations == true'
    return [
        _class(CLASS, f'device.driver == "{DRIVER}"'),
        _class(SHARING_CLASS, shared),
        _class(EMPTY_CLASS, 'device.driver == "no-such-driver.cdi.k8s.io"'),
        *(
            _class(f"{CLASS}-{index}", f'device.driver == "{DRIVER}"', extended_resource(index))
            for index in range(CLASSES)
        ),
        *(
            _class(f"scoring-{CLASS}-{index}", f'device.driver == "{DRIVER}"', GPU)
            for index in range(SAME_RESOURCE)
        ),
    ]


def extended_resource(index: int) -> str:
    """Return the name of the extended resource that a class provides."""
    return f"{GPU}-{index}"


def implicit_resource(index: int) -> str:
    """Return the name under which every class is an extended resource."""
    return f"deviceclass.resource.kubernetes.io/{CLASS}-{index}"


def _class(name: str, expression: str, extended_resource_name: str = "") -> Json:
    spec: Json = {"selectors": [{"cel": {"expression": expression}}]}
    if extended_resource_name:
        spec["extendedResourceName"] = extended_resource_name
    return {
        "apiVersion": API,
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": spec,
    }


# --- slices -----------------------------------------------------------------------------------


def _slice(name: str, pool: str, slices: int, **spec: object) -> Json:
    return {
        "apiVersion": API,
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {
            "driver": DRIVER,
            "pool": {"name": pool, "generation": 1, "resourceSliceCount": slices},
            **spec,
        },
    }


PREALLOCATED: Final = (1, 2)
"""The counters of the partition of each pool that a claim has already."""

_LABELLED: Final = {
    "nodeSelectorTerms": [
        {"matchExpressions": [{"key": NODE_LABEL, "operator": "In", "values": ["true"]}]}
    ]
}


def local_devices(count: int, **more: object) -> Callable[[Sequence[str]], Iterator[Json]]:
    """Return what yields one slice of so many devices for each node.

    Parameters
    ----------
    more
        What each device has besides.
    """

    def slices(nodes: Sequence[str]) -> Iterator[Json]:
        for node in nodes:
            devices = [{**_local_device(index), **more} for index in range(count)]
            yield _slice(node, node, 1, nodeName=node, devices=devices)

    return slices


def _local_device(index: int) -> Json:
    return {
        "name": f"instance-{index}",
        "attributes": {
            "model": {"string": "LATEST-GPU-MODEL"},
            "family": {"string": "GPU"},
            "driverVersion": {"version": "1.2.3"},
            "dra.example.com/numa": {"int": index},
        },
        "capacity": {"memory": {"value": "1Gi"}},
    }


def shared_devices(nodes: Sequence[str]) -> Iterator[Json]:
    """Yield 20 pools for each node: one device of 80Gi that all nodes reach and claims share."""
    policy = {"default": "1Gi", "validRange": {"min": "1Gi"}}
    device = {
        "name": "shareable-device",
        "allowMultipleAllocations": True,
        "capacity": {"memory": {"value": "80Gi", "requestPolicy": policy}},
    }
    for index in range(20 * len(nodes)):
        name = f"resourceslice-{index}"
        yield _slice(name, name, 1, nodeSelector=_LABELLED, devices=[device])


def partitioned_devices(nodes: Sequence[str]) -> Iterator[Json]:
    """Yield 20 pools for each node: six partitions that draw from four counters."""
    counters = {f"counter{index}": {"value": "1"} for index in range(1, 5)}
    for index in range(20 * len(nodes)):
        pool = f"resourceslice-{index}"
        sets = [{"name": "counter-set", "counters": counters}]
        yield _slice(f"{pool}-counters", pool, 2, nodeSelector=_LABELLED, sharedCounters=sets)
        devices = [_partition(index, *drawn) for drawn in ((1, 2), (3, 4), (1,), (2,), (3,), (4,))]
        yield _slice(f"{pool}-devices", pool, 2, nodeSelector=_LABELLED, devices=devices)


def backtracking_devices(nodes: Sequence[str]) -> Iterator[Json]:
    """Yield one pool for each node: eight devices, of which the first takes the room of two.

    Upstream there is one such pool that all nodes reach, and one pod.
    """
    processors = {f"cpu{index}": {"value": "1"} for index in range(1, 9)}
    sets = [
        {"name": "counter-set-for-cpu", "counters": processors},
        {"name": "counter-set-for-mem", "counters": {"mem": {"value": "70Gi"}}},
    ]
    for node in nodes:
        yield _slice(f"{node}-counters", node, 2, nodeName=node, sharedCounters=sets)
        devices = [
            {
                "name": f"device-{index}",
                "consumesCounters": [
                    {
                        "counterSet": "counter-set-for-cpu",
                        "counters": {f"cpu{index}": {"value": "1"}},
                    },
                    {
                        "counterSet": "counter-set-for-mem",
                        "counters": {"mem": {"value": "20Gi" if index == 1 else "10Gi"}},
                    },
                ],
            }
            for index in range(1, 9)
        ]
        yield _slice(f"{node}-devices", node, 2, nodeName=node, devices=devices)


def _partition(pool: int, *counters: int) -> Json:
    drawn = {f"counter{index}": {"value": "1"} for index in counters}
    return {
        "name": "device-" + "-".join(map(str, counters)),
        "attributes": {
            "dra.example.com/slice": {"int": pool},
            "preallocate": {"bool": counters == PREALLOCATED},
        },
        "capacity": {"counters": {"value": str(len(counters))}},
        "consumesCounters": [{"counterSet": "counter-set", "counters": drawn}],
    }


SLICES: Final[Mapping[str, Callable[[Sequence[str]], Iterator[Json]]]] = {
    "ten for each node": local_devices(10),
    "ten for each node, tainted": local_devices(
        10, taints=[{"key": TAINT, "value": "tainted", "effect": "NoSchedule"}]
    ),
    "twenty for each node": local_devices(20),
    "backtracking": backtracking_devices,
    "shared": shared_devices,
    "partitioned": partitioned_devices,
}
"""By the name by which a workload's ground asks for them."""


# --- claims that are allocated already --------------------------------------------------------


def allocated_local(share: float, but: int = 0) -> Callable[[Sequence[str], str], Iterator[Json]]:
    """Return what yields claims that have a share of ten devices for each node, but for the last.

    Parameters
    ----------
    but
        How many of them stay free.
    """

    def claims(nodes: Sequence[str], namespace: str) -> Iterator[Json]:
        count = round(share * 10 * len(nodes)) - but
        for index in range(count):
            # The first devices of all nodes before the second ones.
            node, device = nodes[index % len(nodes)], index // len(nodes)
            terms = [_field("metadata.name", node)]
            yield _allocated(index, namespace, node, f"instance-{device}", terms)

    return claims


def allocated_partitions(nodes: Sequence[str], namespace: str) -> Iterator[Json]:
    """Yield a claim for each pool of partitions, which has one that draws from two counters."""
    name = "device-" + "-".join(map(str, PREALLOCATED))
    for index in range(20 * len(nodes)):
        pool = f"resourceslice-{index}"
        yield _allocated(index, namespace, pool, name, _LABELLED["nodeSelectorTerms"])


def _field(key: str, value: str) -> Json:
    return {"matchFields": [{"key": key, "operator": "In", "values": [value]}]}


def _allocated(index: int, namespace: str, pool: str, device: str, terms: Sequence[object]) -> Json:
    result = {"request": "req-0", "driver": DRIVER, "pool": pool, "device": device}
    return {
        "apiVersion": API,
        "kind": "ResourceClaim",
        "metadata": {
            "name": f"allocated-{index:06}",
            "namespace": namespace,
            "finalizers": [FINALIZER],
        },
        "spec": {"devices": {"requests": [_exactly("req-0")]}},
        "status": {
            "allocation": {
                "devices": {"results": [result]},
                "nodeSelector": {"nodeSelectorTerms": list(terms)},
            }
        },
    }


ALLOCATED: Final[Mapping[str, Callable[[Sequence[str], str], Iterator[Json]]]] = {
    "half": allocated_local(0.5),
    "all but ten": allocated_local(1, but=10),
    "one partition of each pool": allocated_partitions,
}
"""By the name by which a workload asks for them; each takes the nodes and a namespace."""


# --- claims -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClaimTemplate:
    """A kind of claim, and how many pods share one.

    Parameters
    ----------
    devices
        ``spec.devices`` as in the API.
    shared_by
        How many pods in turn use the same claim.
    """

    devices: Mapping[str, Any]
    shared_by: int = 1

    def claims_of(self, pod: Json, prefix: str, index: int) -> Iterator[Json]:
        """Make a pod use its claim; yield the claim with the first of the pods that share it."""
        name = f"{prefix}-{index // self.shared_by:06}"
        pod["spec"]["resourceClaims"] = [{"name": "resource", "resourceClaimName": name}]
        for container in pod["spec"]["containers"]:
            container.setdefault("resources", {})["claims"] = [{"name": "resource"}]
        if index % self.shared_by == 0:
            yield {
                "apiVersion": API,
                "kind": "ResourceClaim",
                "metadata": {"name": name, "namespace": pod["metadata"]["namespace"]},
                "spec": {"devices": dict(self.devices)},
            }


def _exactly(name: str, class_name: str = CLASS, **more: object) -> Json:
    return {"name": name, "exactly": {"deviceClassName": class_name, **more}}


FINALIZER: Final = "resource.kubernetes.io/delete-protection"

_40GI: Final = {"capacity": {"requests": {"memory": "40Gi"}}}

ONE_DEVICE = ClaimTemplate({"requests": [_exactly("req-0")]})
SHARED_BY_FIVE = ClaimTemplate(ONE_DEVICE.devices, shared_by=5)
TWO_SHARES = ClaimTemplate(
    {"requests": [_exactly(f"req-{index}", SHARING_CLASS, **_40GI) for index in range(2)]}
)
TOLERATING = ClaimTemplate(
    {"requests": [_exactly("req-0", tolerations=[{"key": TAINT, "operator": "Exists"}])]}
)
SEVEN_DEVICES = ClaimTemplate({"requests": [_exactly("req-0", count=7)]})
TWO_OF_ONE_POOL = ClaimTemplate(
    {
        "requests": [_exactly("req-0", count=2)],
        "constraints": [{"requests": ["req-0"], "matchAttribute": "dra.example.com/slice"}],
    }
)
SECOND_CHOICE = ClaimTemplate(
    {
        "requests": [
            {
                "name": "req-0",
                "firstAvailable": [
                    {"name": "sub-0", "deviceClassName": EMPTY_CLASS},
                    {"name": "sub-1", "deviceClassName": CLASS},
                ],
            }
        ]
    }
)
