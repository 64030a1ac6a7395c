"""Carries changes of volumes, claims, classes and drivers into the storage and the queue.

Source: pkg/scheduler/eventhandlers.go, addAllEventHandlers (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import structlog

from cache.quantity import QuantityError, exact_value
from plugins.framework.cluster_events import Action, ClusterEvent, Resource
from scheduler.client.codec import (
    CSI_DRIVERS,
    CSI_NODES,
    CSI_STORAGE_CAPACITIES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cache.objects import Quantity
    from cache.storage import Storage
    from cache.storage_objects import (
        CSIStorageCapacity,
        PersistentVolume,
        PersistentVolumeClaim,
    )
    from scheduler.client.codec import ResourceKind
    from scheduler.informers import Delta, Informer, InformerFactory
    from scheduler.metrics import Metrics
    from scheduler.queueing import SchedulingQueue

log = structlog.get_logger(__name__)

STORAGE_KINDS: Final[tuple[ResourceKind[Any], ...]] = (
    PERSISTENT_VOLUMES,
    PERSISTENT_VOLUME_CLAIMS,
    STORAGE_CLASSES,
    CSI_NODES,
    CSI_DRIVERS,
    CSI_STORAGE_CAPACITIES,
    VOLUME_ATTACHMENTS,
)
"""What is watched for the sake of volumes."""


class StorageEvents:
    """Watches everything that has to do with volumes.

    Notes
    -----
    *Concurrency*: handlers are called from the I/O loop, one batch after another.
    """

    def __init__(self, storage: Storage, queue: SchedulingQueue, metrics: Metrics) -> None:
        self._storage = storage
        self._queue = queue
        self._metrics = metrics

    def watch(self, informers: InformerFactory) -> tuple[Informer[Any], ...]:
        """Make the informers of all kinds, and have them tell us of each change."""
        storage = self._storage

        def informer(
            kind: ResourceKind[Any],
            resource: Resource,
            take: Callable[[Any, Any], None],
            amounts: Callable[[Any], Iterable[Quantity | None]] = _no_amounts,
        ) -> Informer[Any]:
            made = informers.informer(kind)
            made.add_handler(_Handler(self, kind.name, resource, take, amounts).on_deltas)
            return made

        return (
            informer(
                PERSISTENT_VOLUMES,
                Resource.PERSISTENT_VOLUME,
                storage.volume_changed,
                _capacity_of_volume,
            ),
            informer(
                PERSISTENT_VOLUME_CLAIMS,
                Resource.PERSISTENT_VOLUME_CLAIM,
                storage.claim_changed,
                _request_of_claim,
            ),
            informer(STORAGE_CLASSES, Resource.STORAGE_CLASS, storage.storage_class_changed),
            informer(CSI_NODES, Resource.CSI_NODE, storage.csi_node_changed),
            informer(CSI_DRIVERS, Resource.CSI_DRIVER, storage.csi_driver_changed),
            informer(
                CSI_STORAGE_CAPACITIES,
                Resource.CSI_STORAGE_CAPACITY,
                storage.capacity_changed,
                _amounts_of_capacity,
            ),
            informer(VOLUME_ATTACHMENTS, Resource.VOLUME_ATTACHMENT, storage.attachment_changed),
        )

    def moved(self, event: ClusterEvent, old: object, new: object) -> None:
        """Wake the pods that an event concerns."""
        self._queue.move_all(event, old, new)

    def unreadable(self, kind: str, changed: Any, error: QuantityError) -> None:
        """Tell of an object that is left as it was known."""
        self._metrics.malformed(kind)
        metadata = changed.metadata
        log.warning(
            "object cannot be read and is left as it was known",
            resource=kind,
            namespace=metadata.namespace,
            name=metadata.name,
            error=str(error),
        )


class _Handler:
    """The changes of one kind."""

    def __init__(
        self,
        events: StorageEvents,
        kind: str,
        resource: Resource,
        take: Callable[[Any, Any], None],
        amounts: Callable[[Any], Iterable[Quantity | None]],
    ) -> None:
        self._events = events
        self._kind = kind
        self._take = take
        self._amounts = amounts
        self._added, self._updated, self._deleted = (
            ClusterEvent(resource, action, f"{resource.value}{title}")
            for action, title in (
                (Action.ADD, "Add"),
                (Action.UPDATE, "Update"),
                (Action.DELETE, "Delete"),
            )
        )

    def on_deltas(self, deltas: Sequence[Delta[Any]]) -> None:
        """Take in changes; one that cannot be read costs only itself."""
        for delta in deltas:
            old, new = delta.old, delta.new
            if new is not None:
                try:
                    for amount in self._amounts(new):
                        if amount is not None:
                            exact_value(amount)
                except QuantityError as error:
                    self._events.unreadable(self._kind, new, error)
                    continue
            self._take(old, new)
            if old is None:
                self._events.moved(self._added, None, new)
            elif new is None:
                self._events.moved(self._deleted, old, None)
            else:
                self._events.moved(self._updated, old, new)


def _no_amounts(_: object) -> Iterable[Quantity | None]:
    return ()


def _capacity_of_volume(volume: PersistentVolume) -> Iterable[Quantity | None]:
    return (volume.spec.capacity.get("storage"),)


def _request_of_claim(claim: PersistentVolumeClaim) -> Iterable[Quantity | None]:
    return (claim.spec.resources.requests.get("storage"),)


def _amounts_of_capacity(capacity: CSIStorageCapacity) -> Iterable[Quantity | None]:
    return capacity.capacity, capacity.maximum_volume_size
