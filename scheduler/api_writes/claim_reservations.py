"""Reserve claims for pods, and write the allocation together with the first reservation.

    claim without allocation  finalizer -> status: allocation and reservation
    allocated claim           status: the reservations of all pods that wait for this claim by then

Each write is made over the version that is known. When the claim has another version, it is read
again, a few times.

Differs: in kube-scheduler each pod that shares a claim writes its own reservation. Pods that are
bound at the same time all write over the same version, and only one of them succeeds at a time.

*Source*: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, bindClaim (1.36).
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from cache.value import MutableValue
from scheduler.api_writes.claim_patcher import (
    ClaimConflictError,
    ClaimWriteError,
    key_of,
    write_failed,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from cache.device_objects import AllocationResult, ResourceClaim
    from cache.objects import Pod
    from scheduler.api_writes.claim_patcher import ClaimApi, ClaimPatcher
    from scheduler.process.ports import Ports

FINALIZER: Final = "resource.kubernetes.io/delete-protection"

MAX_RESERVED: Final = 256
"""Reservations of one claim; the API server refuses more.
Source: k8s.io/api/resource/v1/types.go, ResourceClaimReservedForMaxSize (0.36)."""

CONFLICT_TRIES: Final = 5
CONFLICT_PAUSE_S: Final = 0.01
"""How often a claim is written that others change meanwhile, and the pause between two tries.
Source: k8s.io/client-go util/retry, DefaultRetry (0.36)."""


class _Joining(MutableValue, eq=False):
    """A pod that waits for its reservation of an allocated claim.

    Attributes
    ----------
    claim
        As the decision about the pod found it.
    """

    claim: ResourceClaim
    pod: Pod
    done: asyncio.Future[ResourceClaim] = msgspec.field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class ClaimReservations:
    """Write allocations and reservations: for each claim one request at a time.

    Parameters
    ----------
    ports
        The outside.
    newest
        Returns the newest known version of a claim.
    release
        Removes the reservation of a pod that no longer waits for it.
    only_waits
        Receives the UID of each pod whose binding waits for the next attempt at a write.

    Notes
    -----
    *Concurrency*: confined to the I/O loop.
    """

    def __init__(
        self,
        ports: Ports[ClaimApi],
        patcher: ClaimPatcher,
        newest: Callable[[ResourceClaim], ResourceClaim],
        release: Callable[[ResourceClaim, str], object],
        only_waits: Callable[[str], object],
    ) -> None:
        self._sleep = ports.executor.sleep
        self._wall = ports.clock.wall
        self._patcher = patcher
        self._newest = newest
        self._release = release
        self._only_waits = only_waits
        self._waiting: dict[str, list[_Joining]] = {}
        self._pausing: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def allocate(
        self,
        claim: ResourceClaim,
        pod: Pod,
        allocation: AllocationResult,
        check: Callable[[], object],
    ) -> ResourceClaim:
        """Allocate a claim and reserve it for a pod; return the claim as it is then.

        Parameters
        ----------
        check
            Called right before the allocation is written; what it raises ends the writing.

        Raises
        ------
        ClaimWriteError
            When the claim is gone, was allocated by others, or cannot be written.
        """

        async def write(known: ResourceClaim) -> ResourceClaim:
            _check_exists(known)
            if known.status.allocation is None and FINALIZER not in known.metadata.finalizers:
                known = await self._add_finalizer(known, pod)
            if known.status.allocation is not None:
                raise changed("allocated", known)
            check()
            written = {
                **msgspec.to_builtins(allocation),
                "allocationTimestamp": self._timestamp(),
            }
            doing = "add allocation and reservation to"
            return await self._reserve(doing, known, [pod], {"allocation": written}, None)

        return await self._over_newest(claim, write)

    async def join(self, claim: ResourceClaim, pod: Pod) -> ResourceClaim:
        """Reserve an allocated claim for a pod; return the claim as it is then.

        Raises
        ------
        ClaimWriteError
            When the claim is gone, was deallocated by others, or cannot be written.
        """
        joining = _Joining(claim, pod)
        uid = claim.metadata.uid
        waiting = self._waiting.get(uid)
        if waiting is None:
            self._waiting[uid] = [joining]
            task = asyncio.get_running_loop().create_task(self._write_all(uid))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            waiting.append(joining)
        if uid in self._pausing:
            self._only_waits(pod.metadata.uid)
        try:
            return await joining.done
        except asyncio.CancelledError:
            if not joining.done.cancelled() and joining.done.exception() is None:
                # It was reserved in the same moment.
                self._release(joining.done.result(), pod.metadata.uid)
            raise

    # --- pods that share a claim --------------------------------------------------------------

    async def _write_all(self, uid: str) -> None:
        """Write the reservations of a claim until no pod waits for one."""
        batch: list[_Joining] = []
        try:
            while batch := [each for each in self._waiting[uid] if not each.done.done()]:
                room = MAX_RESERVED - len(self._newest(batch[0].claim).status.reserved_for)
                batch, self._waiting[uid] = batch[: max(room, 1)], batch[max(room, 1) :]
                await self._write_together(batch)
                self._pausing.discard(uid)
        except Exception as error:  # noqa: BLE001 - raised where the pods wait
            for each in (*batch, *self._waiting[uid]):
                if not each.done.done():
                    each.done.set_exception(error)
        finally:
            del self._waiting[uid]
            self._pausing.discard(uid)

    async def _write_together(self, batch: list[_Joining]) -> None:
        """Write the reservations of several pods at once, or one by one if that is refused."""
        try:
            claim = await self._over_newest(
                self._newest(batch[0].claim), lambda known: self._add(known, batch)
            )
        except ClaimWriteError as error:
            if len(batch) > 1 and error.is_refused:
                # One of them may be the reason for all.
                for each in batch:
                    await self._write_together([each])
                return
            for each in batch:
                if not each.done.done():
                    each.done.set_exception(error)
            return
        again = {each.pod.metadata.uid for each in self._waiting[claim.metadata.uid]}
        for each in batch:
            if not each.done.done():
                each.done.set_result(claim)
            elif each.pod.metadata.uid not in again:
                # Its binding was cancelled meanwhile.
                self._release(claim, each.pod.metadata.uid)

    async def _add(self, known: ResourceClaim, batch: Sequence[_Joining]) -> ResourceClaim:
        _check_exists(known)
        allocation = known.status.allocation
        for each in batch:
            if allocation is None or not _is_same(allocation, each.claim.status.allocation):
                # Differs: kube-scheduler binds the pod where it was decided, although the claim
                # was allocated anew somewhere else.
                raise changed("deallocated", known)
        status: dict[str, Any] = {}
        if allocation is not None and allocation.allocation_timestamp is None:
            status["allocation"] = {"allocationTimestamp": self._timestamp()}
        pods = [each.pod for each in batch]
        uid = known.metadata.uid

        def waiting() -> list[str]:
            self._pausing.add(uid)
            return [each.pod.metadata.uid for each in (*batch, *self._waiting[uid])]

        return await self._reserve("add reservation to", known, pods, status, waiting)

    # --- writing ------------------------------------------------------------------------------

    async def _over_newest(
        self, claim: ResourceClaim, write: Callable[[ResourceClaim], Awaitable[ResourceClaim]]
    ) -> ResourceClaim:
        """Write a claim; after a conflict read it and write again."""
        for tries in count(1):
            try:
                return await write(claim)
            except ClaimConflictError as conflict:
                if tries >= CONFLICT_TRIES:
                    raise write_failed(conflict.doing, claim, conflict.error) from conflict.error
                claim = _still_there(claim, conflict.found)
            await self._sleep(CONFLICT_PAUSE_S)
        raise AssertionError("count() has no end")

    async def _reserve(
        self,
        doing: str,
        claim: ResourceClaim,
        pods: Sequence[Pod],
        status: dict[str, Any],
        waiting: Callable[[], Iterable[str]] | None,
    ) -> ResourceClaim:
        """Write reservations; ``waiting`` returns who waits for it, by default the pods."""
        uid, wanted = claim.metadata.uid, {pod.metadata.uid: pod.metadata.name for pod in pods}
        reserved = {consumer.uid for consumer in claim.status.reserved_for}
        if wanted.keys() <= reserved:
            return claim
        status["reservedFor"] = [
            *(msgspec.to_builtins(each) for each in claim.status.reserved_for),
            *(
                {"resource": "pods", "name": name, "uid": pod_uid}
                for pod_uid, name in wanted.items()
                if pod_uid not in reserved
            ),
        ]

        def is_written(found: ResourceClaim) -> bool:
            return (
                found.metadata.uid == uid
                and found.status.allocation is not None
                and wanted.keys() <= {consumer.uid for consumer in found.status.reserved_for}
            )

        return await self._patcher.write(
            doing, claim, {"status": status}, is_written, "status", waiting or (lambda: wanted)
        )

    async def _add_finalizer(self, claim: ResourceClaim, pod: Pod) -> ResourceClaim:
        metadata = claim.metadata
        patch = {"metadata": {"finalizers": [*metadata.finalizers, FINALIZER]}}

        def is_written(found: ResourceClaim) -> bool:
            return found.metadata.uid == metadata.uid and FINALIZER in found.metadata.finalizers

        return await self._patcher.write(
            "add finalizer to", claim, patch, is_written, pods=lambda: [pod.metadata.uid]
        )

    def _timestamp(self) -> str:
        return datetime.fromtimestamp(int(self._wall()), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def changed(how: str, claim: ResourceClaim) -> ClaimWriteError:
    """Return the error of a claim that was deleted, or that others have changed."""
    where = "" if how == "deleted" else " elsewhere"
    why = f"claim {key_of(claim)} got {how}{where} in the meantime"
    return ClaimWriteError(why, is_refused=True)


def _check_exists(claim: ResourceClaim) -> None:
    if claim.metadata.deletion_timestamp is not None:
        raise changed("deleted", claim)


def _still_there(claim: ResourceClaim, found: ResourceClaim | None) -> ResourceClaim:
    """Return the newest version of a claim after a conflict.

    Differs: kube-scheduler goes on with another claim that was created under the name.
    """
    name = claim.metadata.name
    if found is None:
        why = f'resourceclaims.resource.k8s.io "{name}" not found'
        raise ClaimWriteError(f"get updated claim {key_of(claim)} after conflict: {why}")
    if found.metadata.uid != claim.metadata.uid:
        raise changed("deleted", claim)
    return found


def _is_same(allocation: AllocationResult, decided: AllocationResult | None) -> bool:
    """Return whether two allocations are equal, whenever they were made."""
    return decided is not None and replace(allocation, allocation_timestamp=None) == replace(
        decided, allocation_timestamp=None
    )
