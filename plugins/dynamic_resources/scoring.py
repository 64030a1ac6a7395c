"""The score of a node: how early in their prioritized lists the chosen alternatives stand.

*Source*: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, computeScore (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cache.device_objects import AllocationResult, ResourceClaim

MAX_ALTERNATIVES: Final = 8
"""Alternatives of a request. Source: FirstAvailableDeviceRequestMaxSize, k8s.io/api resource/v1."""


def prefers_devices(claims: Iterable[ResourceClaim]) -> bool:
    """Return whether any request of the claims is a prioritized list."""
    return any(
        request.first_available for claim in claims for request in claim.spec.devices.requests
    )


def raw_score(claims: Iterable[ResourceClaim], results: Sequence[AllocationResult]) -> int:
    """Return the sum of ``8 - index`` over the chosen alternatives of all requests.

    Parameters
    ----------
    claims
        All claims of a pod.
    results
        The allocations of those that are not allocated yet, in their order.

    Raises
    ------
    ValueError
        When there are fewer results than claims that need one.
    """
    score = 0
    used = 0
    for claim in claims:
        allocation = claim.status.allocation
        if allocation is None:
            if used >= len(results):
                raise ValueError(
                    f"number of allocations {len(results)} is smaller than number of claims "
                    "needing allocation"
                )
            allocation = results[used]
            used += 1
        chosen = {result.request for result in allocation.devices.results}
        for request in claim.spec.devices.requests:
            if request.exactly is None:
                for index, alternative in enumerate(request.first_available):
                    if f"{request.name}/{alternative.name}" in chosen:
                        score += MAX_ALTERNATIVES - index
    return score
