"""Claims and classes for tests of what is known of them, in one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from tests.device_builders import allocated
from tests.device_builders import device_class as class_builder
from tests.device_builders import resource_claim as claim_builder

if TYPE_CHECKING:
    from cache.device_objects import (
        DeviceClass,
        DeviceRequestAllocationResult,
        ResourceClaim,
    )


def claim(
    name: str,
    *devices: str | DeviceRequestAllocationResult,
    version: int | str = 1,
    **metadata: Any,
) -> ResourceClaim:
    """Return a claim with its name as UID that has these devices; without any it has none."""
    results = [allocated(each) if isinstance(each, str) else each for each in devices]
    builder = claim_builder(name).uid(name).resource_version(str(version))
    made = (builder.allocated(*results) if results else builder).build()
    return replace(made, metadata=replace(made.metadata, **metadata))


def share(device: str, share_id: str, **consumed: str) -> DeviceRequestAllocationResult:
    """Return a share of a device, and the capacity that it consumes."""
    return allocated(device, share=share_id, consumed=consumed)


def device_class(
    name: str, *expressions: str, resource: str | None = None, created: str | None = None
) -> DeviceClass:
    """Return a class with CEL selectors that may provide an extended resource."""
    builder = class_builder(name).selecting(*expressions)
    if resource is not None:
        builder = builder.extended_resource(resource)
    return (builder if created is None else builder.created(created)).build()
