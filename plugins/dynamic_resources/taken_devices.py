"""The devices that a search has taken so far, and which it may take next.

*Source*: k8s.io/dynamic-resource-allocation 0.36, structured/internal/incubating,
allocator_incubating.go (allocateDevice, rollbackDevice, CmpRequestOverCapacity).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cache.quantity import QuantityError
from cache.value import Value
from plugins.dynamic_resources.constraints import MatchAttribute
from plugins.dynamic_resources.consumable_capacity import consumed_capacity, fits
from plugins.dynamic_resources.counters import AvailableCounters, CounterSums

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping
    from fractions import Fraction

    from cache.allocated_devices import AllocatedState
    from cache.device_objects import DeviceId
    from plugins.dynamic_resources.constraints import Constraint
    from plugins.dynamic_resources.consumable_capacity import Amount
    from plugins.dynamic_resources.pooled_device import PooledDevice
    from plugins.dynamic_resources.pools import CounterState, Pool
    from plugins.dynamic_resources.requests import Request

_NOTHING: Final[Mapping[str, int | Fraction]] = {}
_NO_AMOUNTS: Final[Mapping[str, Amount]] = {}


class DevicesInUse:
    """The devices that claims use, and what they leave of counters.

    Notes
    -----
    *Concurrency*: confined to one thread; shared by the searches of one pod.
    """

    def __init__(self, allocated: AllocatedState) -> None:
        self.allocated = allocated
        self.counters = AvailableCounters(allocated)


class Taken(Value, frozen=True, eq=False):
    """A device that was taken for a request.

    Attributes
    ----------
    request, device
        Both.
    consumed
        The capacities of a shared device that are consumed.
    counters
        The counter sets of which the device was charged; None for a device that was not.
    """

    request: Request
    device: PooledDevice
    consumed: Mapping[str, Amount]
    counters: CounterState | None


class _Shares:
    """What a search consumes of a shared device."""

    __slots__ = ("amounts", "count")

    def __init__(self) -> None:
        self.count = 0
        self.amounts: dict[str, int | Fraction] = {}


class TakenDevices:
    """The devices that one search has taken.

    Parameters
    ----------
    in_use
        The devices that claims use; never changed.
    n_claims
        The number of claims of the pod.

    Attributes
    ----------
    of_claims
        The devices of each claim, in the order in which they were taken.
    constraints
        Those of each claim.
    is_constrained
        Whether the last :meth:`take` failed because of a constraint.

    Notes
    -----
    *Concurrency*: confined to one thread.

    Invariant: after :meth:`give_back` everything is as it was before :meth:`take`, but for what a
    constraint of distinct values has forgotten.
    """

    def __init__(self, in_use: DevicesInUse, n_claims: int) -> None:
        self.of_claims: list[list[Taken]] = [[] for _ in range(n_claims)]
        self.constraints: list[list[Constraint]] = []
        self.is_constrained = False
        self._allocated = in_use.allocated
        self._alone: dict[DeviceId, set[int]] = {}
        self._shares: dict[DeviceId, _Shares] = {}
        self._counters = CounterSums(in_use.counters)
        self._consumption: dict[tuple[Request, PooledDevice], Mapping[str, Amount] | None] = {}
        self._looks: Mapping[PooledDevice, Hashable] | None = None

    # --- questions ----------------------------------------------------------------------------

    def is_in_use(self, request: Request, device: PooledDevice) -> bool:
        """Return whether a request cannot have a device because it is taken."""
        taken_for = self._alone.get(device.id)
        if request.is_admin:
            return taken_for is not None and request.claim in taken_for
        return bool(taken_for) or device.id in self._allocated.devices

    def is_allocated(self, request: Request, device: PooledDevice) -> bool:
        """Return whether a request cannot have a device because another claim has it."""
        return not request.is_admin and device.id in self._allocated.devices

    def has_capacity(self, request: Request, device: PooledDevice) -> bool:
        """Return whether the capacities of a device suffice for a request."""
        capacities = device.device.capacity
        used = self._allocated.consumed.get(device.id)
        if not request.capacity:
            if not capacities:
                return True
            if not (device.is_shared or device.has_policies or used):
                return True
        consumed = self._consumed(request, device)
        if consumed is None:
            return False
        shares = self._shares.get(device.id)
        taken = _NOTHING if shares is None else shares.amounts
        return fits(capacities, consumed, used or _NOTHING, taken)

    def admits(self, request: Request, device: PooledDevice, pool: Pool) -> bool:
        """Return whether a request can take a device that is free and that it selects.

        Unlike a :meth:`take` that fails it leaves no trace in a constraint.
        """
        if not self.has_capacity(request, device) or not request.tolerates(device):
            return False
        for constraint in self.constraints[request.claim]:
            if not constraint.admits(request.name, request.alternative, device):
                return False
        charged = self._counters_of(device, pool)
        if charged is None:
            return True
        if not self._charge(charged, device):
            return False
        self._counters.give_back(charged, device)
        return True

    def matches(self, request: Request, device: PooledDevice) -> bool:
        """Return False if a constraint keeps a request from a device; :meth:`take` would then fail.

        It is asked first because counters cost more. What a constraint that wants different values
        admits depends on what was added to it and removed again, so beside others it is left to
        :meth:`take`.
        """
        constraints = self.constraints[request.claim]
        if len(constraints) > 1 and not all(type(each) is MatchAttribute for each in constraints):
            return True
        for each in constraints:  # noqa: SIM110 - a generator costs as much as the rest
            if not each.admits(request.name, request.alternative, device):
                return False
        return True

    def look(self, request: Request, device: PooledDevice) -> Hashable:
        """Return a value that is equal for devices which this search cannot tell apart now."""
        look = device.look if self._looks is None else self._looks[device]
        used = self._allocated.consumed.get(device.id)
        if not (request.is_admin or device.is_shared or used):
            return look
        shares = self._shares.get(device.id)
        return (
            look,
            device.id in self._allocated.devices,
            frozenset(self._alone.get(device.id, ())),
            None if used is None else frozenset(used.items()),
            None if shares is None else frozenset(shares.amounts.items()),
        )

    # --- changes ------------------------------------------------------------------------------

    def see_alike(self, looks: Mapping[PooledDevice, Hashable]) -> None:
        """Tell devices apart by these values from now on."""
        self._looks = looks

    def take(self, request: Request, device: PooledDevice, pool: Pool) -> Taken | None:
        """Take a device that is free and that a request selects; None where it may not.

        Counters, taints, constraints and capacities are checked, in this order.
        """
        self.is_constrained = False
        charged = self._counters_of(device, pool)
        if charged is not None and not self._charge(charged, device):
            return None
        is_taken = (
            request.tolerates(device)
            and self._constrain(request, device)
            and self._keep_if_it_has_capacity(request, device)
        )
        if not is_taken:
            if charged is not None:
                self._counters.give_back(charged, device)
            return None
        consumed = (self._consumed(request, device) or _NO_AMOUNTS) if device.is_shared else {}
        if device.is_shared:
            self._share(device, consumed, 1)
        else:
            self._alone.setdefault(device.id, set()).add(request.claim)
        taken = Taken(request, device, consumed, charged)
        self.of_claims[request.claim].append(taken)
        return taken

    def give_back(self, taken: Taken) -> None:
        """Give the device back that was taken last."""
        request, device = taken.request, taken.device
        self.of_claims[request.claim].pop()
        if device.is_shared:
            self._share(device, taken.consumed, -1)
        else:
            self._alone[device.id].discard(request.claim)
        self._unconstrain(request, device, len(self.constraints[request.claim]))
        if taken.counters is not None:
            self._counters.give_back(taken.counters, device)

    # --- parts --------------------------------------------------------------------------------

    def _consumed(self, request: Request, device: PooledDevice) -> Mapping[str, Amount] | None:
        key = (request, device)
        if key not in self._consumption:
            self._consumption[key] = consumed_capacity(device.device.capacity, request.capacity)
        return self._consumption[key]

    def _counters_of(self, device: PooledDevice, pool: Pool) -> CounterState | None:
        """Return the counters that a device is charged to; a share of it only once."""
        if not device.device.consumes_counters:
            return None
        if device.is_shared and (
            device.id in self._allocated.consumed or device.id in self._shares
        ):
            return None
        return pool.counters

    def _charge(self, counters: CounterState, device: PooledDevice) -> bool:
        try:
            return self._counters.take(counters, device)
        except QuantityError:
            # The API server lets nobody write such an amount.
            return False

    def _constrain(self, request: Request, device: PooledDevice) -> bool:
        for index, constraint in enumerate(self.constraints[request.claim]):
            if not constraint.add(request.name, request.alternative, device):
                self._unconstrain(request, device, index)
                self.is_constrained = True
                return False
        return True

    def _unconstrain(self, request: Request, device: PooledDevice, count: int) -> None:
        for constraint in reversed(self.constraints[request.claim][:count]):
            constraint.remove(request.name, request.alternative, device)

    def _keep_if_it_has_capacity(self, request: Request, device: PooledDevice) -> bool:
        if self.has_capacity(request, device):
            return True
        self._unconstrain(request, device, len(self.constraints[request.claim]))
        return False

    def _share(self, device: PooledDevice, consumed: Mapping[str, Amount], sign: int) -> None:
        shares = self._shares.get(device.id)
        if shares is None:
            shares = self._shares[device.id] = _Shares()
        shares.count += sign
        if not shares.count:
            del self._shares[device.id]
            return
        for name, amount in consumed.items():
            shares.amounts[name] = shares.amounts.get(name, 0) + sign * amount.exact
