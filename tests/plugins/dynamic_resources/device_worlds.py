"""Small clusters with devices, and what the allocator finds in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

from cache.allocated_devices import NO_USE, AllocatedDevices, claim_user, device_use
from cache.device_slices import DeviceSlices
from plugins.dynamic_resources.allocator import Allocator
from plugins.dynamic_resources.deadline import NO_DEADLINE
from plugins.dynamic_resources.errors import AllocationError
from plugins.dynamic_resources.pools import PoolIndex
from plugins.dynamic_resources.selector_cache import SelectorCache
from tests.builders import node
from tests.device_builders import DRIVER, device_class, resource_slice

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cache.allocated_devices import AllocatedState
    from cache.device_objects import (
        AllocationResult,
        DeviceClass,
        DeviceRequestAllocationResult,
        ResourceClaim,
        ResourceSlice,
    )
    from cache.device_slices import SlicesView
    from cache.objects import Node
    from plugins.dynamic_resources.deadline import Deadline
    from tests.device_builders import (
        DeviceBuilder,
        DeviceClassBuilder,
        ResourceClaimBuilder,
        ResourceSliceBuilder,
    )

OTHER = "nic.example.com"
"""Another driver."""

GPU = device_class("gpu").selecting(f'device.driver == "{DRIVER}"')
NIC = device_class("nic").selecting(f'device.driver == "{OTHER}"')
ANY = device_class("any")
CLASSES = (GPU, NIC, ANY)

HERE = node("n1").label("zone", "a").label("kind", "big").build()
THERE = node("n2").label("zone", "b").label("kind", "big").build()

SELECTORS = SelectorCache()


def here(*devices: DeviceBuilder | str, pool: str = "pool", name: str = "") -> ResourceSliceBuilder:
    """Return the only slice of a pool on the node ``HERE``."""
    return resource_slice(name or f"slice-{pool}", pool=pool).on_node("n1").devices(*devices)


@dataclass(frozen=True)
class Found:
    """What the allocator found.

    Attributes
    ----------
    devices
        For each claim ``request=pool/device`` of each result; None when nothing was found.
    error
        The text of the error.
    results
        The allocations.
    """

    devices: list[list[str]] | None
    error: str = ""
    results: tuple[AllocationResult, ...] = ()


@dataclass(frozen=True)
class World:
    """Slices, classes and claims that use devices."""

    slices: Sequence[ResourceSlice] = ()
    classes: Sequence[DeviceClass] = field(default=tuple(each.build() for each in CLASSES))
    used: Sequence[ResourceClaim] = ()

    def view(self) -> SlicesView:
        known = DeviceSlices()
        for each in self.slices:
            known.changed(None, each)
        return known.view()

    def state(self) -> AllocatedState:
        devices = AllocatedDevices()
        for claim in self.used:
            devices.replace(claim_user(claim), NO_USE, device_use(claim))
        return devices.state()

    def allocator(self, claims: Iterable[ResourceClaim]) -> Allocator:
        classes = {each.metadata.name: each for each in self.classes}
        ids = count(1)
        return Allocator(
            tuple(claims),
            self.state(),
            PoolIndex(self.view()),
            classes.get,
            SELECTORS,
            lambda: f"share-{next(ids)}",
        )

    def find(
        self,
        *claims: ResourceClaim,
        on: Node = HERE,
        deadline: Deadline = NO_DEADLINE,
        prune: bool = True,
    ) -> Found:
        """Return what is found for claims on a node."""
        try:
            results = self.allocator(claims).allocate(on, deadline, prune=prune)
        except AllocationError as error:
            return Found(None, str(error))
        if results is None:
            return Found(None)
        return Found([list(map(_text, each.devices.results)) for each in results], "", results)


def world(
    *slices: ResourceSliceBuilder,
    classes: Iterable[DeviceClassBuilder] = CLASSES,
    used: Iterable[ResourceClaimBuilder] = (),
) -> World:
    """Return a world of what builders make."""
    return World(
        tuple(each.build() for each in slices),
        tuple(each.build() for each in classes),
        tuple(each.build() for each in used),
    )


def _text(result: DeviceRequestAllocationResult) -> str:
    return f"{result.request}={result.pool}/{result.device}"
