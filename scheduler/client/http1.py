"""Parse an HTTP/1.1 response from received bytes: pure, without a socket.

The responses to the scheduler's own requests are small and simple, and there are thousands per
second. So the parser reads only what they need: a status, three headers that frame the body, and
the body. The other headers are parsed only when a caller reads them.

The parser is strict on purpose. Input that it does not understand raises
:class:`BadResponseError`, and so does a byte after the end of the response: on a connection where
the two sides disagree about the end of a response, the next pod would get the verdict on this one.

*Source*: RFC 9112, sections 4 (status line), 6 (body length), 7.1 (chunked).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_HEAD_BYTES: Final = 64 << 10
"""Of status line and headers; also of the trailers after a chunked body."""

_MAX_CHUNK_LINE_BYTES: Final = 4096
_CHUNK_SIZE: Final = re.compile(rb"([0-9a-fA-F]{1,15})[ \t]*(?:;.*)?", re.DOTALL)
_STATUS_LINE: Final = re.compile(rb"HTTP/1\.([01]) ([1-5]\d\d)(?: [^\r\n]*)?(?:\r\n|$)")
_LENGTH: Final = re.compile(rb"[0-9]{1,18}")
_BODILESS: Final = frozenset({204, 304})
_MAX_PROVISIONAL: Final = 8


class BadResponseError(Exception):
    """What came is not an HTTP/1.1 answer as this module reads it."""


class BodyTooLargeError(Exception):
    """The body is larger than the reader is willing to keep."""


def _only_field(lower_head: bytes, start: bytes) -> bytes | None:
    """Return the value of a field that may stand there once, or None."""
    at = lower_head.find(start)
    if at < 0:
        return None
    at += len(start)
    if lower_head.find(start, at) >= 0:
        raise BadResponseError(f"the answer has {start.strip()!r} twice")
    end = lower_head.find(b"\r\n", at)
    return lower_head[at : end if end >= 0 else None].strip(b" \t")


def _may_persist(lower_head: bytes) -> bool:
    start = b"\r\nconnection:"
    if start not in lower_head:
        return True
    # A list of options, or the field twice, is read as a wish to close: that is always safe.
    return lower_head.count(start) == 1 and _only_field(lower_head, start) == b"keep-alive"


class Headers(Mapping[str, str]):
    """Header fields by name, in any case; of a repeated field the values joined by ``", "``.

    *Cost*: made for nothing, parsed at the first look.
    """

    __slots__ = ("_fields", "_raw")

    def __init__(self, raw: bytes) -> None:
        """Take the bytes of a head: a status line and header lines, without the empty line."""
        self._raw = raw
        self._fields: dict[str, str] | None = None

    def __getitem__(self, name: str) -> str:
        return self._parsed()[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parsed())

    def __len__(self) -> int:
        return len(self._parsed())

    def __repr__(self) -> str:
        return f"Headers({self._parsed()!r})"

    def _parsed(self) -> dict[str, str]:
        if self._fields is None:
            fields: dict[str, str] = {}
            for line in self._raw.split(b"\r\n")[1:]:
                raw_name, _, raw_value = line.partition(b":")
                name = raw_name.decode("latin-1").lower()
                value = raw_value.strip(b" \t").decode("latin-1")
                fields[name] = f"{fields[name]}, {value}" if name in fields else value
            self._fields = fields
        return self._fields


class RawResponse:
    """A whole answer.

    Attributes
    ----------
    status
        200 to 599: provisional answers are passed over.
    body
        Empty when the reader was told not to keep it.
    reusable
        Whether the connection may carry another request.
    """

    __slots__ = ("body", "headers", "reusable", "status")

    def __init__(self, status: int, headers: Headers, body: bytes, reusable: bool) -> None:
        self.status = status
        self.headers = headers
        self.body = body
        self.reusable = reusable


class ResponseParser:
    """Reads one answer; a new parser for each.

    Parameters
    ----------
    max_body_bytes
        A larger body raises `BodyTooLargeError`, as soon as its size is known.
    keep_body
        False drops the body of a success (2xx) as it comes; a refusal is always worth reading.
    bodiless
        The answer has no body whatever its headers say, as the answer to a CONNECT.
    """

    __slots__ = (
        "_bodiless",
        "_body",
        "_body_bytes",
        "_buffer",
        "_headers",
        "_keep_body",
        "_left",
        "_max_body_bytes",
        "_provisional",
        "_read",
        "_reusable",
        "started",
        "status",
    )

    def __init__(
        self, max_body_bytes: int, *, keep_body: bool = True, bodiless: bool = False
    ) -> None:
        self._max_body_bytes = max_body_bytes
        self._keep_body = keep_body
        self._bodiless = bodiless
        self._buffer = b""
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._left = 0
        self._provisional = 0
        self._headers = Headers(b"")
        self._reusable = True
        # Not bound: a parser that refers to itself would keep its answer until the collector comes.
        self._read: Callable[[ResponseParser], RawResponse | None] = ResponseParser._read_head
        self.status = 0
        """0 until the head has been read."""
        self.started = False
        """Whether any byte has come."""

    def feed(self, data: bytes) -> RawResponse | None:
        """Take the next bytes; return the answer when they complete it.

        Raises
        ------
        BadResponseError
            Not an answer, or something behind it.
        BodyTooLargeError
            More than `max_body_bytes`.
        """
        self.started = True
        self._buffer = self._buffer + data if self._buffer else data
        return self._read(self)

    def feed_eof(self) -> RawResponse:
        """Say that no more will come: the end of a body that has no other end.

        Raises
        ------
        BadResponseError
            The answer is not complete.
        """
        if self._read is ResponseParser._read_until_close:
            return self._finished()
        raise BadResponseError("the connection was closed in the middle of an answer")

    @property
    def headers(self) -> Headers:
        """Those of the answer; empty until the head has been read."""
        return self._headers

    def drain(self) -> bytes:
        """Return what has come of the body since the last call, for whoever cannot wait for all.

        What is returned is not in the answer's body any more.
        """
        body = self._body
        if not body:
            return b""
        part = body[0] if len(body) == 1 else b"".join(body)
        body.clear()
        return part

    # --- the head -----------------------------------------------------------------------------

    def _read_head(self) -> RawResponse | None:
        while True:
            buffer = self._buffer
            end = buffer.find(b"\r\n\r\n")
            if end < 0 or end > MAX_HEAD_BYTES:
                if len(buffer) > MAX_HEAD_BYTES:
                    raise BadResponseError(
                        f"the head of the answer has over {MAX_HEAD_BYTES} bytes"
                    )
                return None
            head = buffer[:end]
            self._buffer = buffer[end + 4 :]
            line = _STATUS_LINE.match(head)
            if line is None:
                raise BadResponseError(f"this is not a status line of HTTP/1: {head[:80]!r}")
            status = int(line[2])
            if status >= 200:
                break
            self._provisional += 1
            if status == 101 or self._provisional > _MAX_PROVISIONAL:
                raise BadResponseError(f"nobody asked for a status {status}")
        self.status = status
        self._keep_body = self._keep_body or status >= 300
        self._headers = Headers(head)
        lower = head.lower()
        if b"\r\n " in lower or b"\r\n\t" in lower:
            raise BadResponseError("a header line is folded")
        self._reusable = line[1] == b"1" and _may_persist(lower)
        encoding = _only_field(lower, b"\r\ntransfer-encoding:")
        length = _only_field(lower, b"\r\ncontent-length:")
        if status in _BODILESS or self._bodiless:
            return self._finished()
        if encoding is not None:
            if encoding != b"chunked" or length is not None:
                raise BadResponseError(f"the body is framed as {encoding!r}, length {length!r}")
            self._read = ResponseParser._read_chunk_size
        elif length is not None:
            if not _LENGTH.fullmatch(length):
                raise BadResponseError(f"this is not a length: {length[:40]!r}")
            self._left = int(length)
            self._check_size(self._left)
            self._read = ResponseParser._read_sized
        else:
            self._reusable = False
            self._read = ResponseParser._read_until_close
        return self._read(self)

    # --- the body -----------------------------------------------------------------------------

    def _read_sized(self) -> RawResponse | None:
        if len(self._buffer) < self._left:
            self._left -= len(self._buffer)
            self._take(self._buffer)
            self._buffer = b""
            return None
        self._take(self._buffer[: self._left])
        self._buffer = self._buffer[self._left :]
        return self._finished()

    def _read_until_close(self) -> RawResponse | None:
        self._check_size(self._body_bytes + len(self._buffer))
        self._take(self._buffer)
        self._buffer = b""
        return None

    def _read_chunk_size(self) -> RawResponse | None:
        # One pass over the buffer by position: slicing it anew for each chunk would make a large
        # body of small chunks quadratic.
        buffer = self._buffer
        at = 0
        while True:
            end = buffer.find(b"\r\n", at)
            if end < 0:
                if len(buffer) - at > _MAX_CHUNK_LINE_BYTES:
                    raise BadResponseError("a chunk's size has no end")
                self._buffer = buffer[at:]
                return None
            size = _CHUNK_SIZE.fullmatch(buffer, at, end)
            if size is None:
                raise BadResponseError(f"this is not the size of a chunk: {buffer[at:end][:40]!r}")
            n_bytes = int(size[1], 16)
            self._check_size(self._body_bytes + n_bytes)
            start = end + 2
            if n_bytes == 0:
                self._buffer = buffer[start:]
                self._read = ResponseParser._read_trailers
                return self._read_trailers()
            stop = start + n_bytes
            if len(buffer) < stop + 2:
                self._left = n_bytes
                self._buffer = buffer[start:]
                self._read = ResponseParser._read_chunk_data
                return self._read_chunk_data()
            if buffer[stop : stop + 2] != b"\r\n":
                raise BadResponseError("a chunk is longer than its size")
            self._take(buffer[start:stop])
            at = stop + 2

    def _read_chunk_data(self) -> RawResponse | None:
        if self._left:
            part = self._buffer[: self._left]
            self._buffer = self._buffer[self._left :]
            self._left -= len(part)
            self._take(part)
        if self._left or len(self._buffer) < 2:
            return None
        if not self._buffer.startswith(b"\r\n"):
            raise BadResponseError("a chunk is longer than its size")
        self._buffer = self._buffer[2:]
        self._read = ResponseParser._read_chunk_size
        return self._read_chunk_size()

    def _read_trailers(self) -> RawResponse | None:
        buffer = self._buffer
        if buffer.startswith(b"\r\n"):
            self._buffer = buffer[2:]
            return self._finished()
        end = buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(buffer) > MAX_HEAD_BYTES:
                raise BadResponseError(f"the trailers are larger than {MAX_HEAD_BYTES} bytes")
            return None
        self._buffer = buffer[end + 4 :]
        return self._finished()

    def _take(self, data: bytes) -> None:
        self._body_bytes += len(data)
        if self._keep_body and data:
            self._body.append(data)

    def _check_size(self, n_bytes: int) -> None:
        if n_bytes > self._max_body_bytes:
            raise BodyTooLargeError(f"the answer has more than {self._max_body_bytes} bytes")

    def _finished(self) -> RawResponse:
        if self._buffer:
            raise BadResponseError(f"the answer goes on after its end: {self._buffer[:40]!r}")
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        return RawResponse(self.status, self._headers, body, self._reusable)
