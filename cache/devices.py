"""The state of dynamic resource allocation: claims, slices, classes, and the devices in use."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from cache.claim_cache import ClaimCache
from cache.device_classes import DeviceClasses
from cache.device_slices import DeviceSlices

if TYPE_CHECKING:
    from cache.allocated_devices import AllocatedState
    from cache.device_objects import DeviceId
    from cache.locks import MakeLock


class Devices:
    """The objects that decide which devices a pod with claims can use.

    Attributes
    ----------
    claims
        The claims, with what our own writes returned and what is in flight.
    slices
        The devices that drivers publish.
    classes
        The classes of devices.

    Notes
    -----
    *Concurrency*: thread-safe; written from the I/O loop (claims: from the scheduling thread as
    well), read from any thread.
    """

    def __init__(self, make_lock: MakeLock = threading.Lock) -> None:
        self.claims = ClaimCache(make_lock)
        self.slices = DeviceSlices(make_lock)
        self.classes = DeviceClasses(make_lock)

    def allocated(self) -> AllocatedState:
        """Return the devices in use, those of allocations in flight included."""
        return self.claims.allocated()

    def device_changes(self, since: int) -> tuple[int, frozenset[DeviceId] | None]:
        """Return the version of :meth:`allocated`, and the devices taken or freed after ``since``.

        The devices are None when ``since`` is too long ago.
        """
        return self.claims.device_changes(since)
