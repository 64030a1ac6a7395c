"""Write the claims of a pod that is about to be bound, and wait for its devices.

    for each claim: finalizer -> does another claim have the device? -> stop
                              -> allocation and reservation
    has another scheduler given a device away as well? -> give ours back
    binding conditions? -> wait for them

Differs: kube-scheduler looks at binding conditions every five seconds. Here the claim cache wakes
the binding, and the clock does when the time is up. kube-scheduler does not look for devices that
are allocated twice.

*Source*: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, PreBind, bindClaim
and isPodReadyForBinding (1.36).
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from cache.device_objects import ResourceClaimStatus
from cache.objects import PodExtendedResourceClaimStatus
from cache.resource_versions import INCOMPARABLE, parse_resource_version
from plugins.dynamic_resources.binding_conditions import (
    DeviceBindingFailedError,
    DeviceBindingTimeoutError,
    binding_deadline,
    conditional_results,
    is_ready,
    is_timed_out,
)
from plugins.dynamic_resources.claims_of_pod import is_reserved_for, key_of
from plugins.dynamic_resources.collisions import CollisionError, find_collision
from plugins.dynamic_resources.extended_resources import is_in_memory
from plugins.framework.status import SUCCESS, Status, unschedulable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cache.device_objects import ResourceClaim
    from cache.objects import Pod
    from plugins.dynamic_resources.cycle_claims import CycleClaims
    from plugins.framework.handle import Handle

SHOWN_WITHIN_S: Final = 120.0
"""How long binding waits until the watch shows a special claim.
Source: AssumeExtendedResourceTimeoutDefaultSeconds, extendeddynamicresources.go (1.36)."""

CAUGHT_UP_WITHIN_S: Final = 1.0
"""How long binding waits until the watch shows its write, and all earlier ones of others with it.
Longer than any watch needs that works; a broken one shall not hold up the pod."""

BRIEFLY_S: Final = 0.5
"""A binding that waits for longer lets others go ahead."""

_A_MOMENT_S: Final = 0.001


class PodBinding:
    """The binding of the claims of one pod to one node.

    Notes
    -----
    *Concurrency*: confined to the I/O loop.
    """

    def __init__(self, handle: Handle, cycle: CycleClaims, pod: Pod, node_name: str) -> None:
        self._devices = handle.devices
        self._writer = handle.claim_writer
        self._reports = handle.device_reports
        self._cycle = cycle
        self._pod = pod
        self._node_name = node_name

    async def run(self, timeout_s: float) -> Status:
        """Write the claims, and return once their devices are ready.

        Returns
        -------
        Success, or a rejection when another scheduler has allocated one of the devices too.

        Raises
        ------
        DeviceBindingError
            When a device cannot be prepared, or not in time.
        Exception
            Any error of a write.
        """
        allocated: list[int] = []
        try:
            for index in range(len(self._cycle.claims)):
                if await self._bind_claim(index):
                    allocated.append(index)  # noqa: PERF401 - it is read after an error
            await self._check_written(allocated)
        except CollisionError as error:
            await self._give_back(allocated)
            self._reports.collision(error.collision.device.driver)
            return unschedulable(str(error))
        if any(conditional_results(self._cycle.claims)):
            await self._wait_for_conditions(timeout_s)
        return SUCCESS

    # --- writing ------------------------------------------------------------------------------

    async def _bind_claim(self, index: int) -> bool:
        """Write one claim unless it is reserved for the pod; return whether it was allocated."""
        cycle, uid = self._cycle, self._pod.metadata.uid
        claim = await self._newest(cycle.claims[index])
        if is_reserved_for(claim, uid):
            return False
        allocation = cycle.reserved.get(index)
        special = cycle.is_special(index)
        if special and not self._needs_special():
            # Differs: kube-scheduler creates the claim and then fails, for a pod with other claims
            # on a node where a device plugin provides the extended resource.
            self._end_flight(index)
            return False
        try:
            if special and is_in_memory(claim):
                claim = await self._create_special()
            claim = await self._writer.reserve(
                claim, self._pod, allocation, lambda: self._check_in_flight(index)
            )
            cycle.claims[index] = claim
            if special:
                await self._until_shown(claim)
        finally:
            self._end_flight(index)
        if special:
            await self._show_special(claim)
        return allocation is not None

    async def _newest(self, claim: ResourceClaim) -> ResourceClaim:
        """Return a claim as it is after what an earlier attempt of the pod had left to write."""
        await self._writer.settled(claim.metadata.uid)
        if not is_reserved_for(claim, self._pod.metadata.uid):
            return claim
        newest = self._devices.claims.get(claim.metadata.namespace, claim.metadata.name)
        if newest is None or newest.metadata.uid != claim.metadata.uid:
            return claim
        return newest

    def _needs_special(self) -> bool:
        found = self._cycle.by_node.get(self._node_name)
        return (
            found is not None
            and found.special is not None
            and bool(found.special.spec.devices.requests)
        )

    async def _create_special(self) -> ResourceClaim:
        found = self._cycle.by_node[self._node_name]
        if found.special is None:
            raise LookupError(f"extended resource claim not found for node {self._node_name}")
        created = await self._writer.create(found.special)
        # From now on Unreserve has to delete it.
        self._cycle.claims[-1] = created
        return created

    async def _show_special(self, claim: ResourceClaim) -> None:
        found = self._cycle.by_node[self._node_name]
        shown = PodExtendedResourceClaimStatus(found.mappings, claim.metadata.name)
        await self._writer.show_special_claim(self._pod, shown)

    def _end_flight(self, index: int) -> None:
        if self._cycle.reserved.pop(index, None) is not None:
            self._devices.claims.end_flight(self._flight(index))

    def _flight(self, index: int) -> str:
        """Return the UID under which the allocation of a claim is in flight."""
        cycle = self._cycle
        return cycle.special_uid if cycle.is_special(index) else cycle.claims[index].metadata.uid

    # --- devices that were allocated twice ----------------------------------------------------

    def _check_in_flight(self, index: int) -> None:
        """Raise CollisionError if another claim is known to have a device that is to be written.

        What is not written need not be given back: kube-scheduler takes a device for free as soon
        as one of two claims that have it is deallocated.
        """
        claim = self._devices.claims.in_flight(self._flight(index))
        if claim is not None:
            self._check(claim)

    async def _check_written(self, allocated: list[int]) -> None:
        """Raise CollisionError if a device of this pod is in another claim as well.

        What was written before our own claims is known once the watch has shown them.
        """
        for index in allocated:
            await self._until_caught_up(self._cycle.claims[index])
        for index in allocated:
            self._check(self._cycle.claims[index])

    def _check(self, claim: ResourceClaim) -> None:
        found = find_collision(claim, self._devices.allocated(), self._devices.slices.view())
        if found is not None:
            raise CollisionError(found)

    async def _give_back(self, allocated: list[int]) -> None:
        """Deallocate the claims that this binding has allocated."""
        for index in allocated:
            claim = self._cycle.claims[index]
            if not self._cycle.is_special(index):
                await self._writer.deallocate(claim, self._pod.metadata.uid)
                self._cycle.claims[index] = replace(claim, status=ResourceClaimStatus())

    async def _until_caught_up(self, claim: ResourceClaim) -> None:
        namespace, name = claim.metadata.namespace, claim.metadata.name
        written = parse_resource_version(claim.metadata.resource_version)

        def has_caught_up() -> bool:
            seen = self._devices.claims.api(namespace, name)
            return (
                seen is None
                or written == INCOMPARABLE
                or parse_resource_version(seen.metadata.resource_version) >= written
            )

        await self._until(has_caught_up, [claim], CAUGHT_UP_WITHIN_S)

    async def _until_shown(self, claim: ResourceClaim) -> None:
        claims = self._devices.claims
        namespace, name = claim.metadata.namespace, claim.metadata.name

        def is_shown() -> bool:
            claims.stored(claim)
            return claims.get(namespace, name) is not None

        await self._until(is_shown, [claim], SHOWN_WITHIN_S)

    # --- waiting ------------------------------------------------------------------------------

    async def _wait_for_conditions(self, timeout_s: float) -> None:
        """Wait until all binding conditions are met, and count how that ended."""
        self._reports.waiting(self._pod, self._node_name)
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        result = "error"
        try:
            await self._until_ready(timeout_s)
            result = "success"
        except DeviceBindingTimeoutError:
            result = "timeout"
            raise
        except DeviceBindingFailedError:
            result = "failure"
            raise
        finally:
            claims = tuple(self._cycle.claims)
            self._reports.waited(self._pod, claims, result, loop.time() - began_s)

    async def _until_ready(self, timeout_s: float) -> None:
        def next_deadline_s() -> float:
            deadlines = (binding_deadline(each, timeout_s) for each in self._cycle.claims)
            now_s = self._writer.now_s()
            left = (each - now_s for each in deadlines if each is not None)
            return max(min(left, default=timeout_s), 0.0) + _A_MOMENT_S

        ready = await self._until(
            lambda: self._are_ready(timeout_s), self._cycle.claims, timeout_s, next_deadline_s
        )
        if not ready:
            raise DeviceBindingTimeoutError("context deadline exceeded")

    def _are_ready(self, timeout_s: float) -> bool:
        """Return whether the conditions of all claims are met, by what is known of them now."""
        for index, known in enumerate(self._cycle.claims):
            if is_in_memory(known):
                continue
            claim = self._devices.claims.get(known.metadata.namespace, known.metadata.name)
            if claim is None:
                raise LookupError(f'could not find ResourceClaim "{key_of(known)}"')
            self._cycle.claims[index] = claim
            if not is_ready(claim):
                if is_timed_out(claim, timeout_s, self._writer.now_s()):
                    raise DeviceBindingTimeoutError(f"claim={claim.metadata.name}")
                return False
        return True

    async def _until(
        self,
        condition: Callable[[], bool],
        claims: Sequence[ResourceClaim],
        timeout_s: float,
        next_s: Callable[[], float] | None = None,
    ) -> bool:
        """Return whether a condition holds, after waiting for changes of claims and for the clock.

        Parameters
        ----------
        next_s
            Returns when the condition is to be looked at again without a change, in seconds.
        """
        if condition():
            return True
        loop, changed = asyncio.get_running_loop(), asyncio.Event()
        began = loop.time()
        deadline = began + timeout_s

        def wake() -> None:
            loop.call_soon_threadsafe(changed.set)

        with ExitStack() as stack:
            for claim in claims:
                key = claim.metadata.namespace, claim.metadata.name
                self._devices.claims.listen(*key, wake)
                stack.callback(self._devices.claims.unlisten, *key, wake)
            while True:
                changed.clear()
                if condition():
                    return True
                left = deadline - loop.time()
                if left <= 0:
                    return False
                if loop.time() - began >= BRIEFLY_S:
                    self._writer.only_waits(self._pod.metadata.uid)
                else:
                    left = min(left, BRIEFLY_S)
                pause = left if next_s is None else min(left, next_s())
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await changed.wait()
