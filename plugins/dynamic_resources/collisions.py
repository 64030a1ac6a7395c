"""Find devices that two schedulers have allocated at the same time.

Nothing on the API server keeps two claims from holding one device. Two schedulers that allocate
from the same pool each choose from what they know at that time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cache.allocated_devices import claim_user
from cache.device_objects import DeviceId, PoolId
from cache.quantity import QuantityError, exact_value
from plugins.dynamic_resources.claims_of_pod import key_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cache.allocated_devices import AllocatedState
    from cache.device_objects import DeviceCapacity, ResourceClaim
    from cache.device_slices import SlicesView


class Collision(NamedTuple):
    """A device that a claim cannot have, for others have it.

    Attributes
    ----------
    claim
        The claim, as ``namespace/name``.
    others
        The other claims.
    """

    device: DeviceId
    claim: str
    others: tuple[str, ...]

    def __str__(self) -> str:
        others = ", ".join(self.others)
        device = "/".join(self.device)
        return f"device {device} of claim {self.claim} was also allocated to {others}"


class CollisionError(Exception):
    """A claim cannot have a device; ``collision`` says which and why."""

    def __init__(self, collision: Collision) -> None:
        super().__init__(str(collision))
        self.collision = collision


def find_collision(
    claim: ResourceClaim, state: AllocatedState, slices: SlicesView
) -> Collision | None:
    """Return a device of an allocated claim that others have as well, or None.

    A device that may be shared collides when more of a capacity is consumed than there is. Devices
    that draw from the same counters are not compared.

    Parameters
    ----------
    state
        The devices in use, those of the claim included.
    """
    allocation = claim.status.allocation
    if allocation is None:
        return None
    own = claim_user(claim)
    for result in allocation.devices.results:
        if result.admin_access:
            continue
        device = DeviceId(result.driver, result.pool, result.device)
        if result.share_id is None or _is_overdrawn(device, state, slices):
            users = state.users(device)
        else:
            users = state.devices.get(device, ())
        others = tuple(str(user) for user in users if user != own)
        if others:
            return Collision(device, key_of(claim), others)
    return None


def _is_overdrawn(device: DeviceId, state: AllocatedState, slices: SlicesView) -> bool:
    """Return whether more of a device's capacity is consumed than its slice shows."""
    consumed = state.consumed.get(device)
    if not consumed:
        return False
    capacity = _capacity(device, slices)
    return any(
        name in capacity and amount > _amount(capacity[name]) for name, amount in consumed.items()
    )


def _capacity(device: DeviceId, slices: SlicesView) -> Mapping[str, DeviceCapacity]:
    newest = -1
    found: Mapping[str, DeviceCapacity] = {}
    for each in slices.by_pool.get(PoolId(device.driver, device.pool), ()):
        if each.spec.pool.generation > newest:
            for published in each.spec.devices:
                if published.name == device.device:
                    newest, found = each.spec.pool.generation, published.capacity
    return found


def _amount(capacity: DeviceCapacity) -> float:
    """Return an amount; one that cannot be read, which is in no slice, has no limit."""
    try:
        return float(exact_value(capacity.value))
    except QuantityError:
        return float("inf")
