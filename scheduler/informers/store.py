"""Store the objects of one resource as last received, and report each change as a delta.

A store keeps objects by UID and also finds them by namespace and name. Each input results in
:class:`Delta` values, and the deltas are complete: applied in order to an empty map by UID
they give the store, at any moment. So an object that comes back under its old name with a new UID
is a deletion and an addition, and a deletion that was missed is reported when a list shows it.

It never goes back in time: for one UID, a resourceVersion older than the stored one is dropped,
except in a list that is adopted because etcd was restored.

*Concurrency*: one writer. Readers may live in other threads: each reading method is one atomic
operation on a dict under the GIL and sees the store between two objects, never inside one.
"""

from __future__ import annotations

import enum
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Generic

import msgspec

from cache.resource_versions import INCOMPARABLE, parse_resource_version
from scheduler.informers.watch_events import EventType, T, namespace_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Set

BATCH_SIZE: Final = 500
"""Deltas handed on at once when a whole list comes in: a few milliseconds of work."""

LOOKED_AT: Final = 2000
"""Objects of a whole list that are compared at once: two milliseconds of work."""


class DeltaKind(enum.Enum):
    """What happened to an object, as seen from the store."""

    ADDED = "added"
    UPDATED = "updated"
    DELETED = "deleted"


class Delta(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """One change of a store.

    Attributes
    ----------
    old
        The state that was in the store; None for ADDED. For DELETED this is the last known
        state, which is what handlers have been told of, not what the server saw last.
    new
        The state that is in the store now; None for DELETED.
    restored
        Whether the server has gone back in time: `new` may be older than `old`, or another object
        of the same version.
    """

    kind: DeltaKind
    old: T | None
    new: T | None
    restored: bool = False


class Store(Generic[T]):
    """Objects by UID, with an index by namespace and name.

    *Cost*: 0.2-0.3 KiB for each object besides the object.
    """

    def __init__(self) -> None:
        self._by_uid: dict[str, T] = {}
        self._by_name: dict[str, dict[str, T]] = {}
        self._removals: list[set[str]] = []

    # --- reading ------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._by_uid)

    def objects(self, namespace: str | None = None) -> list[T]:
        """Return all objects, or those of one namespace, in no particular order.

        *Cost*: linear in what is returned.
        """
        if namespace is None:
            return list(self._by_uid.values())
        return list(self._by_name.get(namespace, {}).values())

    def namespaces(self) -> list[str]:
        """Return the namespaces that have objects; cluster-scoped ones are in an empty one."""
        return list(self._by_name)

    def get(self, namespace: str, name: str) -> T | None:
        """Return the object of that name; `namespace` is empty for cluster-scoped ones."""
        return self._by_name.get(namespace, {}).get(name)

    def get_by_uid(self, uid: str) -> T | None:
        """Return the object with that UID."""
        return self._by_uid.get(uid)

    def known(self, obj: T) -> T:
        """Return the object at hand in place of an equal copy of it, otherwise `obj`.

        Equal means the same UID and resourceVersion. A list that is being collected holds the
        store's own objects this way and not a second copy of the cluster.
        """
        mine = self._by_uid.get(obj.metadata.uid)
        if mine is not None and mine.metadata.resource_version == obj.metadata.resource_version:
            return mine
        return obj

    # --- writing ------------------------------------------------------------------------------

    def apply(self, event_type: EventType, obj: T, deltas: list[Delta[T]]) -> None:
        """Take in one event of a watch, appending what changes to `deltas`.

        Nothing changes for an event that is not newer than what is at hand under its UID or its
        name, nor for a deletion of an unknown UID. ADDED and MODIFIED mean the same: the object is
        there. A deletion is final whatever its version, because a UID never comes back.
        """
        metadata = obj.metadata
        if event_type is EventType.DELETED:
            self.discard(metadata.uid, deltas)
            return
        old = self._by_uid.get(metadata.uid)
        if old is None:
            namesake = self.get(namespace_of(obj), metadata.name)
            if namesake is None or _is_newer(
                metadata.resource_version, namesake.metadata.resource_version
            ):
                self._add(obj, deltas)
        elif _is_newer(metadata.resource_version, old.metadata.resource_version):
            self._update(old, obj, deltas)

    def added(self, objects: Iterable[T]) -> list[Delta[T]]:
        """Take in objects of a list that is not complete; return what changes."""
        deltas: list[Delta[T]] = []
        for obj in objects:
            self.apply(EventType.ADDED, obj, deltas)
        return deltas

    def discard(self, uid: str, deltas: list[Delta[T]]) -> None:
        """Remove the object with that UID, if there is one, appending its deletion to `deltas`."""
        for each in self._removals:
            each.add(uid)
        old = self._by_uid.pop(uid, None)
        if old is not None:
            self._forget_name(old)
            deltas.append(Delta(DeltaKind.DELETED, old, None))

    @contextmanager
    def removals(self) -> Iterator[Set[str]]:
        """Collect the UIDs that are discarded meanwhile, also of objects that are not here."""
        found: set[str] = set()
        self._removals.append(found)
        try:
            yield found
        finally:
            self._removals = [each for each in self._removals if each is not found]

    def replace_in_batches(
        self,
        objects: Iterable[T],
        *,
        present: Collection[str] = (),
        rewind: bool = False,
        batch_size: int = BATCH_SIZE,
    ) -> Iterator[list[Delta[T]]]:
        """Take in a whole list, yielding what changes as it changes.

        Afterwards the store holds exactly `objects`, and of `present` what it held before. Objects
        whose resourceVersion is the one at hand, or older, make no delta. Between two batches the
        store is ahead of no delta: what was yielded is what it holds. A batch is empty where many
        objects in a row are unchanged: the caller can let others work.

        What is new comes before what is gone, so that half-way nobody sees more room than there
        is; only an object that takes the name of another comes right after that one's deletion.

        Parameters
        ----------
        present
            UIDs that the list has but that could not be decoded: their last good version stays.
        rewind
            Whether the list is to be believed although it is older: every object that differs is
            taken.

        *Cost*: linear in the list and the store; 0.5 us for an unchanged object. That of one batch
        is bounded.
        """
        deltas: list[Delta[T]] = []
        by_uid = self._by_uid
        listed = set(present)
        for number, obj in enumerate(objects, 1):
            metadata = obj.metadata
            listed.add(metadata.uid)
            old = by_uid.get(metadata.uid)
            if old is None:
                self._add(obj, deltas)
            elif rewind:
                if old != obj:
                    self._update(old, obj, deltas, restored=True)
            elif _is_newer(metadata.resource_version, old.metadata.resource_version):
                self._update(old, obj, deltas)
            if len(deltas) >= batch_size or not number % LOOKED_AT:
                yield deltas
                deltas = []
        for number, uid in enumerate(list(by_uid), 1):
            if uid not in listed:
                self.discard(uid, deltas)
            if len(deltas) >= batch_size or not number % LOOKED_AT:
                yield deltas
                deltas = []
        if deltas:
            yield deltas

    # --- the two maps -------------------------------------------------------------------------

    def _add(self, obj: T, deltas: list[Delta[T]]) -> None:
        metadata = obj.metadata
        names = self._by_name.setdefault(namespace_of(obj), {})
        namesake = names.get(metadata.name)
        if namesake is not None:
            # One name, another UID: the old object's deletion was missed.
            self.discard(namesake.metadata.uid, deltas)
            names = self._by_name.setdefault(namespace_of(obj), {})
        self._by_uid[metadata.uid] = obj
        names[metadata.name] = obj
        deltas.append(Delta(DeltaKind.ADDED, None, obj))

    def _update(self, old: T, new: T, deltas: list[Delta[T]], *, restored: bool = False) -> None:
        metadata = new.metadata
        namespace = namespace_of(new)
        if metadata.name != old.metadata.name or namespace != namespace_of(old):
            # No API server renames an object; to a store that was told so it is another one.
            self.discard(metadata.uid, deltas)
            self._add(new, deltas)
            return
        self._by_uid[metadata.uid] = new
        self._by_name[namespace][metadata.name] = new
        deltas.append(Delta(DeltaKind.UPDATED, old, new, restored))

    def _forget_name(self, obj: T) -> None:
        namespace = namespace_of(obj)
        names = self._by_name[namespace]
        del names[obj.metadata.name]
        if not names:
            del self._by_name[namespace]


def _is_newer(version: str, than: str) -> bool:
    if version == than:
        return False
    number, other = parse_resource_version(version), parse_resource_version(than)
    # What cannot be compared is believed: to drop it might lose it for good.
    return number > other or INCOMPARABLE in (number, other)
