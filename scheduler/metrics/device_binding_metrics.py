"""Count what happens to devices while their pods are bound.

*Source*: pkg/scheduler/metrics/metrics.go (1.36) for all that begin with ``scheduler_``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scheduler.metrics.instruments import exponential

if TYPE_CHECKING:
    from scheduler.metrics.instruments import Registry


class DeviceBindingMetrics:
    """Claims that were created, waits for binding conditions, and collisions.

    Notes
    -----
    *Concurrency*: thread-safe.

    Attributes
    ----------
    claim_created
        Counts a special claim, by ``success`` or ``failure``.
    collision
        Counts a device that another scheduler had allocated too, by its driver.
    allocation
        Counts an allocated device with binding conditions, by profile, driver and how the wait
        for the conditions ended: success, failure, timeout or error.
    """

    def __init__(self, registry: Registry) -> None:
        self.claim_created = registry.counter(
            "scheduler_resourceclaim_creates_total",
            "ResourceClaims that the scheduler created for extended resources, by result.",
            "status",
        ).count
        self.allocation = registry.counter(
            "scheduler_dra_bindingconditions_allocations_total",
            "Allocated devices with binding conditions, by how the wait for these ended.",
            "profile",
            "driver",
            "status",
        ).count
        self._wait = registry.histogram(
            "scheduler_dra_bindingconditions_wait_duration_seconds",
            "Time that pods waited for the binding conditions of their devices.",
            exponential(0.1, 2, 14),
            "profile",
            "driver",
            "status",
        )
        self.collision = registry.counter(
            "berth_device_collisions_total",
            "Devices that another scheduler allocated at the same time; found before the pod was "
            "bound and given back, by driver.",
            "driver",
        ).count

    def waited(self, profile: str, driver: str, status: str, seconds: float) -> None:
        """Count a wait for binding conditions, for one of the devices of a pod."""
        self._wait.of(profile, driver, status).observe(seconds)
