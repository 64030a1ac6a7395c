"""The objects of dynamic resource allocation, as immutable structs.

As in :mod:`cache.objects`, the structs have only the fields that scheduling reads or writes, with
quantities in their original form.

*Source*: k8s.io/api resource/v1 (1.36).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import force_setattr

from cache.kept_annotations import kept_annotations
from cache.objects import (
    ApiStruct,
    NodeSelector,
    ObjectMeta,
    PodMeta,
    Quantity,
    Toleration,
)
from cache.shared_values import SharedValues

Opaque: TypeAlias = Mapping[str, Any] | None
"""JSON that is copied and never looked into."""

_NONE: Mapping[str, Any] = MappingProxyType({})


class DeviceId(NamedTuple):
    """The identity of a device in the cluster."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"

    @property
    def pool_id(self) -> PoolId:
        """The pool of the device."""
        return PoolId(self.driver, self.pool)


class PoolId(NamedTuple):
    """The identity of a pool of devices in the cluster."""

    driver: str
    pool: str


# --- devices ----------------------------------------------------------------------------------


class DeviceAttribute(ApiStruct, frozen=True):
    """The value of an attribute: exactly one of the fields is set."""

    int_value: int | None = msgspec.field(name="int", default=None)
    bool_value: bool | None = msgspec.field(name="bool", default=None)
    string_value: str | None = msgspec.field(name="string", default=None)
    version_value: str | None = msgspec.field(name="version", default=None)


class CapacityRequestPolicyRange(ApiStruct, frozen=True):
    """The amounts that may be consumed: from ``min`` to ``max`` in steps from ``min`` on."""

    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityRequestPolicy(ApiStruct, frozen=True):
    """How much of a capacity a request consumes; at most one of values and range is set."""

    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] = ()
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(ApiStruct, frozen=True):
    """A capacity of a device, and how it may be shared."""

    value: Quantity = "0"
    request_policy: CapacityRequestPolicy | None = None


class Counter(ApiStruct, frozen=True):
    """An amount of something that the devices of a pool draw from together."""

    value: Quantity = "0"


class CounterSet(ApiStruct, frozen=True):
    """A set of counters of a pool."""

    name: str = ""
    counters: Mapping[str, Counter] = _NONE


class DeviceCounterConsumption(ApiStruct, frozen=True):
    """What an allocated device takes from one counter set."""

    counter_set: str = ""
    counters: Mapping[str, Counter] = _NONE


class DeviceTaint(ApiStruct, frozen=True):
    """A taint of a device; effects None, NoSchedule, NoExecute."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


BLOCKING_EFFECTS: Final = frozenset(("NoSchedule", "NoExecute"))
"""The effects of taints that prevent an allocation to who does not tolerate them; all others are
ignored."""


_ATTRIBUTES: Final[SharedValues[DeviceAttribute]] = SharedValues()
_ATTRIBUTE_MAPS: Final[SharedValues[Mapping[str, DeviceAttribute]]] = SharedValues()
_CAPACITY_MAPS: Final[SharedValues[Mapping[str, DeviceCapacity]]] = SharedValues()


class Device(ApiStruct, frozen=True):
    """A device that a driver publishes.

    Devices with equal attributes, or equal capacities, share them, which saves half of their
    memory or more.
    """

    name: str = ""
    attributes: Mapping[str, DeviceAttribute] = _NONE
    capacity: Mapping[str, DeviceCapacity] = _NONE
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] | None = None
    binding_failure_conditions: tuple[str, ...] | None = None
    allow_multiple_allocations: bool | None = None

    def __post_init__(self) -> None:
        if self.attributes:
            force_setattr(self, "attributes", _shared_attributes(self.attributes))
        if self.capacity:
            shared = _CAPACITY_MAPS.share(_capacity_key(self.capacity), self.capacity)
            force_setattr(self, "capacity", shared)


def _shared_attributes(attributes: Mapping[str, DeviceAttribute]) -> Mapping[str, DeviceAttribute]:
    shared = {name: _ATTRIBUTES.share(each, each) for name, each in attributes.items()}
    return _ATTRIBUTE_MAPS.share(tuple(shared.items()), shared)


def _capacity_key(capacity: Mapping[str, DeviceCapacity]) -> tuple[object, ...]:
    # 1 and 1.0 are equal, and have different texts.
    return tuple((name, type(each.value), each) for name, each in capacity.items())


class ResourcePool(ApiStruct, frozen=True):
    """The pool of a slice: its newest generation has ``resource_slice_count`` slices."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(ApiStruct, frozen=True):
    """Devices or counter sets of one pool, and the nodes that reach them."""

    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(ApiStruct, frozen=True):
    """A part of a pool of devices."""

    metadata: PodMeta = PodMeta()
    spec: ResourceSliceSpec = ResourceSliceSpec()


