"""Write volumes and claims: the claim of a volume, and the node to provision a volume for.

Each write is a merge patch of the one field and the annotations, over the version that was read:
what we do not know of an object is never lost, and a change that came between is found out.

Differs: kube-scheduler writes the whole object and gives the attempt up at the first error. Here a
write that the server was too busy for is sent again, and an answer that leaves open whether the
write was made is settled by asking for the object.

*Source*: pkg/scheduler/framework/plugins/volumebinding/binder.go, bindAPIUpdate (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from scheduler.api_writes.settle import NO_MAX_PAUSE, Failure, settle, why_given_up
from scheduler.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cache.storage_objects import PersistentVolume, PersistentVolumeClaim
    from scheduler.kinds import ResourceKind
    from scheduler.process.ports import Ports

T = TypeVar("T", bound=msgspec.Struct)

MAX_RETRIES = 6
"""Attempts at a write that the server refused to take up; about ten seconds in all. After that
the pod goes back to the queue."""


class ObjectApi(Protocol):
    """The two calls that writing needs."""

    async def get_object(self, kind: ResourceKind[T], namespace: str, name: str) -> T | None:
        """GET an object; None when there is none."""
        ...

    async def patch_object(
        self, kind: ResourceKind[T], namespace: str, name: str, patch: Mapping[str, Any]
    ) -> T:
        """PATCH an object by a merge patch; raise ApiError unless that was done."""
        ...


class StorageWriter:
    """The service behind :class:`plugins.framework.handle.StorageWriter`.

    Parameters
    ----------
    ports
        The outside; ``rng`` is for the delays between attempts.

    Notes
    -----
    *Concurrency*: confined to the I/O loop; any number of writes at a time.
    """

    def __init__(self, ports: Ports[ObjectApi]) -> None:
        self._api = ports.api
        self._rng = ports.rng
        self._sleep = ports.executor.sleep

    async def claim_volume(self, volume: PersistentVolume) -> PersistentVolume:
        """Write the volume's ``claimRef`` and annotations over the version it was read at.

        Raises
        ------
        ApiError
            The volume is gone, was changed by somebody else, or cannot be written.
        """
        reference = volume.spec.claim_ref
        patch = {
            "metadata": _metadata(volume),
            "spec": {"claimRef": None if reference is None else msgspec.to_builtins(reference)},
        }

        def is_written(found: PersistentVolume) -> bool:
            theirs = found.spec.claim_ref
            return (
                reference is not None
                and theirs is not None
                and (theirs.namespace, theirs.name, theirs.uid)
                == (reference.namespace, reference.name, reference.uid)
            )

        name = volume.metadata.name
        return await self._write(PERSISTENT_VOLUMES, "", name, patch, is_written)

    async def annotate_claim(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        """Write the claim's annotations over the version it was read at.

        Raises
        ------
        ApiError
            The claim is gone, was changed by somebody else, or cannot be written.
        """
        metadata = claim.metadata
        wanted = metadata.annotations.items()

        def is_written(found: PersistentVolumeClaim) -> bool:
            return found.metadata.uid == metadata.uid and (
                wanted <= found.metadata.annotations.items()
            )

        patch = {"metadata": _metadata(claim)}
        return await self._write(
            PERSISTENT_VOLUME_CLAIMS, metadata.namespace, metadata.name, patch, is_written
        )

    async def _write(
        self,
        kind: ResourceKind[T],
        namespace: str,
        name: str,
        patch: Mapping[str, Any],
        is_written: Callable[[T], bool],
    ) -> T:
        async def found_written(failure: Failure) -> T | None:
            # Of a write whose answer was lost the second attempt says "conflict".
            found = await self._api.get_object(kind, namespace, name)
            if found is None:
                raise failure.error
            return found if is_written(found) else None

        end = await settle(
            lambda: self._api.patch_object(kind, namespace, name, patch),
            lambda failure: why_given_up(failure, MAX_RETRIES + 1, max_pause_s=NO_MAX_PAUSE),
            self._sleep,
            self._rng,
            found_written,
        )
        if isinstance(end, Failure):
            raise end.error
        return end


def _metadata(written: PersistentVolume | PersistentVolumeClaim) -> dict[str, Any]:
    metadata = written.metadata
    return {
        "uid": metadata.uid,
        "resourceVersion": metadata.resource_version,
        "annotations": dict(metadata.annotations),
    }
