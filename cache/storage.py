"""Volumes, claims, classes and drivers, as the watches tell of them and as we assume them."""

from __future__ import annotations

import threading
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from cache.assume_cache import AssumeCache
from cache.change_journal import ChangeJournal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cache.locks import MakeLock
    from cache.storage_objects import (
        CSIDriver,
        CSINode,
        CSIStorageCapacity,
        PersistentVolume,
        PersistentVolumeClaim,
        StorageClass,
        VolumeAttachment,
    )

ClaimKey: TypeAlias = "tuple[str, str]"
"""Namespace and name of a claim."""

BETA_STORAGE_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
"""The annotation that named the class before the field did; it still goes first."""

NO_CLAIM: Final[ClaimKey] = ("", "")
"""Stands for the claim of a volume that has none."""


def claim_key(claim: PersistentVolumeClaim) -> ClaimKey:
    """Return the key of a claim."""
    return claim.metadata.namespace, claim.metadata.name


def claim_class(claim: PersistentVolumeClaim) -> str:
    """Return the name of the storage class that a claim asks for; empty for none."""
    named = claim.metadata.annotations.get(BETA_STORAGE_CLASS)
    if named is not None:
        return named
    return claim.spec.storage_class_name or ""


def volume_class(volume: PersistentVolume) -> str:
    """Return the name of a volume's storage class; empty for none."""
    named = volume.metadata.annotations.get(BETA_STORAGE_CLASS)
    return volume.spec.storage_class_name if named is None else named


def _volume_name(volume: PersistentVolume) -> str:
    return volume.metadata.name


def _class_and_claim(volume: PersistentVolume) -> tuple[str, ClaimKey]:
    reference = volume.spec.claim_ref
    key = NO_CLAIM if reference is None else (reference.namespace, reference.name)
    return volume_class(volume), key


