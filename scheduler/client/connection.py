"""Hold one connection to the API server, which carries one request and response at a time.

Every failure is one exception, which reports whether anything had been sent.

*Concurrency*: loop-confined.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Protocol, cast

from scheduler.client.http1 import BadResponseError, BodyTooLargeError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable

    from scheduler.client.http1 import RawResponse, ResponseParser


_CLOSE_TIMEOUT_S: Final = 2.0


class Closable(Protocol):
    """A connection that can be closed at once."""

    closed: bool

    def abort(self) -> None:
        """Close at once, without waiting for anybody."""


async def close_all(connections: Iterable[Closable]) -> None:
    """Close connections at once, and wait until they are closed, for two seconds at most.

    connection_lost comes with the next turns of the loop; without it a loop that is closed right
    after this would leave open sockets behind.
    """
    waiting = list(connections)
    for connection in waiting:
        connection.abort()
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _CLOSE_TIMEOUT_S
    while not all(connection.closed for connection in waiting):
        if loop.time() > deadline:
            break
        await asyncio.sleep(0)


class ExchangeError(Exception):
    """No answer, or none that can be used.

    Attributes
    ----------
    reason
        ``"Unreachable"``, ``"Disconnected"``, ``"Timeout"``, ``"ResponseTooLarge"`` or
        ``"BadResponse"``.
    sent
        Whether the request may have reached the server.
    status
        Of an answer whose head had come; 0 when none had.
    """

    def __init__(self, reason: str, message: str, *, sent: bool, status: int = 0) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.sent = sent
        self.status = status


class Connection(asyncio.Protocol):
    """One connection; carries one exchange at a time.

    Attributes
    ----------
    transport
        There once the connection has been made.
    context
        What it was secured with; None for plain HTTP.
    idle_since_s
        The loop's time of its last return to the pool.
    deadline_s
        The loop's time at which whoever lent it gives up on the answer.
    closed
        True before the connection is made and after it is gone.
    """

    __slots__ = (
        "_loop",
        "_parser",
        "_waiter",
        "closed",
        "context",
        "deadline_s",
        "idle_since_s",
        "transport",
    )

    transport: asyncio.Transport

    def __init__(
        self, loop: asyncio.AbstractEventLoop, context: ssl.SSLContext | None = None
    ) -> None:
        self._loop = loop
        self._parser: ResponseParser | None = None  # of the answer that is awaited
        self._waiter: asyncio.Future[RawResponse]
        self.context = context
        self.idle_since_s = 0.0
        self.deadline_s = 0.0
        self.closed = True

    def is_open(self) -> bool:
        """Whether a request may be sent on it."""
        return not self.closed and not self.transport.is_closing()

    async def exchange(self, request: bytes, parser: ResponseParser) -> RawResponse:
        """Send `request` and return the answer as `parser` reads it.

        The connection is closed unless the answer came in full and allows another request.

        Raises
        ------
        ExchangeError
            With `sent` True.
        """
        waiter: asyncio.Future[RawResponse] = self._loop.create_future()
        self._waiter = waiter
        self._parser = parser
        self.transport.write(request)
        try:
            return await waiter
        except asyncio.CancelledError:
            self._parser = None
            self.abort()
            raise

    def give_up(self, timeout_s: float) -> None:
        """Close because the answer did not come in time; nothing happens if none is awaited."""
        self._fail("Timeout", f"no answer within {timeout_s:.4g} s")

    def abort(self) -> None:
        """Close at once, without waiting for anybody."""
        if not self.closed:
            self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin: what comes from now on goes through `transport`."""
        # Not isinstance: uvloop's transports are of this kind without saying so.
        self.transport = cast("asyncio.Transport", transport)
        self.closed = False

    def data_received(self, data: bytes) -> None:
        """Read on in the answer that is awaited."""
        parser = self._parser
        if parser is None:
            # Bytes that belong to no request: the next one must not take them for its answer.
            self.abort()
            return
        try:
            response = parser.feed(data)
        except BadResponseError as error:
            self._fail("BadResponse", str(error))
        except BodyTooLargeError as error:
            self._fail("ResponseTooLarge", str(error))
        else:
            if response is not None:
                self._succeed(response)

    def eof_received(self) -> None:
        """Take the end of the data as the end of an answer, if it may be one."""
        parser = self._parser
        if parser is None:
            return
        try:
            response = parser.feed_eof()
        except BadResponseError as error:
            self._fail("Disconnected", str(error))
        else:
            self._succeed(response)

    def connection_lost(self, exc: Exception | None) -> None:
        """End: an answer that is still awaited will not come."""
        self.closed = True
        self._fail("Disconnected", f"the connection broke: {exc or 'closed by the server'}")

    def _succeed(self, response: RawResponse) -> None:
        self._parser = None
        if not response.reusable:
            self.abort()
        if not self._waiter.done():
            self._waiter.set_result(response)

    def _fail(self, reason: str, message: str) -> None:
        parser = self._parser
        if parser is None:
            return
        self._parser = None
        self.abort()
        if not self._waiter.done():
            self._waiter.set_exception(
                ExchangeError(reason, message, sent=True, status=parser.status)
            )
