"""Builders of the objects of dynamic resource allocation, in the manner of :mod:`tests.builders`.

device("gpu-0").attribute("model", "a100").capacity(memory="80Gi").taint("broken").build()
resource_slice("s1").on_node("n1").devices(device("gpu-0"), device("gpu-1")).build()
device_class("gpu").selecting('device.driver == "gpu.example.com"').build()
resource_claim("c").request("r", "gpu", count=2).match("gpu.example.com/numa").build()
resource_claim("c").request("r", "gpu").allocated(allocated("gpu-0", request="r")).build()
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from msgspec.structs import replace

from cache.device_objects import (
    AllocatedDeviceStatus,
    AllocationResult,
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    CapacityRequirements,
    CELDeviceSelector,
    ClaimMeta,
    Counter,
    CounterSet,
    Device,
    DeviceAllocationResult,
    DeviceAttribute,
    DeviceCapacity,
    DeviceClaimConfiguration,
    DeviceClass,
    DeviceClassConfiguration,
    DeviceCondition,
    DeviceConstraint,
    DeviceCounterConsumption,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceSelector,
    DeviceSubRequest,
    DeviceTaint,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from cache.objects import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    OwnerReference,
    PodMeta,
    Quantity,
    Toleration,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cache.device_objects import DeviceClaim
    from cache.objects import Pod

DRIVER = "gpu.example.com"
"""The driver of slices and allocated devices that do not name one."""

POOL = "pool"
"""The pool of slices and allocated devices that do not name one."""

AttributeValue: TypeAlias = "int | bool | str | DeviceAttribute"


def device(name: str) -> DeviceBuilder:
    """Return a builder of a device about which nothing is known but its name."""
    return DeviceBuilder(Device(name=name))


def resource_slice(
    name: str = "slice", *, driver: str = DRIVER, pool: str = POOL
) -> ResourceSliceBuilder:
    """Return a builder of the only slice of a pool; it has no devices and no nodes yet."""
    return ResourceSliceBuilder(
        ResourceSlice(
            metadata=PodMeta(name=name, uid=f"uid-slice-{name}", resource_version="1"),
            spec=ResourceSliceSpec(driver=driver, pool=ResourcePool(pool, 1, 1)),
        )
    )


def device_class(name: str) -> DeviceClassBuilder:
    """Return a builder of a class that has all devices."""
    return DeviceClassBuilder(
        DeviceClass(metadata=PodMeta(name=name, uid=f"uid-class-{name}", resource_version="1"))
    )


def resource_claim(name: str = "claim", *, namespace: str = "default") -> ResourceClaimBuilder:
    """Return a builder of a claim without requests."""
    return ResourceClaimBuilder(
        ResourceClaim(
            metadata=ClaimMeta(
                name=name,
                namespace=namespace,
                uid=f"uid-claim-{namespace}-{name}",
                resource_version="1",
            )
        )
    )


# --- parts of them ----------------------------------------------------------------------------


def labels_selector(key: str, *values: str) -> NodeSelector:
    """Return the nodes whose label has one of the values."""
    wanted = NodeSelectorRequirement(key, "In", values)
    return NodeSelector((NodeSelectorTerm(match_expressions=(wanted,)),))


def name_selector(node_name: str) -> NodeSelector:
    """Return the node with a name, as an allocation of a local device names it."""
    wanted = NodeSelectorRequirement("metadata.name", "In", (node_name,))
    return NodeSelector((NodeSelectorTerm(match_fields=(wanted,)),))


def selector(expression: str) -> DeviceSelector:
    """Return the devices for which a CEL expression is true."""
    return DeviceSelector(CELDeviceSelector(expression))


def version(text: str) -> DeviceAttribute:
    """Return an attribute that is a semantic version."""
    return DeviceAttribute(version_value=text)


def attribute_of(value: AttributeValue) -> DeviceAttribute:
    """Return an attribute with a value of Python."""
    if isinstance(value, DeviceAttribute):
        return value
    if isinstance(value, bool):
        return DeviceAttribute(bool_value=value)
    if isinstance(value, int):
        return DeviceAttribute(int_value=value)
    return DeviceAttribute(string_value=value)


def range_policy(
    default: Quantity | None = None,
    *,
    min: Quantity | None = None,  # noqa: A002 # the field's name
    max: Quantity | None = None,  # noqa: A002 # the field's name
    step: Quantity | None = None,
) -> CapacityRequestPolicy:
    """Return a policy of amounts from min to max in steps."""
    return CapacityRequestPolicy(
        default=default, valid_range=CapacityRequestPolicyRange(min, max, step)
    )


def values_policy(*values: Quantity, default: Quantity | None = None) -> CapacityRequestPolicy:
    """Return a policy of certain amounts."""
    return CapacityRequestPolicy(default=default, valid_values=values)


def alternative(
    name: str,
    class_name: str,
    *selectors: str,
    count: int = 1,
    mode: str = "ExactCount",
    tolerations: tuple[Toleration, ...] = (),
    capacity: Mapping[str, Quantity] | None = None,
) -> DeviceSubRequest:
    """Return one alternative of a prioritized list; ``selectors`` are CEL expressions."""
    return DeviceSubRequest(
        name=name,
        device_class_name=class_name,
        selectors=tuple(selector(each) for each in selectors),
        allocation_mode=mode,
        count=count if mode == "ExactCount" else 0,
        tolerations=tolerations,
        capacity=None if capacity is None else CapacityRequirements(capacity),
    )


def allocated(
    device_name: str,
    *,
    request: str = "r",
    driver: str = DRIVER,
    pool: str = POOL,
    admin: bool | None = None,
    share: str | None = None,
    consumed: Mapping[str, Quantity] | None = None,
    conditions: tuple[str, ...] = (),
    failures: tuple[str, ...] = (),
    tolerations: tuple[Toleration, ...] = (),
) -> DeviceRequestAllocationResult:
    """Return one allocated device of a claim."""
    return DeviceRequestAllocationResult(
        request=request,
        driver=driver,
        pool=pool,
        device=device_name,
        admin_access=admin,
        tolerations=tolerations,
        binding_conditions=conditions,
        binding_failure_conditions=failures,
        share_id=share,
        consumed_capacity={} if consumed is None else consumed,
    )


# --- builders ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class DeviceBuilder:
    """A device in the making."""

    _device: Device

    def build(self) -> Device:
        """Return the device."""
        return self._device

    def attribute(self, name: str, value: AttributeValue) -> Self:
        """Give it an attribute; see :func:`version` for versions."""
        return self._with(attributes={**self._device.attributes, name: attribute_of(value)})

    def capacity(
        self,
        amounts: Mapping[str, Quantity] | None = None,
        *,
        policy: CapacityRequestPolicy | None = None,
        **more: Quantity,
    ) -> Self:
        """Give it capacities, all of them with the same policy."""
        capacities = {
            name: DeviceCapacity(value, policy)
            for name, value in {**(amounts or {}), **more}.items()
        }
        return self._with(capacity={**self._device.capacity, **capacities})

    def shared(self) -> Self:
        """Let several claims share it."""
        return self._with(allow_multiple_allocations=True)

    def consumes(
        self, counter_set: str, amounts: Mapping[str, Quantity] | None = None, **more: Quantity
    ) -> Self:
        """Let it take amounts from a counter set of its pool."""
        taken = DeviceCounterConsumption(counter_set, _counters({**(amounts or {}), **more}))
        return self._with(consumes_counters=(*self._device.consumes_counters, taken))

    def taint(self, key: str, value: str = "", *, effect: str = "NoSchedule") -> Self:
        """Taint it."""
        return self._with(taints=(*self._device.taints, DeviceTaint(key, value, effect)))

    def binding(self, *conditions: str, failures: tuple[str, ...] | None = None) -> Self:
        """Let binding wait for conditions."""
        return self._with(binding_conditions=conditions, binding_failure_conditions=failures)

    def binds_to_node(self) -> Self:
        """Let an allocation be for one node only."""
        return self._with(binds_to_node=True)

    def on_node(self, name: str) -> Self:
        """Attach it to a node, in a slice whose devices choose their nodes themselves."""
        return self._with(node_name=name)

    def on_nodes(self, chosen: NodeSelector) -> Self:
        """Let some nodes reach it, in a slice whose devices choose their nodes themselves."""
        return self._with(node_selector=chosen)

    def on_all_nodes(self) -> Self:
        """Let all nodes reach it, in a slice whose devices choose their nodes themselves."""
        return self._with(all_nodes=True)

    def _with(self, **fields: Any) -> Self:
        return type(self)(replace(self._device, **fields))


@dataclass(frozen=True)
class ResourceSliceBuilder:
    """A slice in the making."""

    _slice: ResourceSlice

    def build(self) -> ResourceSlice:
        """Return the slice."""
        return self._slice

    def of_pool(self, *, slices: int = 1, generation: int = 1) -> Self:
        """Let its pool have a number of slices, in a generation."""
        pool = ResourcePool(self._slice.spec.pool.name, generation, slices)
        return self._spec(pool=pool)

    def resource_version(self, resource_version: str) -> Self:
        """Give it a resource version."""
        metadata = replace(self._slice.metadata, resource_version=resource_version)
        return type(self)(replace(self._slice, metadata=metadata))

    def on_node(self, name: str) -> Self:
        """Attach its devices to a node."""
        return self._spec(node_name=name)

    def on_nodes(self, chosen: NodeSelector) -> Self:
        """Let some nodes reach its devices."""
        return self._spec(node_selector=chosen)

    def on_all_nodes(self) -> Self:
        """Let all nodes reach its devices."""
        return self._spec(all_nodes=True)

    def per_device(self) -> Self:
        """Let each device choose its nodes."""
        return self._spec(per_device_node_selection=True)

    def devices(self, *devices: DeviceBuilder | str) -> Self:
        """Add devices; a text is a device with that name and nothing else."""
        added = tuple(
            device(each).build() if isinstance(each, str) else each.build() for each in devices
        )
        return self._spec(devices=self._slice.spec.devices + added)

    def counters(
        self, name: str, amounts: Mapping[str, Quantity] | None = None, **more: Quantity
    ) -> Self:
        """Add a counter set."""
        added = CounterSet(name, _counters({**(amounts or {}), **more}))
        return self._spec(shared_counters=(*self._slice.spec.shared_counters, added))

    def _spec(self, **fields: Any) -> Self:
        return type(self)(replace(self._slice, spec=replace(self._slice.spec, **fields)))


@dataclass(frozen=True)
class DeviceClassBuilder:
    """A class in the making."""

    _class: DeviceClass

    def build(self) -> DeviceClass:
        """Return the class."""
        return self._class

    def selecting(self, *expressions: str) -> Self:
        """Add selectors, which are CEL expressions."""
        added = tuple(selector(each) for each in expressions)
        return self._spec(selectors=self._class.spec.selectors + added)

    def configured(self, *opaque: Mapping[str, Any]) -> Self:
        """Add parameters for drivers."""
        added = tuple(DeviceClassConfiguration(each) for each in opaque)
        return self._spec(config=self._class.spec.config + added)

    def extended_resource(self, name: str) -> Self:
        """Let it provide an extended resource."""
        return self._spec(extended_resource_name=name)

    def created(self, at: str) -> Self:
        """Let it have been created at a time."""
        return self._meta(creation_timestamp=at)

    def resource_version(self, resource_version: str) -> Self:
        """Give it a resource version."""
        return self._meta(resource_version=resource_version)

    def _meta(self, **fields: Any) -> Self:
        return type(self)(replace(self._class, metadata=replace(self._class.metadata, **fields)))

    def _spec(self, **fields: Any) -> Self:
        return type(self)(replace(self._class, spec=replace(self._class.spec, **fields)))


@dataclass(frozen=True)
class ResourceClaimBuilder:
    """A claim in the making."""

    _claim: ResourceClaim

    def build(self) -> ResourceClaim:
        """Return the claim."""
        return self._claim

    # --- identity -----------------------------------------------------------------------------

    def uid(self, uid: str) -> Self:
        """Give it a UID."""
        return self._meta(uid=uid)

    def resource_version(self, resource_version: str) -> Self:
        """Give it a resource version."""
        return self._meta(resource_version=resource_version)

    def annotation(self, key: str, value: str) -> Self:
        """Add an annotation."""
        return self._meta(annotations={**self._claim.metadata.annotations, key: value})

    def owned_by(self, pod: Pod) -> Self:
        """Let it be generated for a pod."""
        owner = OwnerReference(
            kind="Pod", name=pod.metadata.name, uid=pod.metadata.uid, controller=True
        )
        return self._meta(owner_references=(owner,))

    def finalizer(self, *finalizers: str) -> Self:
        """Add finalizers."""
        return self._meta(finalizers=self._claim.metadata.finalizers + finalizers)

    def terminating(self, since: str = "2025-01-01T00:00:00Z") -> Self:
        """Let somebody have asked for its deletion."""
        return self._meta(deletion_timestamp=since)

    # --- what it asks for ---------------------------------------------------------------------

    def request(
        self,
        name: str,
        class_name: str,
        *selectors: str,
        count: int = 1,
        mode: str = "ExactCount",
        admin: bool | None = None,
        tolerations: tuple[Toleration, ...] = (),
        capacity: Mapping[str, Quantity] | None = None,
    ) -> Self:
        """Ask for devices of a class; ``selectors`` are CEL expressions."""
        exactly = ExactDeviceRequest(
            device_class_name=class_name,
            selectors=tuple(selector(each) for each in selectors),
            allocation_mode=mode,
            count=count if mode == "ExactCount" else 0,
            admin_access=admin,
            tolerations=tolerations,
            capacity=None if capacity is None else CapacityRequirements(capacity),
        )
        return self._request(DeviceRequest(name=name, exactly=exactly))

    def all_of(self, name: str, class_name: str, *selectors: str, **more: Any) -> Self:
        """Ask for all devices of a class."""
        return self.request(name, class_name, *selectors, mode="All", **more)

    def first_available(self, name: str, *alternatives: DeviceSubRequest) -> Self:
        """Ask for the first alternative that can be satisfied."""
        return self._request(DeviceRequest(name=name, first_available=alternatives))

    def match(self, attribute: str, *requests: str) -> Self:
        """Demand that an attribute is equal in all devices (of some requests)."""
        return self._constraint(DeviceConstraint(requests, match_attribute=attribute))

    def distinct(self, attribute: str, *requests: str) -> Self:
        """Demand that an attribute differs between the devices (of some requests)."""
        return self._constraint(DeviceConstraint(requests, distinct_attribute=attribute))

    def configured(self, opaque: Mapping[str, Any], *requests: str) -> Self:
        """Add parameters for a driver (for some requests)."""
        config = self._claim.spec.devices.config
        return self._devices(config=(*config, DeviceClaimConfiguration(requests, opaque)))

    # --- its status ---------------------------------------------------------------------------

    def allocated(
        self,
        *results: DeviceRequestAllocationResult,
        nodes: NodeSelector | str | None = None,
        at: str | None = None,
    ) -> Self:
        """Allocate devices to it, for some nodes or for one."""
        chosen = name_selector(nodes) if isinstance(nodes, str) else nodes
        allocation = AllocationResult(DeviceAllocationResult(results), chosen, at)
        return self._status(allocation=allocation)

    def reserved_for(self, *pods: Pod) -> Self:
        """Reserve it for pods."""
        references = tuple(
            ResourceClaimConsumerReference(
                resource="pods", name=each.metadata.name, uid=each.metadata.uid
            )
            for each in pods
        )
        return self._status(reserved_for=self._claim.status.reserved_for + references)

    def condition(
        self,
        device_name: str,
        *conditions: DeviceCondition,
        driver: str = DRIVER,
        pool: str = POOL,
        share: str | None = None,
    ) -> Self:
        """Let a driver report conditions of an allocated device."""
        reported = AllocatedDeviceStatus(driver, pool, device_name, share, conditions)
        return self._status(devices=(*self._claim.status.devices, reported))

    # --- parts --------------------------------------------------------------------------------

    def _meta(self, **fields: Any) -> Self:
        return type(self)(replace(self._claim, metadata=replace(self._claim.metadata, **fields)))

    def _status(self, **fields: Any) -> Self:
        return type(self)(replace(self._claim, status=replace(self._claim.status, **fields)))

    def _request(self, request: DeviceRequest) -> Self:
        return self._devices(requests=(*self._spec.requests, request))

    def _constraint(self, constraint: DeviceConstraint) -> Self:
        return self._devices(constraints=(*self._spec.constraints, constraint))

    @property
    def _spec(self) -> DeviceClaim:
        return self._claim.spec.devices

    def _devices(self, **fields: Any) -> Self:
        devices = replace(self._spec, **fields)
        return type(self)(replace(self._claim, spec=replace(self._claim.spec, devices=devices)))


def _counters(amounts: Mapping[str, Quantity]) -> dict[str, Counter]:
    return {name: Counter(value) for name, value in amounts.items()}