class Storage:
    """Everything that decides where a pod with volumes can go.

    Attributes
    ----------
    claims, volumes
        With what we assume of them. Volumes are found by class and by the claim that they are
        bound to or kept for: see :meth:`volumes_of_class`.
    storage_classes_version, csi_nodes_version, csi_drivers_version, capacities_version,
    attachments_version
        Each grows with every change of its kind: whatever was worked out from an older one may
        be wrong. Those of claims and volumes are in their caches.

    Notes
    -----
    *Concurrency*: thread-safe; written from the I/O loop (what is assumed: from the scheduling
    thread as well), read from any thread.
    """

    def __init__(self, make_lock: MakeLock = threading.Lock) -> None:
        self.claims: AssumeCache[ClaimKey, PersistentVolumeClaim] = AssumeCache(
            "persistentvolumeclaims", claim_key, make_lock=make_lock
        )
        self.volumes: AssumeCache[str, PersistentVolume] = AssumeCache(
            "persistentvolumes", _volume_name, _class_and_claim, make_lock
        )
        self.csi_drivers_version = 0
        self.capacities_version = 0
        self._lock = make_lock()
        self._class_changes: ChangeJournal[str] = ChangeJournal()
        self._csi_node_changes: ChangeJournal[str] = ChangeJournal()
        self._attachment_changes: ChangeJournal[str] = ChangeJournal()
        self._classes: dict[str, StorageClass] = {}
        self._csi_nodes: dict[str, CSINode] = {}
        self._csi_drivers: dict[str, CSIDriver] = {}
        self._capacities: dict[tuple[str, str], CSIStorageCapacity] = {}
        self._capacities_by_class: dict[str, tuple[CSIStorageCapacity, ...]] | None = None
        self._attachments: dict[str, dict[str, VolumeAttachment]] = {}
        self._csi_nodes_snapshot: Mapping[str, CSINode] | None = None

    @property
    def version(self) -> int:
        """Grows with every change of anything here, assumptions included."""
        return (
            self.claims.version
            + self.volumes.version
            + self.storage_classes_version
            + self.csi_nodes_version
            + self.csi_drivers_version
            + self.capacities_version
            + self.attachments_version
        )

    @property
    def storage_classes_version(self) -> int:
        """Grows with every change of a storage class."""
        return self._class_changes.version

    @property
    def csi_nodes_version(self) -> int:
        """Grows with every change of a CSINode."""
        return self._csi_node_changes.version

    @property
    def attachments_version(self) -> int:
        """Grows with every change of an attachment."""
        return self._attachment_changes.version

    # --- reading ------------------------------------------------------------------------------

    def claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        """Return the API's version of a claim, never what is assumed of it."""
        return self.claims.get_api((namespace, name))

    def volume(self, name: str) -> PersistentVolume | None:
        """Return the API's version of a volume, never what is assumed of it."""
        return self.volumes.get_api(name)

    def volumes_of_class(
        self, class_name: str, claim: ClaimKey = NO_CLAIM
    ) -> tuple[PersistentVolume, ...]:
        """Return the volumes of a class that are bound to or kept for a claim; by default for none.

        What is assumed of them counts.
        """
        return self.volumes.by_index((class_name, claim))

    def storage_class(self, name: str) -> StorageClass | None:
        """Return a storage class, or None."""
        return self._classes.get(name)

    def storage_class_changes(self, since: int) -> tuple[int, frozenset[str] | None]:
        """Return :attr:`storage_classes_version` now, and which classes changed after ``since``.

        The names are None when that is too long ago.
        """
        with self._lock:
            return self._class_changes.version, self._class_changes.since(since)

    def csi_node(self, name: str) -> CSINode | None:
        """Return what the drivers say of the node with this name, or None."""
        return self._csi_nodes.get(name)

    def csi_nodes(self) -> Mapping[str, CSINode]:
        """Return all CSINodes by name as they are now; the mapping does not change later."""
        with self._lock:
            if self._csi_nodes_snapshot is None:
                self._csi_nodes_snapshot = MappingProxyType(dict(self._csi_nodes))
            return self._csi_nodes_snapshot

    def csi_node_changes(self, since: int) -> tuple[int, frozenset[str] | None]:
        """Return :attr:`csi_nodes_version` now, and which CSINodes have changed after ``since``.

        The names are None when that is too long ago.
        """
        with self._lock:
            return self._csi_node_changes.version, self._csi_node_changes.since(since)

    def csi_driver(self, name: str) -> CSIDriver | None:
        """Return a CSI driver, or None."""
        return self._csi_drivers.get(name)

    def capacities(self) -> tuple[CSIStorageCapacity, ...]:
        """Return all capacities."""
        with self._lock:
            return tuple(self._capacities.values())

    def capacities_of_class(self, class_name: str) -> tuple[CSIStorageCapacity, ...]:
        """Return the capacities of a storage class.

        *Cost*: proportional to all capacities after one of them changed, else constant.
        """
        with self._lock:
            if self._capacities_by_class is None:
                grouped: dict[str, list[CSIStorageCapacity]] = {}
                for capacity in self._capacities.values():
                    grouped.setdefault(capacity.storage_class_name, []).append(capacity)
                self._capacities_by_class = {name: tuple(of) for name, of in grouped.items()}
            return self._capacities_by_class.get(class_name, ())

    def attachments(self, node_name: str) -> tuple[VolumeAttachment, ...]:
        """Return the attachments of a node."""
        with self._lock:
            return tuple(self._attachments.get(node_name, {}).values())

    def attachment_changes(self, since: int) -> tuple[int, frozenset[str] | None]:
        """Return :attr:`attachments_version` now, and whose attachments changed after ``since``.

        The names of nodes are None when that is too long ago.
        """
        with self._lock:
            return self._attachment_changes.version, self._attachment_changes.since(since)

    # --- changes ------------------------------------------------------------------------------

    def claim_changed(
        self,
        old: PersistentVolumeClaim | None,
        new: PersistentVolumeClaim | None,
        *,
        restored: bool = False,
    ) -> None:
        """Take over a claim: ``new`` is None for one that is gone.

        With ``restored``, whatever its version: etcd was restored.
        """
        self.claims.changed(old, new, restored=restored)

    def volume_changed(
        self,
        old: PersistentVolume | None,
        new: PersistentVolume | None,
        *,
        restored: bool = False,
    ) -> None:
        """Take over a volume: ``new`` is None for one that is gone.

        With ``restored``, whatever its version: etcd was restored.
        """
        self.volumes.changed(old, new, restored=restored)

    def storage_class_changed(self, old: StorageClass | None, new: StorageClass | None) -> None:
        """Take over a storage class: ``new`` is None for one that is gone."""
        with self._lock:
            if new is not None:
                self._classes[new.metadata.name] = new
            elif old is not None:
                self._classes.pop(old.metadata.name, None)
            subject = new if new is not None else old
            if subject is not None:
                self._class_changes.note(subject.metadata.name)

    def csi_node_changed(self, old: CSINode | None, new: CSINode | None) -> None:
        """Take over a CSINode: ``new`` is None for one that is gone."""
        with self._lock:
            if new is not None:
                self._csi_nodes[new.metadata.name] = new
            elif old is not None:
                self._csi_nodes.pop(old.metadata.name, None)
            self._csi_nodes_snapshot = None
            subject = new if new is not None else old
            if subject is not None:
                self._csi_node_changes.note(subject.metadata.name)

    def csi_driver_changed(self, old: CSIDriver | None, new: CSIDriver | None) -> None:
        """Take over a CSI driver: ``new`` is None for one that is gone."""
        with self._lock:
            if new is not None:
                self._csi_drivers[new.metadata.name] = new
            elif old is not None:
                self._csi_drivers.pop(old.metadata.name, None)
            self.csi_drivers_version += 1

    def capacity_changed(
        self, old: CSIStorageCapacity | None, new: CSIStorageCapacity | None
    ) -> None:
        """Take over a capacity: ``new`` is None for one that is gone."""
        with self._lock:
            if new is not None:
                self._capacities[_capacity_key(new)] = new
            elif old is not None:
                self._capacities.pop(_capacity_key(old), None)
            self._capacities_by_class = None
            self.capacities_version += 1

    def attachment_changed(
        self, old: VolumeAttachment | None, new: VolumeAttachment | None
    ) -> None:
        """Take over an attachment: ``new`` is None for one that is gone."""
        with self._lock:
            if old is not None:
                held = self._attachments.get(old.spec.node_name, {})
                held.pop(old.metadata.name, None)
                if not held:
                    self._attachments.pop(old.spec.node_name, None)
                self._attachment_changes.note(old.spec.node_name)
            if new is not None:
                held = self._attachments.setdefault(new.spec.node_name, {})
                held[new.metadata.name] = new
                self._attachment_changes.note(new.spec.node_name)


def _capacity_key(capacity: CSIStorageCapacity) -> tuple[str, str]:
    return capacity.metadata.namespace, capacity.metadata.name
