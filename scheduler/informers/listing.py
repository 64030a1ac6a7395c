"""Collect the complete list of one resource, in pages or as a stream."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar, cast

import msgspec

from cache.objects import ListMeta
from scheduler.informers.object_reader import UnreadableObjectError
from scheduler.informers.watch_events import (
    BookmarkEvent,
    EventType,
    ObjectEvent,
    T,
    UnreadableEvent,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

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

    def _forget(self, uid: str) -> None:
        self._objects.pop(uid, None)
        self._present.discard(uid)


def read_objects(
    objects: Iterable[T | msgspec.Raw], reader: ObjectReader[T]
) -> Iterator[ObjectEvent[T] | UnreadableEvent]:
    """Decode those objects of a page that are not yet; yield what each of them is to a listing."""
    for each in objects:
        try:
            obj = reader.read(each) if isinstance(each, msgspec.Raw) else reader.accept(each)
        except UnreadableObjectError as error:
            yield UnreadableEvent(EventType.ADDED, error.identity, error.problem)
        else:
            yield ObjectEvent(EventType.ADDED, obj)


class Page(NamedTuple, Generic[T]):
    """One page of a list.

    Attributes
    ----------
    objects
        Decoded, or all of them raw.
    token
        Of the next page; empty after the last one.
    """

    objects: Sequence[T | msgspec.Raw]
    token: str
    resource_version: str


class PageReader(Generic[T]):
    """Read pages of one kind of objects.

    Parameters
    ----------
    struct
        What objects are decoded to.
    """

    def __init__(self, struct: type[T]) -> None:
        self._struct = struct

    @cached_property
    def _decode(self) -> Callable[[bytes], _Page[Any]]:
        # Not for kinds that are never listed in pages: most of them come as a stream.
        return msgspec.json.Decoder(_page_of(self._struct)).decode

    def read(self, body: bytes) -> Page[T]:
        """Return what the body of an answer has.

        The objects of an ordinary page are decoded with it, in 60 % of the time. Those of a page
        with a bad object are not: that one shall cost no more than itself. Nor are those of a large
        page, which would let nobody else run for long.

        Raises
        ------
        msgspec.MsgspecError, ValueError, RecursionError
            It is no list.
        """
        if len(body) <= _AT_ONCE_BYTES:
            with suppress(msgspec.MsgspecError, ValueError, RecursionError):
                return _page(self._decode(body))
        return read_page(body)


def read_page(body: bytes) -> Page[Any]:
    """Return what the body of an answer has, with no object decoded.

    Raises
    ------
    msgspec.MsgspecError, ValueError, RecursionError
        It is no list.
    """
    return _page(_RAW_PAGE.decode(body))


_AT_ONCE_BYTES: Final = 2 << 20
"""Of a page that is decoded at once: 3 ms."""

_ItemT = TypeVar("_ItemT")


class _Page(msgspec.Struct, Generic[_ItemT]):
    metadata: ListMeta
    # Go encodes an empty list as null.
    items: list[_ItemT] | None = None


_RAW_PAGE: Final = msgspec.json.Decoder(_Page[msgspec.Raw])


def _page_of(struct: type[Any]) -> type[_Page[Any]]:
    return cast("type[_Page[Any]]", _Page[struct])  # type: ignore[valid-type]


def _page(page: _Page[Any]) -> Page[Any]:
    return Page(page.items or (), page.metadata.continue_, page.metadata.resource_version)
