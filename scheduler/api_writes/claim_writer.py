"""Write claims of devices: finalizer, allocation, reservation, and the special claim of a pod.

Each write is a merge patch over the version that was read: what we do not know of a claim is never
lost, and a change that came between is found out. Then the claim is read again, a few times.

    reserve    finalizer -> status: allocation, reservation     before the pod is bound
    release    the reservation is removed, the allocation stays  the pod was not bound
    deallocate allocation, reservations and conditions removed   the devices are given back
    create, show, delete                                         special claims

Differs: kube-scheduler writes whole objects and gives the attempt up at the first error that is not
a conflict. Here a write that the server was too busy for is sent again, and an answer that leaves
open whether the write was made is settled by asking for the claim. The special claim gets its name
here and not from the server, so that such an answer cannot leave a second one behind.

*Source*: pkg/scheduler/framework/plugins/dynamicresources, dynamicresources.go (bindClaim,
Unreserve, PostFilter) and extendeddynamicresources.go (createExtendedResourceClaimInAPI,
deleteClaim) (1.36).
"""

from __future__ import annotations

import asyncio
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias
from uuid import UUID

import msgspec
import structlog

from scheduler.api_writes.claim_patcher import (
    ClaimConflictError,
    ClaimPatcher,
    ClaimWriteError,
    key_of,
    write_failed,
)
from scheduler.api_writes.claim_reservations import (
    CONFLICT_PAUSE_S,
    CONFLICT_TRIES,
    FINALIZER,
    ClaimReservations,
)
from scheduler.api_writes.settle import Failure
from scheduler.client.errors import Action
from scheduler.kinds import RESOURCE_CLAIMS
from scheduler.process.loop_inbox import LoopInbox

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from cache.device_objects import AllocationResult, ResourceClaim
    from cache.objects import Pod, PodExtendedResourceClaimStatus
    from scheduler.api_writes.claim_patcher import ClaimApi
    from scheduler.process.ports import Ports

    _Write: TypeAlias = Coroutine[Any, Any, None]


AT_ONE_TIME: Final = 16
"""Releases and deletions under way at one time: nobody waits for them."""