# --- classes ----------------------------------------------------------------------------------


class CELDeviceSelector(ApiStruct, frozen=True):
    """A CEL expression over ``device``."""

    expression: str = ""


class DeviceSelector(ApiStruct, frozen=True):
    """A condition on a device; ``cel`` is the only kind there is."""

    cel: CELDeviceSelector | None = None


class DeviceClassConfiguration(ApiStruct, frozen=True):
    """Parameters for a driver."""

    opaque: Opaque = None


class DeviceClassSpec(ApiStruct, frozen=True):
    """The devices of a class: those for which all selectors are true."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(ApiStruct, frozen=True):
    """A class of devices."""

    metadata: PodMeta = PodMeta()
    spec: DeviceClassSpec = DeviceClassSpec()


# --- claims -----------------------------------------------------------------------------------


class CapacityRequirements(ApiStruct, frozen=True):
    """The amounts of a device's capacities that a request consumes at least."""

    requests: Mapping[str, Quantity] = _NONE


class ExactDeviceRequest(ApiStruct, frozen=True):
    """Devices of a class; modes ExactCount (``count`` of them) and All."""

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int = 0
    admin_access: bool | None = None
    tolerations: tuple[Toleration, ...] = ()
    capacity: CapacityRequirements | None = None


class DeviceSubRequest(ApiStruct, frozen=True):
    """One alternative of a prioritized list."""

    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int = 0
    tolerations: tuple[Toleration, ...] = ()
    capacity: CapacityRequirements | None = None


class DeviceRequest(ApiStruct, frozen=True):
    """A named request: exactly one form, or the first available of several."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(ApiStruct, frozen=True):
    """What the devices of some requests (all of them, where none is named) have in common."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaimConfiguration(ApiStruct, frozen=True):
    """Parameters for a driver, for some requests or, where none is named, for all."""

    requests: tuple[str, ...] = ()
    opaque: Opaque = None


class DeviceClaim(ApiStruct, frozen=True):
    """The devices that a claim asks for."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(ApiStruct, frozen=True):
    """The request of a claim; immutable in the API."""

    devices: DeviceClaim = DeviceClaim()


class DeviceRequestAllocationResult(ApiStruct, frozen=True):
    """One allocated device: ``request`` is a request, or a request and a sub-request: ``a/b``."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[Toleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = msgspec.field(name="shareID", default=None)
    consumed_capacity: Mapping[str, Quantity] = _NONE


class DeviceAllocationConfiguration(ApiStruct, frozen=True):
    """Parameters for a driver; sources FromClass and FromClaim."""

    source: str = ""
    requests: tuple[str, ...] = ()
    opaque: Opaque = None


class DeviceAllocationResult(ApiStruct, frozen=True):
    """The allocated devices and the parameters for their drivers."""

    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


class AllocationResult(ApiStruct, frozen=True):
    """An allocation; without a node selector it can be used on all nodes."""

    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ResourceClaimConsumerReference(ApiStruct, frozen=True):
    """Who may use an allocated claim; for a pod ``resource`` is ``pods``, without API group."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class DeviceCondition(ApiStruct, frozen=True):
    """What a driver reports of an allocated device; statuses True, False, Unknown."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class AllocatedDeviceStatus(ApiStruct, frozen=True):
    """The conditions of one allocated device."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = msgspec.field(name="shareID", default=None)
    conditions: tuple[DeviceCondition, ...] = ()


class ResourceClaimStatus(ApiStruct, frozen=True):
    """The allocation of a claim, who may use it, and the state of its devices."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


_CLAIM_ANNOTATIONS = "resource.kubernetes.io/"


class ClaimMeta(ObjectMeta, frozen=True):
    """The metadata of a claim, with those annotations that are about claims."""

    finalizers: tuple[str, ...] = ()
    generate_name: str = ""

    def __post_init__(self) -> None:
        if self.annotations:
            kept = {k: v for k, v in self.annotations.items() if k.startswith(_CLAIM_ANNOTATIONS)}
            force_setattr(self, "annotations", {**kept_annotations(self.annotations), **kept})


class ResourceClaim(ApiStruct, frozen=True):
    """A claim on devices, which one or more pods share."""

    metadata: ClaimMeta = ClaimMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()
