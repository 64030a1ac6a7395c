"""Collect the complete list of one resource, in pages or as a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, NamedTuple

import msgspec

from cache.objects import ListMeta
from scheduler.informers.object_reader import UnreadableObjectError
from scheduler.informers.watch_events import (
    BookmarkEvent,
    EventType,
    ObjectEvent,
    T,
    UnreadableEvent,
    WatchEvent,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from scheduler.informers.object_reader import ObjectReader
    from scheduler.informers.store import Store


class Listing(Generic[T]):
    """What has been listed so far.

    Objects that the store has in the same version are the store's own, so that a relist costs the
    memory of what has changed, not of the whole cluster.

    Parameters
    ----------
    store
        Where the list will go.
    restored
        Whether etcd may have been restored: then a version says nothing of the content, and no
        object is taken for the store's own.
    """

    def __init__(self, store: Store[T], *, restored: bool = False) -> None:
        self._store = store
        self._restored = restored
        self._objects: dict[str, T] = {}
        self._present: set[str] = set()
        self.resource_version = ""

    @property
    def objects(self) -> Iterable[T]:
        """The objects, each UID once."""
        return self._objects.values()

    @property
    def present(self) -> Collection[str]:
        """UIDs of objects that exist but could not be decoded."""
        return self._present

    def take(self, event: ObjectEvent[T] | UnreadableEvent | BookmarkEvent) -> None:
        """Take in one event of a streaming list.

        Changes that happen meanwhile may come before its end, so all types count.
        """
        if isinstance(event, ObjectEvent):
            uid = event.object.metadata.uid
            self._forget(uid)
            if event.type is not EventType.DELETED:
                obj = event.object
                self._objects[uid] = obj if self._restored else self._store.known(obj)
        elif isinstance(event, UnreadableEvent):
            if event.identity is not None:
                uid = event.identity.uid
                self._forget(uid)
                if event.type is not EventType.DELETED:
                    self._present.add(uid)
        elif event.initial_events_end:
            self.resource_version = event.resource_version

    def take_objects(
        self, objects: Sequence[msgspec.Raw], reader: ObjectReader[T]
    ) -> list[UnreadableEvent]:
        """Decode and take in objects of a page; return what could not be decoded."""
        unreadable = []
        event: WatchEvent[T]
        for raw in objects:
            try:
                event = ObjectEvent(EventType.ADDED, reader.read(raw))
            except UnreadableObjectError as error:
                event = UnreadableEvent(EventType.ADDED, error.identity, error.problem)
                unreadable.append(event)
            self.take(event)
        return unreadable

    def _forget(self, uid: str) -> None:
        self._objects.pop(uid, None)
        self._present.discard(uid)


class Page(NamedTuple):
    """One page of a list.

    Attributes
    ----------
    objects
        Not decoded: one bad object shall cost no more.
    token
        Of the next page; empty after the last one.
    """

    objects: Sequence[msgspec.Raw]
    token: str
    resource_version: str


def read_page(body: bytes) -> Page:
    """Return what the body of an answer has.

    Raises
    ------
    msgspec.MsgspecError, ValueError, RecursionError
        It is no list.
    """
    page = _PAGE.decode(body)
    return Page(page.items or (), page.metadata.continue_, page.metadata.resource_version)


class _Page(msgspec.Struct):
    metadata: ListMeta
    # Go encodes an empty list as null.
    items: list[msgspec.Raw] | None = None


_PAGE: Final = msgspec.json.Decoder(_Page)