NAME_LENGTH: Final = 63
_SUFFIX_LENGTH: Final = 5
_SUFFIX_OF: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Names of special claims are made as the API server makes names.
Source: k8s.io/apiserver pkg/storage/names/generate.go (0.36)."""

log = structlog.get_logger(__name__)


class _Later(NamedTuple):
    """A write that nobody waits for."""

    claim: ResourceClaim
    doing: str
    call: Callable[[], _Write]


class ClaimWriter:
    """The service behind :class:`plugins.framework.handle.ClaimWriter`.

    Parameters
    ----------
    ports
        The outside; ``rng`` is for delays, names and UIDs.
    stored
        Receives each claim that a write returned.
    created
        Counts a special claim that was created (``success``) or could not be (``failure``).
    newest
        Returns the newest known version of the claim with a namespace and a name.
    only_waits
        Receives the UID of each pod whose binding waits for more than its own requests.

    Notes
    -----
    *Concurrency*: confined to the I/O loop, but for ``now_s``, ``new_uid`` and the methods whose
    names end in ``_soon``, which are for any thread.
    """

    def __init__(
        self,
        ports: Ports[ClaimApi],
        stored: Callable[[ResourceClaim], object],
        created: Callable[[str], object] = lambda status: None,
        newest: Callable[[str, str], ResourceClaim | None] = lambda namespace, name: None,
        only_waits: Callable[[str], object] = lambda uid: None,
    ) -> None:
        self._api = ports.api
        self._rng = ports.rng
        self._sleep = ports.executor.sleep
        self._wall = ports.clock.wall
        self._patcher = ClaimPatcher(ports, stored, only_waits)
        self._only_waits = only_waits
        self._known = newest
        self._reservations = ClaimReservations(
            ports, self._patcher, self._newest, self._release_now, only_waits
        )
        self._created = created
        self._loop = ports.executor.loop
        self._inbox: LoopInbox[_Later] = LoopInbox(self._loop, self._begin)
        self._slots = asyncio.Semaphore(AT_ONE_TIME)
        self._tasks: dict[asyncio.Task[None], str] = {}

    def now_s(self) -> float:
        """Return the time in seconds since the epoch, by the clock that stamps allocations."""
        return self._wall()

    def new_uid(self) -> str:
        """Return a random UID."""
        return str(UUID(int=self._rng.getrandbits(128), version=4))

    # --- before the pod is bound --------------------------------------------------------------

    async def reserve(
        self,
        claim: ResourceClaim,
        pod: Pod,
        allocation: AllocationResult | None,
        check: Callable[[], object] = lambda: None,
    ) -> ResourceClaim:
        """Reserve a claim for a pod, after allocating it if there is an allocation to write.

        Parameters
        ----------
        check
            Called right before an allocation is written; what it raises ends the writing.

        Returns
        -------
        The claim as it is then.

        Raises
        ------
        ClaimWriteError
            When the claim is gone, was allocated or deallocated by others, or cannot be written.
        """
        if allocation is not None:
            return await self._reservations.allocate(claim, pod, allocation, check)
        return await self._reservations.join(claim, pod)

    def _newest(self, claim: ResourceClaim) -> ResourceClaim:
        known = self._known(claim.metadata.namespace, claim.metadata.name)
        return claim if known is None or known.metadata.uid != claim.metadata.uid else known

    # --- after a failure ----------------------------------------------------------------------

    def release_soon(self, claim: ResourceClaim, pod_uid: str) -> None:
        """Remove the reservation of a pod; the allocation stays. A failure is logged."""
        self._put(claim, "release claim", lambda: self._release(claim, pod_uid))

    def _release_now(self, claim: ResourceClaim, pod_uid: str) -> None:
        self._begin(_Later(claim, "release claim", lambda: self._release(claim, pod_uid)))

    def deallocate_soon(self, claim: ResourceClaim) -> None:
        """Deallocate a claim that nobody else changed meanwhile. A failure is logged."""
        self._put(claim, "deallocate claim", lambda: self._deallocate_once(claim))

    def delete_soon(self, claim: ResourceClaim) -> None:
        """Delete a special claim. A failure is logged."""
        self._put(claim, "delete claim", lambda: self._delete(claim))

    async def settled(self, uid: str) -> None:
        """Wait until nothing is written any more of what was to be written of a claim soon."""
        while tasks := [task for task, of in self._tasks.items() if of == uid]:
            await asyncio.wait(tasks)

    def only_waits(self, pod_uid: str) -> None:
        """Give back the binding slot of a pod that waits for more than its own requests."""
        self._only_waits(pod_uid)

    async def deallocate(self, claim: ResourceClaim, pod_uid: str) -> None:
        """Deallocate a claim that only one pod may use.

        A claim that others use by now, or that has another allocation, is left as it is.

        Raises
        ------
        ClaimWriteError
            When it cannot be written.
        """
        written = claim.status.allocation
        for tries in count(1):
            try:
                await self._deallocate_once(claim)
            except ClaimConflictError as conflict:
                if tries >= CONFLICT_TRIES:
                    raise write_failed(conflict.doing, claim, conflict.error) from conflict.error
                found = conflict.found
                if found is None or found.metadata.uid != claim.metadata.uid:
                    return
                users = {each.uid for each in found.status.reserved_for}
                if users - {pod_uid} or found.status.allocation != written:
                    return
                claim = found
            else:
                return
            await self._sleep(CONFLICT_PAUSE_S)

    async def _deallocate_once(self, claim: ResourceClaim) -> None:
        status = {"allocation": None, "reservedFor": None, "devices": None}

        def is_written(found: ResourceClaim) -> bool:
            return found.metadata.uid == claim.metadata.uid and found.status.allocation is None

        await self._patcher.write("deallocate", claim, {"status": status}, is_written, "status")

    async def _release(self, claim: ResourceClaim, pod_uid: str) -> None:
        """Remove one reservation, whatever else was changed meanwhile."""
        metadata = claim.metadata
        patch = {
            "metadata": {"uid": metadata.uid},
            "status": {"reservedFor": [{"$patch": "delete", "uid": pod_uid}]},
        }

        async def attempt() -> ResourceClaim:
            return await self._api.patch_object(
                RESOURCE_CLAIMS,
                metadata.namespace,
                metadata.name,
                patch,
                subresource="status",
                strategic=True,
            )

        async def is_released(failure: Failure) -> ResourceClaim | None:
            found = await self._api.get_object(RESOURCE_CLAIMS, metadata.namespace, metadata.name)
            if found is None or found.metadata.uid != metadata.uid:
                return None
            is_user = any(each.uid == pod_uid for each in found.status.reserved_for)
            return None if is_user else found

        end = await self._patcher.settled(attempt, is_released)
        if isinstance(end, Failure):
            if end.action is not Action.GONE:
                raise write_failed("release", claim, end.error)
        else:
            self._patcher.stored(end)

    # --- special claims -----------------------------------------------------------------------

    async def create(self, claim: ResourceClaim) -> ResourceClaim:
        """Create a special claim under a new name, and return it.

        Raises
        ------
        ClaimWriteError
            When it cannot be created.
        """
        metadata = claim.metadata
        base = metadata.generate_name[: NAME_LENGTH - _SUFFIX_LENGTH]
        name = base + "".join(self._rng.choices(_SUFFIX_OF, k=_SUFFIX_LENGTH))
        owners = [msgspec.to_builtins(owner) for owner in metadata.owner_references]
        body = {
            "apiVersion": RESOURCE_CLAIMS.group_version,
            "kind": "ResourceClaim",
            "metadata": {
                "name": name,
                "namespace": metadata.namespace,
                "annotations": dict(metadata.annotations),
                # Differs: kube-scheduler adds it with another write.
                "finalizers": [FINALIZER],
                "ownerReferences": owners,
            },
            "spec": msgspec.to_builtins(claim.spec),
        }

        async def attempt() -> ResourceClaim:
            return await self._api.create_object(RESOURCE_CLAIMS, metadata.namespace, body)

        async def created(failure: Failure) -> ResourceClaim | None:
            found = await self._api.get_object(RESOURCE_CLAIMS, metadata.namespace, name)
            owned = found is not None and found.metadata.owner_references
            return found if owned == metadata.owner_references else None

        pods = [owner.uid for owner in metadata.owner_references]
        end = await self._patcher.settled(attempt, created, lambda: pods)
        self._created("failure" if isinstance(end, Failure) else "success")
        if isinstance(end, Failure):
            why = f"create claim for extended resources {metadata.namespace}/: {end.error.message}"
            raise ClaimWriteError(why) from end.error
        return end

    async def show_special_claim(self, pod: Pod, shown: PodExtendedResourceClaimStatus) -> None:
        """Write into the status of a pod which claim provides its extended resources.

        Raises
        ------
        ClaimWriteError
            When it cannot be written.
        """
        metadata = pod.metadata
        patch = {"extendedResourceClaimStatus": msgspec.to_builtins(shown)}

        async def attempt() -> bool:
            await self._api.patch_pod_status(metadata.namespace, metadata.name, metadata.uid, patch)
            return True

        end = await self._patcher.settled(attempt, pods=lambda: [metadata.uid])
        if isinstance(end, Failure):
            key = f"{metadata.namespace}/{metadata.name}"
            why = f"update pod {key} ExtendedResourceClaimStatus: {end.error.message}"
            raise ClaimWriteError(why) from end.error

    async def _delete(self, claim: ResourceClaim) -> None:
        """Remove the finalizer of a claim, and the claim."""
        metadata = claim.metadata
        found: ResourceClaim | None = claim
        for _ in range(CONFLICT_TRIES):
            if found is None or found.metadata.uid != metadata.uid:
                return
            try:
                await self._remove_finalizer(found)
                break
            except ClaimConflictError as conflict:
                found = conflict.found
            await self._sleep(CONFLICT_PAUSE_S)

        async def attempt() -> bool:
            await self._api.delete_object(
                RESOURCE_CLAIMS, metadata.namespace, metadata.name, metadata.uid
            )
            return True

        end = await self._patcher.settled(attempt)
        if isinstance(end, Failure) and end.action not in (Action.GONE, Action.CONFLICT):
            raise write_failed("delete", claim, end.error)

    async def _remove_finalizer(self, claim: ResourceClaim) -> None:
        kept = [each for each in claim.metadata.finalizers if each != FINALIZER]
        if len(kept) == len(claim.metadata.finalizers):
            return

        def is_written(found: ResourceClaim) -> bool:
            return FINALIZER not in found.metadata.finalizers

        patch = {"metadata": {"finalizers": kept}}
        await self._patcher.write("remove finalizer from", claim, patch, is_written)

    # --- what nobody waits for ----------------------------------------------------------------

    def _put(self, claim: ResourceClaim, doing: str, call: Callable[[], _Write]) -> None:
        self._inbox.put(_Later(claim, doing, call))

    def _begin(self, later: _Later) -> None:
        task = self._loop.create_task(self._run(later))
        self._tasks[task] = later.claim.metadata.uid
        task.add_done_callback(self._tasks.pop)

    async def _run(self, later: _Later) -> None:
        try:
            async with self._slots:
                await later.call()
        except Exception as error:  # noqa: BLE001 - of nobody's cycle: the next attempt sees it
            log.error(
                "claim could not be written",
                doing=later.doing,
                claim=key_of(later.claim),
                error=str(error),
            )
