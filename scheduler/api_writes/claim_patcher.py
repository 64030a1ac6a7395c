"""Patch one claim over the version that was read, and settle answers that leave it open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import msgspec

from scheduler.api_writes.patch_api import PatchApi
from scheduler.api_writes.settle import AGAIN, NO_MAX_PAUSE, Failure, settle, why_given_up
from scheduler.api_writes.volume_writer import ObjectApi
from scheduler.client.errors import Action
from scheduler.kinds import RESOURCE_CLAIMS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from cache.device_objects import ResourceClaim
    from scheduler.client.errors import ApiError
    from scheduler.kinds import ResourceKind
    from scheduler.process.ports import Ports

T = TypeVar("T", bound=msgspec.Struct)
R = TypeVar("R")

MAX_RETRIES: Final = 6
"""Attempts at a write that the server refused to take up; about ten seconds in all."""


class ClaimWriteError(Exception):
    """A claim cannot be written; the message is kube-scheduler's.

    Attributes
    ----------
    is_refused
        Whether the reason is what was to be written, and not that the API server did not answer.
    """

    def __init__(self, message: str, *, is_refused: bool = False) -> None:
        super().__init__(message)
        self.is_refused = is_refused


class ClaimConflictError(Exception):
    """A claim has another version; ``found`` is the newest one, None when it is gone."""

    def __init__(self, doing: str, error: ApiError, found: ResourceClaim | None) -> None:
        super().__init__(doing)
        self.doing = doing
        self.error = error
        self.found = found


class ClaimApi(PatchApi, ObjectApi, Protocol):
    """The calls that writing needs; each raises ApiError unless it was done."""

    async def create_object(
        self, kind: ResourceKind[T], namespace: str, body: Mapping[str, Any]
    ) -> T:
        """POST an object."""
        ...

    async def delete_object(
        self, kind: ResourceKind[T], namespace: str, name: str, uid: str
    ) -> None:
        """DELETE an object if it has the UID."""
        ...

    async def patch_pod_status(
        self, namespace: str, name: str, uid: str, patch: Mapping[str, Any]
    ) -> None:
        """PATCH the status of a pod if it has the UID."""
        ...


class ClaimPatcher:
    """Writes claims one by one.

    Parameters
    ----------
    ports
        The outside; ``rng`` is for the delays between attempts.
    stored
        Receives each claim that a write returned.
    only_waits
        Receives the UID of each pod whose binding waits for the next attempt at a write.

    Notes
    -----
    *Concurrency*: confined to the I/O loop; any number of writes at a time.
    """

    def __init__(
        self,
        ports: Ports[ClaimApi],
        stored: Callable[[ResourceClaim], object],
        only_waits: Callable[[str], object],
    ) -> None:
        self._api = ports.api
        self._rng = ports.rng
        self._sleep = ports.executor.sleep
        self.stored = stored
        self._only_waits = only_waits

    async def write(
        self,
        doing: str,
        claim: ResourceClaim,
        patch: Mapping[str, Any],
        is_written: Callable[[ResourceClaim], bool],
        subresource: str = "",
        pods: Callable[[], Iterable[str]] = tuple,
    ) -> ResourceClaim:
        """Patch a claim over the version that it was read at, and return it as it is then.

        Parameters
        ----------
        pods
            Returns the UIDs of the pods whose bindings wait for it.

        Raises
        ------
        ClaimConflictError
            When it has another version by now, or is gone.
        ClaimWriteError
            When it cannot be written.
        """
        metadata = claim.metadata
        version = {"uid": metadata.uid, "resourceVersion": metadata.resource_version}
        body = {**patch, "metadata": {**version, **patch.get("metadata", {})}}
        latest: ResourceClaim | None = None

        async def attempt() -> ResourceClaim:
            return await self._api.patch_object(
                RESOURCE_CLAIMS,
                metadata.namespace,
                metadata.name,
                body,
                subresource=subresource,
            )

        async def took_effect(failure: Failure) -> ResourceClaim | None:
            # Of a write whose answer was lost the second attempt says "conflict".
            nonlocal latest
            latest = await self._api.get_object(RESOURCE_CLAIMS, metadata.namespace, metadata.name)
            return latest if latest is not None and is_written(latest) else None

        end = await self.settled(attempt, took_effect, pods)
        if isinstance(end, Failure):
            if end.action is Action.CONFLICT:
                raise ClaimConflictError(doing, end.error, latest)
            refused = end.action not in AGAIN
            raise write_failed(doing, claim, end.error, is_refused=refused) from end.error
        self.stored(end)
        return end

    async def settled(
        self,
        attempt: Callable[[], Awaitable[R]],
        took_effect: Callable[[Failure], Awaitable[R | None]] | None = None,
        pods: Callable[[], Iterable[str]] = tuple,
    ) -> R | Failure:
        """Send a write until it is settled; return its result, or the last failure."""

        async def pause(seconds: float) -> None:
            for uid in pods():
                self._only_waits(uid)
            await self._sleep(seconds)

        return await settle(
            attempt,
            lambda failure: why_given_up(failure, MAX_RETRIES + 1, max_pause_s=NO_MAX_PAUSE),
            pause,
            self._rng,
            took_effect,
        )


def key_of(claim: ResourceClaim) -> str:
    """Return ``namespace/name``, as messages name a claim."""
    return f"{claim.metadata.namespace}/{claim.metadata.name}"


def write_failed(
    doing: str, claim: ResourceClaim, error: ApiError, *, is_refused: bool = False
) -> ClaimWriteError:
    """Return the error of a write."""
    return ClaimWriteError(f"{doing} claim {key_of(claim)}: {error.message}", is_refused=is_refused)
