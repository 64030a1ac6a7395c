"""The number of devices that are free, tainted or allocated, by driver and pool."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from cache.device_objects import BLOCKING_EFFECTS, DeviceId, PoolId

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cache.allocated_devices import AllocatedState
    from cache.device_objects import Device, ResourceSlice
    from cache.devices import Devices
    from cache.locks import MakeLock

ALLOCATED: Final = "allocated"
TAINTED: Final = "tainted"
FREE: Final = "free"

MAX_POOLS: Final = 1000
"""Pools of several nodes that are named. The devices of further ones count without a pool."""


class DeviceGroup(NamedTuple):
    """Devices that are counted together.

    Attributes
    ----------
    pool
        Empty for all pools of single nodes, of which there are as many as nodes.
    state
        ``allocated`` while a claim uses a device, alone or as one of several; else ``tainted``
        where a taint keeps claims off that do not tolerate it; else ``free``.
    """

    driver: str
    pool: str
    state: str


class DeviceCounts:
    """Counts the devices of the newest generation of all pools.

    Notes
    -----
    *Concurrency*: thread-safe.

    *Cost*: a count costs the devices of the pools that changed since the last one.
    """

    def __init__(self, devices: Devices, make_lock: MakeLock = threading.Lock) -> None:
        self._devices = devices
        self._lock = make_lock()
        self._slices_version = self._users_version = 0
        self._by_pool: dict[PoolId, Counter[DeviceGroup]] = {}

    def read(self) -> Mapping[tuple[str, ...], float]:
        """Return the number of devices by driver, pool and state."""
        with self._lock:
            self._follow()
            named = sorted(pool for pool, groups in self._by_pool.items() if _is_named(groups))
            kept = frozenset(named[:MAX_POOLS])
            total: Counter[tuple[str, ...]] = Counter()
            for pool, groups in self._by_pool.items():
                for group, count in groups.items():
                    name = group.pool if pool in kept else ""
                    total[group.driver, name, group.state] += count
            return {group: float(count) for group, count in total.items()}

    def _follow(self) -> None:
        slices, claims = self._devices.slices, self._devices.claims
        self._slices_version, pools = slices.pool_changes(self._slices_version)
        self._users_version, users = claims.device_changes(self._users_version)
        view = slices.view()
        stale: Iterable[PoolId]
        if pools is None or users is None:
            stale = {*self._by_pool, *view.by_pool}
        else:
            stale = pools | {PoolId(device.driver, device.pool) for device in users}
        allocated = self._devices.allocated()
        for pool in stale:
            published = view.by_pool.get(pool)
            if published is None:
                self._by_pool.pop(pool, None)
            else:
                self._by_pool[pool] = _counted(pool, published, allocated)


def _is_named(groups: Counter[DeviceGroup]) -> bool:
    return any(group.pool for group in groups)


def _counted(
    pool: PoolId, published: Iterable[ResourceSlice], allocated: AllocatedState
) -> Counter[DeviceGroup]:
    """Return the number of devices of one pool by group."""
    slices = list(published)
    newest = max(each.spec.pool.generation for each in slices)
    current = [each for each in slices if each.spec.pool.generation == newest]
    is_local = all(each.spec.node_name for each in current)
    name = "" if is_local else pool.pool
    return Counter(
        DeviceGroup(pool.driver, name, _state(pool, device, allocated))
        for each in current
        for device in each.spec.devices
    )


def _state(pool: PoolId, device: Device, allocated: AllocatedState) -> str:
    identity = DeviceId(pool.driver, pool.pool, device.name)
    if identity in allocated.devices or identity in allocated.shared:
        return ALLOCATED
    if any(taint.effect in BLOCKING_EFFECTS for taint in device.taints):
        return TAINTED
    return FREE
