"""Report what happens to devices while their pods are bound: Events and metrics.

*Source*: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, PreBind (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cache.device_objects import ResourceClaim
    from cache.objects import Pod
    from scheduler.cycle.reports import Reports


class BindingDeviceReports:
    """The service behind :class:`plugins.framework.handle.DeviceReports`.

    Notes
    -----
    *Concurrency*: thread-safe.
    """

    def __init__(self, reports: Reports) -> None:
        self._events = reports.events
        self._metrics = reports.metrics.device_bindings

    def waiting(self, pod: Pod, node_name: str) -> None:
        """Record an Event about a pod that waits for the binding conditions of its devices."""
        self._events.event(
            pod,
            "Normal",
            "BindingConditionsPending",
            "Scheduling",
            f"waiting for binding conditions for device on node {node_name}",
        )

    def waited(
        self, pod: Pod, claims: Sequence[ResourceClaim], result: str, seconds: float
    ) -> None:
        """Count how the wait ended, once for each allocated device."""
        profile = pod.spec.scheduler_name
        for claim in claims:
            if claim.status.allocation is None:
                continue
            for each in claim.status.allocation.devices.results:
                self._metrics.waited(profile, each.driver, result, seconds)
                if each.binding_conditions:
                    self._metrics.allocation(profile, each.driver, result)

    def collision(self, driver: str) -> None:
        """Count a device that another scheduler had allocated as well."""
        self._metrics.collision(driver)
