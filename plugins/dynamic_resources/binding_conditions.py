"""Binding conditions: what a driver has to report of allocated devices before their pod is bound.

*Source*: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go,
isClaimReadyForBinding, isClaimTimeout, hasBindingConditions and listBindingConditionsStatus (1.36).
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cache.device_objects import (
        AllocatedDeviceStatus,
        DeviceCondition,
        DeviceRequestAllocationResult,
        ResourceClaim,
    )


class DeviceBindingError(Exception):
    """The devices of a claim did not become ready; the message is kube-scheduler's."""


class DeviceBindingFailedError(DeviceBindingError):
    """A driver reports that it cannot prepare a device."""

    def __init__(self, claim: ResourceClaim, failed: DeviceCondition) -> None:
        message = json.dumps(failed.message, ensure_ascii=False)
        name = claim.metadata.name
        super().__init__(
            f"device binding failed: claim={name}, reason={failed.reason}, message={message}"
        )


class DeviceBindingTimeoutError(DeviceBindingError):
    """The devices did not become ready in time."""

    def __init__(self, why: str) -> None:
        super().__init__(f"device binding timeout: {why}")


def is_ready(claim: ResourceClaim) -> bool:
    """Return whether all binding conditions of an allocated claim are met.

    Raises
    ------
    DeviceBindingFailedError
        When a failure condition of a device is true.
    """
    if claim.status.allocation is None:
        return False
    for result in conditional_results((claim,)):
        status = _status_of(claim, result)
        if status is None:
            return False
        for name in result.binding_failure_conditions:
            condition = _find(status, name)
            if condition is not None and condition.status == "True":
                raise DeviceBindingFailedError(claim, condition)
        for name in result.binding_conditions:
            condition = _find(status, name)
            if condition is None or condition.status != "True":
                return False
    return True


def is_timed_out(claim: ResourceClaim, timeout_s: float, now_s: float) -> bool:
    """Return whether a claim with binding conditions was allocated too long ago.

    Parameters
    ----------
    now_s
        Seconds since the epoch.
    """
    deadline_s = binding_deadline(claim, timeout_s)
    return deadline_s is not None and deadline_s < now_s


def binding_deadline(claim: ResourceClaim, timeout_s: float) -> float | None:
    """Return when the binding of a claim times out, in seconds since the epoch.

    None for a claim without binding conditions, or of which nobody knows when it was allocated.
    """
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None:
        return None
    if not any(conditional_results((claim,))):
        return None
    try:
        since = datetime.fromisoformat(allocation.allocation_timestamp)
    except ValueError:
        return None
    if since.tzinfo is None:
        since = since.replace(tzinfo=UTC)
    return since.timestamp() + timeout_s


def conditional_results(
    claims: Iterable[ResourceClaim],
) -> Iterator[DeviceRequestAllocationResult]:
    """Yield the allocated devices with binding conditions."""
    for claim in claims:
        if claim.status.allocation is not None:
            for result in claim.status.allocation.devices.results:
                if result.binding_conditions:
                    yield result


def _status_of(
    claim: ResourceClaim, result: DeviceRequestAllocationResult
) -> AllocatedDeviceStatus | None:
    """Return what the driver reports of a device; shares of a device are not told apart."""
    wanted = (result.driver, result.pool, result.device)
    for status in claim.status.devices:
        if (status.driver, status.pool, status.device) == wanted:
            return status
    return None


def _find(status: AllocatedDeviceStatus, name: str) -> DeviceCondition | None:
    return next((each for each in status.conditions if each.type == name), None)
