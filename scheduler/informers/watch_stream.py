"""Decode the chunks of a watch into its events.

A watch is a stream of lines, and a chunk may end anywhere in a line. All complete lines of a chunk
are decoded together and passed on together. A line that cannot be decoded loses only that line.

*Concurrency*: not thread-safe; one decoder for one stream.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Generic, cast

import msgspec

from scheduler.informers.object_reader import UnreadableObjectError, shorten
from scheduler.informers.watch_events import (
    BookmarkEvent,
    ErrorEvent,
    EventType,
    ObjectEvent,
    T,
    UnreadableEvent,
    WatchEvent,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from scheduler.informers.object_reader import ObjectReader

MAX_LINE_BYTES: Final = 16 << 20
"""etcd takes 1.5 MiB of protobuf by default; as JSON, or with a raised limit, a few times that."""

_PREFIX_BYTES: Final = 256
_TYPE: Final = re.compile(rb'\s*\{\s*"type"\s*:\s*"([A-Z]{1,16})"')


class OversizedLine(msgspec.Struct, frozen=True, gc=False):
    """A line that was skipped: its beginning and its length without the newline."""

    prefix: bytes
    size_bytes: int


class LineSplitter:
    """Cut chunks into lines.

    Parameters
    ----------
    max_line_bytes
        A longer line is not kept in memory but skipped up to its newline.

    *Cost*: linear in the bytes, however small the chunks are.
    """

    def __init__(self, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._max = max_line_bytes
        self._pieces: list[bytes] = []  # of the line that is not complete yet
        self._size = 0
        self._prefix = b""  # of the line that is being skipped

    def split(self, chunk: bytes) -> list[bytes | OversizedLine]:
        """Return the lines that `chunk` completes, without newlines; keep what is left over."""
        parts = chunk.split(b"\n")
        tail = parts.pop()
        lines: list[bytes | OversizedLine] = []
        if parts:
            if self._size:
                self._keep(parts[0])
                lines.append(self._take())
                del parts[0]
            if len(chunk) <= self._max:
                lines += parts
            else:
                lines += [self._bounded(part) for part in parts]
        if tail:
            self._keep(tail)
        return lines

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= self._max:
            self._pieces.append(piece)
        elif not self._prefix:
            self._pieces.append(piece)
            self._prefix = b"".join(self._pieces)[:_PREFIX_BYTES]
            self._pieces.clear()

    def _take(self) -> bytes | OversizedLine:
        pieces, prefix, size = self._pieces, self._prefix, self._size
        self._pieces, self._prefix, self._size = [], b"", 0
        return OversizedLine(prefix, size) if prefix else b"".join(pieces)

    def _bounded(self, line: bytes) -> bytes | OversizedLine:
        if len(line) <= self._max:
            return line
        return OversizedLine(line[:_PREFIX_BYTES], len(line))


class WatchDecoder(Generic[T]):
    """Decode the chunks of one watch into events.

    Parameters
    ----------
    reader
        Decodes the objects.
    max_line_bytes
        See :class:`LineSplitter`.
    """

    def __init__(self, reader: ObjectReader[T], max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._reader = reader
        self._split = LineSplitter(max_line_bytes).split
        self._decode_event: Callable[[bytes], ObjectEvent[T]] = msgspec.json.Decoder(
            cast("Any", ObjectEvent)[reader.struct]
        ).decode

    def feed(self, chunk: bytes) -> list[WatchEvent[T]]:
        """Return the events that `chunk` completes, in order. Never raises for what it is fed.

        *Cost*: 8-9 us for a pod of 3.2 KB, of which msgspec takes 6; some 15 us more for an object
        that must be looked at twice.
        """
        events: list[WatchEvent[T]] = []
        append, decode, accept = events.append, self._decode_event, self._reader.accept
        for line in self._split(chunk):
            if isinstance(line, OversizedLine):
                problem = f"a line of {line.size_bytes} bytes was skipped"
                append(UnreadableEvent(_type_of(line.prefix), None, problem))
            elif line:
                # First as if all were well, in one go; what that refuses is looked at with care.
                try:
                    event = decode(line)
                    obj = accept(event.object)
                    append(event if obj is event.object else ObjectEvent(event.type, obj))
                except UnreadableObjectError as error:
                    append(UnreadableEvent(event.type, error.identity, error.problem))
                except _UNREADABLE:
                    append(self._with_care(line))
        return events

    def _with_care(self, line: bytes) -> WatchEvent[T]:
        """Return the event of a line that is no plain event about a plain object."""
        event_type = None
        try:
            envelope = _ENVELOPE.decode(line)
            event_type = _EVENT_TYPES.get(envelope.type)
            if event_type is None:
                return _rare_event(envelope)
            return ObjectEvent(event_type, self._reader.read(envelope.object))
        except UnreadableObjectError as error:
            return UnreadableEvent(event_type, error.identity, error.problem)
        except _UNREADABLE as error:
            problem = shorten(f"not an event: {error}: {line[:_PREFIX_BYTES]!r}")
            return UnreadableEvent(_type_of(line), None, problem)


# --- envelopes --------------------------------------------------------------------------------

# ValueError: a string that is not UTF-8. RecursionError: a thousand brackets.
_UNREADABLE: Final = (msgspec.MsgspecError, ValueError, RecursionError)

_EVENT_TYPES: Final = {event_type.value: event_type for event_type in EventType}


class _Envelope(msgspec.Struct, gc=False):
    type: str
    object: msgspec.Raw


class _BookmarkMeta(msgspec.Struct, rename="camel"):
    resource_version: str
    annotations: dict[str, str] | None = None


class _Bookmark(msgspec.Struct):
    metadata: _BookmarkMeta


class _StatusDetails(msgspec.Struct, rename="camel"):
    retry_after_seconds: float = 0


class _Status(msgspec.Struct):
    code: int = 0
    reason: str = ""
    message: str = ""
    details: _StatusDetails | None = None


_ENVELOPE: Final = msgspec.json.Decoder(_Envelope)
_BOOKMARK: Final = msgspec.json.Decoder(_Bookmark)
_STATUS: Final = msgspec.json.Decoder(_Status)


def _rare_event(envelope: _Envelope) -> WatchEvent[Any]:
    """Return what an envelope without an object says; raises one of _UNREADABLE."""
    if envelope.type == "BOOKMARK":
        metadata = _BOOKMARK.decode(envelope.object).metadata
        # Source: k8s.io/apimachinery 1.36, meta/v1 types.go, InitialEventsAnnotationKey.
        ends = (metadata.annotations or {}).get("k8s.io/initial-events-end") == "true"
        return BookmarkEvent(metadata.resource_version, ends)
    if envelope.type == "ERROR":
        try:
            status = _STATUS.decode(envelope.object)
        except _UNREADABLE as error:
            # Unreadable or not, the server has said that the watch is over.
            return ErrorEvent(0, "", shorten(f"unreadable Status: {error}"), None)
        wait_s = status.details.retry_after_seconds if status.details is not None else 0
        return ErrorEvent(
            status.code, status.reason, shorten(status.message), wait_s if wait_s > 0 else None
        )
    raise ValueError(f"unknown type {shorten(envelope.type)!r}")


def _type_of(line: bytes) -> EventType | None:
    """Return the type that the server wrote first, if that much of the line can be read."""
    match = _TYPE.match(line)
    return None if match is None else _EVENT_TYPES.get(match[1].decode())
