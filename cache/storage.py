"""Volumes, claims, classes and drivers, as the watches report them and as pending writes assume."""

from __future__ import annotations

import threading
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, TypeVar

from cache.assume_cache import AssumeCache, HasMeta
from cache.change_journal import ChangeJournal

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

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

K = TypeVar("K", bound="Hashable")
T = TypeVar("T", bound=HasMeta)

ClaimKey: TypeAlias = "tuple[str, str]"
"""Namespace and name of a claim."""

BETA_STORAGE_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
"""The annotation that named the class before the field did; it still goes first."""

NO_CLAIM: Final[ClaimKey] = ("", "")
"""Stands for the claim of a volume that has none."""


def namespaced_name(subject: HasMeta) -> tuple[str, str]:
    """Return the namespace and the name of an object: the key of a claim."""
    return subject.metadata.namespace, subject.metadata.name


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


def _name(subject: HasMeta) -> str:
    return subject.metadata.name


def _class_and_claim(volume: PersistentVolume) -> tuple[str, ClaimKey]:
    reference = volume.spec.claim_ref
    key = NO_CLAIM if reference is None else (reference.namespace, reference.name)
    return volume_class(volume), key


class KnownObjects(Generic[K, T]):
    """The objects of one kind, as the API has them.

    Parameters
    ----------
    key
        Returns the key of an object.
    make_lock
        Creates the lock.
    index
        Returns the value by which :meth:`by_index` finds an object.

    Notes
    -----
    *Concurrency*: thread-safe; written from the I/O loop, read from any thread.
    """

    def __init__(
        self,
        key: Callable[[T], K],
        make_lock: MakeLock,
        index: Callable[[T], str] = _name,
    ) -> None:
        self._key = key
        self._index = index
        self._lock = make_lock()
        self._objects: dict[K, T] = {}
        self._copy: Mapping[K, T] | None = None
        self._by_index: dict[str, list[T]] | None = None
        self._journal: ChangeJournal[K] = ChangeJournal()

    @property
    def version(self) -> int:
        """Grows with every change: whatever was worked out from an older one may be wrong."""
        return self._journal.version

    def changes(self, since: int) -> tuple[int, frozenset[K] | None]:
        """Return the current :attr:`version`, and the keys changed after ``since``.

        The keys are None when ``since`` is too long ago.
        """
        with self._lock:
            return self._journal.version, self._journal.since(since)

    def get(self, key: K) -> T | None:
        """Return an object, or None."""
        return self._objects.get(key)

    def all(self) -> Mapping[K, T]:
        """Return all objects by key as they are now; the mapping does not change later.

        *Cost*: proportional to the objects after one of them changed, else constant.
        """
        with self._lock:
            if self._copy is None:
                self._copy = MappingProxyType(dict(self._objects))
            return self._copy

    def by_index(self, value: str) -> Sequence[T]:
        """Return the objects with an index, the oldest entry first.

        *Cost*: proportional to the objects after one of them changed, else constant.
        """
        with self._lock:
            if self._by_index is None:
                self._by_index = {}
                for each in self._objects.values():
                    self._by_index.setdefault(self._index(each), []).append(each)
            return self._by_index.get(value, ())

    def changed(self, old: T | None, new: T | None) -> None:
        """Store an object; ``new`` is None for a deleted one."""
        subject = new if new is not None else old
        if subject is None:
            return
        key = self._key(subject)
        with self._lock:
            if new is not None:
                self._objects[key] = new
            else:
                self._objects.pop(key, None)
            self._copy = self._by_index = None
            self._journal.record(key)


class Storage:
    """The storage objects that decide which nodes a pod with volumes can use.

    Attributes
    ----------
    claims, volumes
        With what we assume of them. Volumes are found by class and by the claim that they are
        bound to or kept for: see :meth:`volumes_of_class`.
    classes, csi_nodes, csi_drivers
        By name; a CSINode has the name of its node.
    capacities
        By namespace and name; their index is the storage class.

    Notes
    -----
    *Concurrency*: thread-safe; written from the I/O loop (what is assumed: from the scheduling
    thread as well), read from any thread.
    """

    def __init__(self, make_lock: MakeLock = threading.Lock) -> None:
        self.claims: AssumeCache[ClaimKey, PersistentVolumeClaim] = AssumeCache(
            "persistentvolumeclaims", namespaced_name, make_lock=make_lock
        )
        self.volumes: AssumeCache[str, PersistentVolume] = AssumeCache(
            "persistentvolumes", _name, _class_and_claim, make_lock
        )
        self.classes: KnownObjects[str, StorageClass] = KnownObjects(_name, make_lock)
        self.csi_nodes: KnownObjects[str, CSINode] = KnownObjects(_name, make_lock)
        self.csi_drivers: KnownObjects[str, CSIDriver] = KnownObjects(_name, make_lock)
        self.capacities: KnownObjects[tuple[str, str], CSIStorageCapacity] = KnownObjects(
            namespaced_name, make_lock, lambda capacity: capacity.storage_class_name
        )
        self._lock = make_lock()
        self._attachment_changes: ChangeJournal[str] = ChangeJournal()
        self._attachments: dict[str, dict[str, VolumeAttachment]] = {}

    @property
    def attachments_version(self) -> int:
        """Grows with every change of an attachment."""
        return self._attachment_changes.version

    # --- reading ------------------------------------------------------------------------------

    def claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        """Return the API's version of a claim, never an assumed one."""
        return self.claims.get_api((namespace, name))

    def volume(self, name: str) -> PersistentVolume | None:
        """Return the API's version of a volume, never an assumed one."""
        return self.volumes.get_api(name)

    def volumes_of_class(
        self, class_name: str, claim: ClaimKey = NO_CLAIM
    ) -> tuple[PersistentVolume, ...]:
        """Return the volumes of a class that are bound to or kept for a claim; by default for none.

        What is assumed of them counts.
        """
        return self.volumes.by_index((class_name, claim))

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

    def attachment_changed(
        self, old: VolumeAttachment | None, new: VolumeAttachment | None
    ) -> None:
        """Store an attachment; ``new`` is None for a deleted one."""
        with self._lock:
            if old is not None:
                held = self._attachments.get(old.spec.node_name, {})
                held.pop(old.metadata.name, None)
                if not held:
                    self._attachments.pop(old.spec.node_name, None)
                self._attachment_changes.record(old.spec.node_name)
            if new is not None:
                held = self._attachments.setdefault(new.spec.node_name, {})
                held[new.metadata.name] = new
                self._attachment_changes.record(new.spec.node_name)
