"""The counters of pools: what is left of them, and what a search takes.

*Source*: k8s.io/dynamic-resource-allocation 0.36, structured/internal/incubating,
allocator_incubating.go (checkAvailableCounters), and internal/allocatedstate.go
(IsDeviceAllocated).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cache.device_objects import DeviceId
from cache.quantity import exact_value

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

    from cache.allocated_devices import AllocatedState
    from plugins.dynamic_resources.pooled_device import CounterKey, PooledDevice
    from plugins.dynamic_resources.pools import CounterState


class AvailableCounters:
    """What the allocated devices have left of the counters of pools.

    Notes
    -----
    *Concurrency*: confined to one thread.

    *Cost*: for each pool the devices of all its slices, once.

    # Differs: kube-scheduler keeps what is left by the name of the pool alone. Of two drivers with
    pools of the same name, only the counters of the one that was asked for first are checked then.
    """

    def __init__(self, allocated: AllocatedState) -> None:
        self._allocated = allocated
        self._left: dict[CounterState, Mapping[CounterKey, int | Fraction]] = {}

    def left(self, state: CounterState) -> Mapping[CounterKey, int | Fraction]:
        """Return what is left of each counter; less than 0 where devices were given twice.

        Raises
        ------
        QuantityError
            When an amount cannot be read.
        """
        left = self._left.get(state)
        if left is None:
            left = self._left[state] = self._compute(state)
        return left

    def _compute(self, state: CounterState) -> Mapping[CounterKey, int | Fraction]:
        left = {
            (name, counter): exact_value(amount.value)
            for name, counter_set in state.sets.items()
            for counter, amount in counter_set.counters.items()
        }
        allocated = self._allocated
        for each in state.slices:
            driver, pool = each.spec.driver, each.spec.pool.name
            for device in each.spec.devices:
                if not device.consumes_counters:
                    continue
                device_id = DeviceId(driver, pool, device.name)
                if not (
                    device_id in allocated.devices
                    or device_id in allocated.shared
                    or device_id in allocated.consumed
                ):
                    continue
                for taken in device.consumes_counters:
                    for counter, amount in taken.counters.items():
                        key = (taken.counter_set, counter)
                        if key in left:
                            left[key] -= exact_value(amount.value)
        return left


class CounterSums:
    """What is left of the counters of pools while a search takes devices and gives them back."""

    def __init__(self, available: AvailableCounters) -> None:
        self._available = available
        self._left: dict[CounterState, dict[CounterKey, int | Fraction] | None] = {}

    def take(self, state: CounterState, device: PooledDevice) -> bool:
        """Take the counters of a device, and return whether all counters of the pool suffice.

        Nothing is taken where they do not. A device needs all counters of its pool not to be below
        zero, also those that it does not consume.

        Raises
        ------
        QuantityError
            When an amount cannot be read.
        """
        left = self._of(state)
        if left is None:
            return False
        for key, amount in device.consumption:
            left[key] -= amount
        if all(left[key] >= 0 for key, _ in device.consumption):
            return True
        self.give_back(state, device)
        return False

    def give_back(self, state: CounterState, device: PooledDevice) -> None:
        """Give the counters of a device back."""
        left = self._of(state)
        if left is not None:
            for key, amount in device.consumption:
                left[key] += amount

    def _of(self, state: CounterState) -> dict[CounterKey, int | Fraction] | None:
        """Return what is left, or None when one counter was below zero from the beginning."""
        if state not in self._left:
            left = dict(self._available.left(state))
            self._left[state] = left if all(amount >= 0 for amount in left.values()) else None
        return self._left[state]
