"""The devices that claims use, and how much of the shared ones.

*Source*: kube-scheduler 1.36, pkg/scheduler/framework/plugins/dynamicresources,
allocateddevices.go and dra_manager.go (GatherAllocatedState).
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from cache.change_journal import ChangeJournal
from cache.device_objects import DeviceId
from cache.quantity import QuantityError, exact_value
from cache.sharded_map import SnapshotDict
from cache.value import Value

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

    from cache.device_objects import ResourceClaim
    from cache.objects import Quantity


_Capacity: TypeAlias = "Mapping[str, Quantity]"


class ClaimUser(NamedTuple):
    """A claim that uses a device."""

    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class DeviceUse(Value, frozen=True):
    """The devices that one claim uses; those with admin access do not count.

    Attributes
    ----------
    devices
        The devices that it has for itself.
    shares
        Consumed capacity by device and share id; empty for a share without capacities.
    """

    devices: frozenset[DeviceId]
    shares: Mapping[tuple[DeviceId, str], Mapping[str, Quantity]]

    def merged(self, other: DeviceUse) -> DeviceUse:
        """Return the use of both; what is in both counts once."""
        if self == other:
            return self
        return DeviceUse(self.devices | other.devices, {**self.shares, **other.shares})


NO_USE: Final = DeviceUse(frozenset(), {})


def claim_user(claim: ResourceClaim) -> ClaimUser:
    """Return the identity of a claim as a user of devices."""
    metadata = claim.metadata
    return ClaimUser(metadata.namespace, metadata.name, metadata.uid)


def device_use(claim: ResourceClaim) -> DeviceUse:
    """Return the devices that a claim uses: none unless it is allocated.

    *Source*: allocateddevices.go, foreachAllocatedDevice (with DRAConsumableCapacity).
    """
    allocation = claim.status.allocation
    if allocation is None:
        return NO_USE
    devices: list[DeviceId] = []
    shares: dict[tuple[DeviceId, str], Mapping[str, Quantity]] = {}
    for result in allocation.devices.results:
        if result.admin_access:
            continue
        device = DeviceId(result.driver, result.pool, result.device)
        if result.share_id is None:
            devices.append(device)
        else:
            shares[device, result.share_id] = result.consumed_capacity
    return DeviceUse(frozenset(devices), shares) if devices or shares else NO_USE


class AllocatedState(Value, frozen=True):
    """The devices in use at one moment, by allocated claims and by allocations in flight.

    Attributes
    ----------
    version
        Grows with every change; see :meth:`cache.devices.Devices.device_changes`.
    devices
        The devices that are used without a share id, with the claims that use them: normally one
        each. ``device in state.devices`` tells whether a device is in use.
    shared
        The claims by device and share id.
    consumed
        The consumed capacity of shared devices by name, in exact amounts above 0. A device of
        which no share consumes a capacity is missing.

    Notes
    -----
    *Concurrency*: immutable.

    Several claims use one device only after another scheduler has given it once more. It is free
    when the last of them lets it go.

    # Differs: kube-scheduler frees the device with the first of them.
    """

    version: int
    devices: Mapping[DeviceId, tuple[ClaimUser, ...]]
    shared: Mapping[DeviceId, Mapping[str, tuple[ClaimUser, ...]]]
    consumed: Mapping[DeviceId, Mapping[str, int | Fraction]]

    def users(self, device: DeviceId) -> tuple[ClaimUser, ...]:
        """Return the claims that use a device, alone or as one of several, in sorted order."""
        alone = self.devices.get(device, ())
        shares = self.shared.get(device)
        if not shares:
            return alone
        return tuple(sorted({*alone, *(user for users in shares.values() for user in users)}))


class AllocatedDevices:
    """Counts the claims that use each device.

    The state depends on the uses of all claims alone, not on the order in which they came.

    Notes
    -----
    *Concurrency*: none of its own; guarded by the lock of its owner.

    *Cost*: a change costs what the claim uses before and after it.
    """

    def __init__(self) -> None:
        self.journal: ChangeJournal[DeviceId] = ChangeJournal()
        """The devices that were taken or freed, wholly or in part."""
        self._users: SnapshotDict[DeviceId, tuple[ClaimUser, ...]] = SnapshotDict()
        self._shares: SnapshotDict[DeviceId, Mapping[str, tuple[ClaimUser, ...]]] = SnapshotDict()
        self._consumed: SnapshotDict[DeviceId, Mapping[str, int | Fraction]] = SnapshotDict()
        self._consumers: dict[DeviceId, int] = {}
        self._state = AllocatedState(0, {}, {}, {})

    def replace(self, user: ClaimUser, before: DeviceUse, after: DeviceUse) -> None:
        """Replace what a claim uses."""
        for device in before.devices - after.devices:
            self._users.put(device, _without(self._users.get(device), user) or None)
            self.journal.record(device)
        for device in after.devices - before.devices:
            self._users.put(device, _with(self._users.get(device), user))
            self.journal.record(device)
        for share, capacity in before.shares.items():
            if after.shares.get(share) != capacity:
                self._leave(user, share, capacity)
        for share, capacity in after.shares.items():
            if before.shares.get(share) != capacity:
                self._join(user, share, capacity)

    def is_in_use(self, use: DeviceUse) -> bool:
        """Return whether each device and share of a use has a user."""
        return all(self._users.get(device) for device in use.devices) and all(
            share_id in (self._shares.get(device) or ()) for device, share_id in use.shares
        )

    def state(self) -> AllocatedState:
        """Return the devices in use now.

        *Cost*: for each device that changed since the last call a 256th of all devices in use.
        """
        if self._state.version != self.journal.version:
            self._state = AllocatedState(
                self.journal.version,
                self._users.snapshot(),
                self._shares.snapshot(),
                self._consumed.snapshot(),
            )
        return self._state

    def _join(self, user: ClaimUser, share: tuple[DeviceId, str], capacity: _Capacity) -> None:
        device, share_id = share
        shares = self._shares.get(device) or {}
        users = _with(shares.get(share_id), user)
        self._shares.put(device, MappingProxyType({**shares, share_id: users}))
        if capacity:
            self._consumers[device] = self._consumers.get(device, 0) + 1
            self._consume(device, capacity, 1)
        self.journal.record(device)

    def _leave(self, user: ClaimUser, share: tuple[DeviceId, str], capacity: _Capacity) -> None:
        device, share_id = share
        shares = dict(self._shares.get(device) or {})
        users = _without(shares.pop(share_id, None), user)
        if users:
            shares[share_id] = users
        self._shares.put(device, MappingProxyType(shares) if shares else None)
        if capacity:
            self._consumers[device] -= 1
            self._consume(device, capacity, -1)
        self.journal.record(device)

    def _consume(self, device: DeviceId, capacity: _Capacity, sign: int) -> None:
        if not self._consumers[device]:
            del self._consumers[device]
            self._consumed.put(device, None)
            return
        amounts = dict(self._consumed.get(device) or {})
        for name, quantity in capacity.items():
            amount = amounts.pop(name, 0) + sign * _amount(quantity)
            if amount:
                amounts[name] = amount
        self._consumed.put(device, MappingProxyType(amounts))


def _amount(quantity: Quantity) -> int | Fraction:
    """Return an amount; one that cannot be read, which the API server lets nobody write, is 0."""
    try:
        return exact_value(quantity)
    except QuantityError:
        return 0


def _with(users: tuple[ClaimUser, ...] | None, user: ClaimUser) -> tuple[ClaimUser, ...]:
    return tuple(sorted((*users, user))) if users else (user,)


def _without(users: tuple[ClaimUser, ...] | None, user: ClaimUser) -> tuple[ClaimUser, ...]:
    return tuple(each for each in users or () if each != user)
