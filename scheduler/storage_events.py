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

_ASSUMED: Final = frozenset({PERSISTENT_VOLUMES.name, PERSISTENT_VOLUME_CLAIMS.name})
"""The kinds of which versions are compared before a change is taken over."""


class StorageEvents:
    """Watches everything that has to do with volumes.

    Notes
    -----
    *Concurrency*: handlers are called from the I/O loop, one batch after another.
    """

    def __init__(self, storage: Storage, queue: SchedulingQueue, metrics: Metrics) -> None:
        self._queue = queue
        self._metrics = metrics
        self._kinds = {
            kind.name: _Kind(kind.name, resource, take, amounts)
            for kind, resource, take, amounts in (
                (
                    PERSISTENT_VOLUMES,
                    Resource.PERSISTENT_VOLUME,
                    storage.volume_changed,
                    _capacity_of_volume,
                ),
                (
                    PERSISTENT_VOLUME_CLAIMS,
                    Resource.PERSISTENT_VOLUME_CLAIM,
                    storage.claim_changed,
                    _request_of_claim,
                ),
                (
                    STORAGE_CLASSES,
                    Resource.STORAGE_CLASS,
                    storage.storage_class_changed,
                    _no_amounts,
                ),
                (CSI_NODES, Resource.CSI_NODE, storage.csi_node_changed, _no_amounts),
                (CSI_DRIVERS, Resource.CSI_DRIVER, storage.csi_driver_changed, _no_amounts),
                (
                    CSI_STORAGE_CAPACITIES,
                    Resource.CSI_STORAGE_CAPACITY,
                    storage.capacity_changed,
                    _amounts_of_capacity,
                ),
                (
                    VOLUME_ATTACHMENTS,
                    Resource.VOLUME_ATTACHMENT,
                    storage.attachment_changed,
                    _no_amounts,
                ),
            )
        }

    def watch(self, informers: InformerFactory) -> tuple[Informer[Any], ...]:
        """Make the informers of all kinds, and have them tell us of each change."""
        made = tuple(informers.informer(kind) for kind in STORAGE_KINDS)
        for informer, kind in zip(made, STORAGE_KINDS, strict=True):
            informer.add_handler(self.handler(kind))
        return made

    def handler(self, kind: ResourceKind[Any]) -> Callable[[Sequence[Delta[Any]]], None]:
        """Return what takes in the changes of one kind; one that cannot be read costs only itself.

        Raises
        ------
        KeyError
            When the kind has nothing to do with volumes.
        """
        of_kind = self._kinds[kind.name]

        def on_deltas(deltas: Sequence[Delta[Any]]) -> None:
            for delta in deltas:
                old, new = delta.old, delta.new
                if new is not None:
                    try:
                        of_kind.check(new)
                    except QuantityError as error:
                        self._unreadable(of_kind.name, new, error)
                        continue
                of_kind.take(delta)
                if old is None:
                    self._queue.move_all(of_kind.added, None, new)
                elif new is None:
                    self._queue.move_all(of_kind.deleted, old, None)
                else:
                    self._queue.move_all(of_kind.updated, old, new)

        return on_deltas

    def _unreadable(self, kind: str, changed: Any, error: QuantityError) -> None:
        self._metrics.malformed(kind)
        log.warning(
            "object cannot be read and is left as it was known",
            resource=kind,
            namespace=changed.metadata.namespace,
            name=changed.metadata.name,
            error=str(error),
        )


class _Kind:
    """What becomes of the changes of one kind."""

    def __init__(
        self,
        name: str,
        resource: Resource,
        take: Callable[..., None],
        amounts: Callable[[Any], Iterable[Quantity | None]],
    ) -> None:
        self.name = name
        self._take = take
        self._amounts = amounts
        self.added = ClusterEvent(resource, Action.ADD, f"{resource.value}Add")
        self.updated = ClusterEvent(resource, Action.UPDATE, f"{resource.value}Update")
        self.deleted = ClusterEvent(resource, Action.DELETE, f"{resource.value}Delete")

    def take(self, delta: Delta[Any]) -> None:
        """Take over a change; only what can be assumed asks whether etcd was restored."""
        if delta.restored and self.name in _ASSUMED:
            self._take(delta.old, delta.new, restored=True)
        else:
            self._take(delta.old, delta.new)

    def check(self, changed: Any) -> None:
        """Raise QuantityError when an amount that scheduling compares is none."""
        for amount in self._amounts(changed):
            if amount is not None:
                exact_value(amount)


def _no_amounts(_: object) -> Iterable[Quantity | None]:
    return ()


def _capacity_of_volume(volume: PersistentVolume) -> Iterable[Quantity | None]:
    return (volume.spec.capacity.get("storage"),)


def _request_of_claim(claim: PersistentVolumeClaim) -> Iterable[Quantity | None]:
    return (claim.spec.resources.requests.get("storage"),)


def _amounts_of_capacity(capacity: CSIStorageCapacity) -> Iterable[Quantity | None]:
    return capacity.capacity, capacity.maximum_volume_size
