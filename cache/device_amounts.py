"""The quantities in slices and claims: an object with one that cannot be read is not used."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cache.device_objects import (
        CapacityRequirements,
        DeviceCapacity,
        ResourceClaim,
        ResourceSlice,
    )
    from cache.objects import Quantity


def slice_amounts(known: ResourceSlice) -> Iterator[Quantity | None]:
    """Yield the capacities of the devices, with their policies, and all counters."""
    for counter_set in known.spec.shared_counters:
        for counter in counter_set.counters.values():
            yield counter.value
    for device in known.spec.devices:
        for capacity in device.capacity.values():
            yield from _capacity_amounts(capacity)
        for consumption in device.consumes_counters:
            for counter in consumption.counters.values():
                yield counter.value


def _capacity_amounts(capacity: DeviceCapacity) -> Iterator[Quantity | None]:
    yield capacity.value
    policy = capacity.request_policy
    if policy is None:
        return
    yield policy.default
    yield from policy.valid_values
    if policy.valid_range is not None:
        yield policy.valid_range.min
        yield policy.valid_range.max
        yield policy.valid_range.step


def claim_amounts(claim: ResourceClaim) -> Iterator[Quantity | None]:
    """Yield the capacities that a claim asks for, and those that it has got."""
    for request in claim.spec.devices.requests:
        if request.exactly is not None:
            yield from _requested_amounts(request.exactly.capacity)
        for alternative in request.first_available:
            yield from _requested_amounts(alternative.capacity)
    if claim.status.allocation is not None:
        for result in claim.status.allocation.devices.results:
            yield from result.consumed_capacity.values()


def _requested_amounts(capacity: CapacityRequirements | None) -> Iterator[Quantity]:
    if capacity is not None:
        yield from capacity.requests.values()
