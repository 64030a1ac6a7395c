"""Read a response without an end, such as that of a watch.

    connection -> ResponseParser -> parts -> chunks()

A stream has a connection of its own. It breaks when nothing has arrived for a while. One timer
detects that; it is set again when it fires, not with each chunk. A reader that falls behind pauses
reading from the socket, so its memory does not grow.

*Concurrency*: loop-confined; one reader.
"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Final, cast

from scheduler.client.errors import ApiError
from scheduler.client.http1 import BadResponseError, BodyTooLargeError, ResponseParser
from scheduler.client.refusal import MAX_REFUSAL_BYTES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from scheduler.client.http1 import RawResponse

_WAITING_BYTES: Final = 2 << 20
"""Of chunks that nobody has read yet; beyond it the socket is left alone."""


class Stream(asyncio.Protocol):
    """One connection and the one answer that comes on it.

    Parameters
    ----------
    path
        Of the request, for errors.
    read_timeout_s
        Silence after which the stream is given up; none while the reader is behind.

    Attributes
    ----------
    closed
        True before the connection is made and after it is gone.
    """

    transport: asyncio.Transport

    def __init__(self, loop: asyncio.AbstractEventLoop, path: str, read_timeout_s: float) -> None:
        self._loop = loop
        self._path = path
        self._read_timeout_s = read_timeout_s
        self._parser = ResponseParser(sys.maxsize)
        self._parts: list[bytes] = []
        self._waiting_bytes = 0
        self._waiter: asyncio.Future[None] | None = None
        self._failure: ApiError | None = None
        self._ended = False
        self._paused = False
        self._heard_at_s = 0.0
        self._watchdog: asyncio.TimerHandle | None = None
        self.closed = True

    @property
    def status(self) -> int:
        """HTTP status; 0 until the head has come."""
        return self._parser.status

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of the answer; names are case-insensitive."""
        return self._parser.headers

    # --- the reader's side --------------------------------------------------------------------

    def chunks(self) -> AsyncIterator[bytes]:
        """Iterate over what arrives, cut anywhere, never empty; ends when the server is done.

        Raises
        ------
        ApiError
            Reason ``"Timeout"``: silence for `read_timeout_s`. Reason ``"Disconnected"``: the
            connection broke before the server was done.
        """
        # Not an async generator: one that is left in the middle is finalised by the loop at some
        # later time, which shows up as a warning at shutdown.
        return self

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> bytes:
        chunk = await self.read()
        if not chunk:
            raise StopAsyncIteration
        return chunk

    async def open(self, request: bytes) -> None:
        """Send `request` and return once the head of the answer has come.

        Raises
        ------
        ApiError
            It does not come.
        """
        self.transport.write(request)
        self._heard_at_s = self._loop.time()
        self._watchdog = self._loop.call_later(self._read_timeout_s, self._check_silence)
        while not self.status:
            await self._wait()

    async def read(self) -> bytes:
        """Return what has come, at least a byte; nothing at all when the answer is complete.

        Raises
        ------
        ApiError
            See :meth:`chunks`.
        """
        while not self._parts:
            if self._ended:
                return b""
            await self._wait()
        parts, self._parts, self._waiting_bytes = self._parts, [], 0
        if self._paused:
            self._paused = False
            self._heard_at_s = self._loop.time()
            if not self.closed:
                self.transport.resume_reading()
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def read_start(self) -> bytes:
        """Return what there is of a short body, at most `MAX_REFUSAL_BYTES`."""
        parts: list[bytes] = []
        n_bytes = 0
        try:
            while n_bytes < MAX_REFUSAL_BYTES and (part := await self.read()):
                parts.append(part)
                n_bytes += len(part)
        except ApiError:
            pass  # the status has come, and it says more than the failure to read on
        return b"".join(parts)

    def abort(self) -> None:
        """Close at once, without waiting for anybody."""
        self._silence_watchdog()
        if not self.closed:
            self.transport.abort()

    async def _wait(self) -> None:
        """Return when something has happened; raise what the stream broke of."""
        if self._failure is not None:
            raise self._failure
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    # --- the connection's side ----------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin: what comes from now on goes through `transport`."""
        # Not isinstance: uvloop's transports are of this kind without saying so.
        self.transport = cast("asyncio.Transport", transport)
        self.closed = False

    def data_received(self, data: bytes) -> None:
        """Take in a part of the answer."""
        self._heard_at_s = self._loop.time()
        if self._ended or self._failure is not None:
            return
        try:
            response = self._parser.feed(data)
        except (BadResponseError, BodyTooLargeError) as error:
            self._keep(self._parser.drain())
            self._fail("BadResponse", str(error))
            return
        if response is not None:
            self._end(response)
            return
        self._keep(self._parser.drain())
        if self._waiting_bytes > _WAITING_BYTES and not self._paused:
            self._paused = True
            self.transport.pause_reading()
        if self._parts or self.status:
            self._wake()

    def eof_received(self) -> None:
        """Take the end of the data as the end of the answer, if it may be one."""
        if self._ended or self._failure is not None:
            return
        try:
            response = self._parser.feed_eof()
        except BadResponseError as error:
            self._fail("Disconnected", str(error))
        else:
            self._end(response)

    def connection_lost(self, exc: Exception | None) -> None:
        """End: nothing more will come."""
        self.closed = True
        self._fail("Disconnected", f"the connection broke: {exc or 'closed by the server'}")

    def _keep(self, part: bytes) -> None:
        if part:
            self._parts.append(part)
            self._waiting_bytes += len(part)

    def _end(self, response: RawResponse) -> None:
        self._keep(response.body)
        self._ended = True
        self.abort()
        self._wake()

    def _fail(self, reason: str, message: str) -> None:
        if self._ended or self._failure is not None:
            return
        self._failure = ApiError(None, reason, message).about("GET", self._path)
        self.abort()
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _check_silence(self) -> None:
        now_s = self._loop.time()
        if self._paused:
            self._heard_at_s = now_s
        left_s = self._heard_at_s + self._read_timeout_s - now_s
        if left_s > 0:
            self._watchdog = self._loop.call_later(left_s, self._check_silence)
        else:
            self._watchdog = None
            self._fail("Timeout", f"nothing came for {self._read_timeout_s:.4g} s")

    def _silence_watchdog(self) -> None:
        if self._watchdog is not None:
            self._watchdog.cancel()
            self._watchdog = None
