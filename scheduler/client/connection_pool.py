"""Connections to the API server that are kept open and lent to one request at a time.

A bind is a request of 300 bytes and a token, and an answer of 400. What it costs is decided by
what stands between the socket and the caller. CPU of the client for one bind, against a server in
another process: `aiohttp` 106 us, with TLS 130 us; this pool 26 us and 40 us. Against a real API
server on the same two busy cores: 350 us and 125 us. At 1 500 binds a second that is a third of a
core.

What can go wrong is one exception with one question answered: had anything been sent?

Concurrency: loop-confined.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, cast
from urllib.parse import unquote

from yarl import URL

from scheduler.client.http1 import BadResponseError, BodyTooLargeError, RawResponse, ResponseParser
from scheduler.client.limiter import InFlightLimiter

if TYPE_CHECKING:
    from collections.abc import Callable

# Shorter than the 90 s after which the API server closes an idle connection: a write should not
# be sent into a connection that is being closed.
KEEP_ALIVE_S: Final = 45.0
CONNECT_TIMEOUT_S: Final = 5.0

_CLOSE_TIMEOUT_S: Final = 2.0


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


@dataclass(frozen=True)
class Address:
    """Where the server is and by which name it has to prove itself."""

    host: str
    port: int
    tls: bool
    server_name: str | None = None
    proxy: URL | None = None

    @classmethod
    def of(cls, base_url: str, server_name: str | None, proxy: str | None) -> Address:
        """Read a base URL that has been found good before."""
        url = URL(base_url)
        tls = url.scheme == "https"
        return cls(
            host=url.raw_host or "",
            port=url.port or (443 if tls else 80),
            tls=tls,
            server_name=server_name or (url.raw_host if tls else None),
            proxy=URL(proxy) if proxy else None,
        )

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        through = f" through {self.proxy.host}:{self.proxy.port}" if self.proxy else ""
        return f"{host}:{self.port}{through}"


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
    closed
        True before the connection is made and after it is gone.
    """

    __slots__ = ("_loop", "_pending", "closed", "context", "idle_since_s", "transport")

    transport: asyncio.Transport

    def __init__(
        self, loop: asyncio.AbstractEventLoop, context: ssl.SSLContext | None = None
    ) -> None:
        self._loop = loop
        self._pending: _Pending | None = None
        self.context = context
        self.idle_since_s = 0.0
        self.closed = True

    def is_open(self) -> bool:
        """Whether a request may be sent on it."""
        return not self.closed and not self.transport.is_closing()

    async def exchange(
        self, request: bytes, parser: ResponseParser, timeout_s: float
    ) -> RawResponse:
        """Send `request` and return the answer as `parser` reads it.

        The connection is closed unless the answer came in full and allows another request.

        Raises
        ------
        ExchangeError
            With `sent` True.
        """
        loop = self._loop
        waiter: asyncio.Future[RawResponse] = loop.create_future()
        timer = loop.call_later(timeout_s, self._give_up, timeout_s)
        self._pending = _Pending(parser, waiter, timer)
        self.transport.write(request)
        try:
            return await waiter
        except asyncio.CancelledError:
            timer.cancel()
            self._pending = None
            self.abort()
            raise

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
        pending = self._pending
        if pending is None:
            # Bytes that belong to no request: the next one must not take them for its answer.
            self.abort()
            return
        try:
            response = pending.parser.feed(data)
        except BadResponseError as error:
            self._fail("BadResponse", str(error))
        except BodyTooLargeError as error:
            self._fail("ResponseTooLarge", str(error))
        else:
            if response is not None:
                self._succeed(pending, response)

    def eof_received(self) -> None:
        """Take the end of the data as the end of an answer, if it may be one."""
        pending = self._pending
        if pending is None:
            return
        try:
            response = pending.parser.feed_eof()
        except BadResponseError as error:
            self._fail("Disconnected", str(error))
        else:
            self._succeed(pending, response)

    def connection_lost(self, exc: Exception | None) -> None:
        """End: an answer that is still awaited will not come."""
        self.closed = True
        self._fail("Disconnected", f"the connection broke: {exc or 'closed by the server'}")

    def _give_up(self, timeout_s: float) -> None:
        self._fail("Timeout", f"no answer within {timeout_s:.4g} s")

    def _succeed(self, pending: _Pending, response: RawResponse) -> None:
        self._pending = None
        pending.timer.cancel()
        if not response.reusable:
            self.abort()
        if not pending.waiter.done():
            pending.waiter.set_result(response)

    def _fail(self, reason: str, message: str) -> None:
        pending = self._pending
        if pending is None:
            return
        self._pending = None
        pending.timer.cancel()
        self.abort()
        if not pending.waiter.done():
            pending.waiter.set_exception(
                ExchangeError(reason, message, sent=True, status=pending.parser.status)
            )


class _Pending(NamedTuple):
    """An exchange under way."""

    parser: ResponseParser
    waiter: asyncio.Future[RawResponse]
    timer: asyncio.TimerHandle


class ConnectionPool:
    """Connections to one address.

    Parameters
    ----------
    address
        Where to.
    ssl_context
        Asked at each new connection and at each loan: a connection that was made with another
        context than today's is not lent again.
    max_connections
        More requests than that wait in line, each at most for its own timeout.
    """

    def __init__(
        self,
        address: Address,
        *,
        ssl_context: Callable[[], ssl.SSLContext | None],
        max_connections: int,
    ) -> None:
        self._address = address
        self._ssl_context = ssl_context
        self._slots = InFlightLimiter(max_connections)
        # Lent from the end: the connection used last is the one most surely alive, and those
        # that are not needed are left alone long enough to be closed.
        self._idle: list[Connection] = []
        self._lent: set[Connection] = set()
        self._reaper: asyncio.TimerHandle | None = None
        self._closed = False

    async def exchange(
        self,
        request: bytes,
        *,
        timeout_s: float,
        max_body_bytes: int,
        keep_body: bool = True,
        may_resend: bool = False,
    ) -> RawResponse:
        """Send `request` on some connection and return the answer.

        Parameters
        ----------
        timeout_s
            For everything: the wait for a connection, its making, the answer.
        may_resend
            The request does no harm if it is carried out twice: should a kept connection turn
            out to be dead, it is sent once more on a new one.

        Raises
        ------
        ExchangeError
            No answer.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        if not self._slots.try_acquire():
            await self._wait_for_slot(timeout_s)
        try:
            connection = self._take_idle()
            may_resend = may_resend and connection is not None
            while True:
                if connection is None:
                    connection = await self._connect(deadline - loop.time())
                parser = ResponseParser(max_body_bytes, keep_body=keep_body)
                self._lent.add(connection)
                try:
                    return await connection.exchange(
                        request, parser, max(deadline - loop.time(), 0.0)
                    )
                except ExchangeError as error:
                    stale = error.reason == "Disconnected" and not parser.started
                    if not (may_resend and stale):
                        raise
                    may_resend = False
                finally:
                    self._lent.discard(connection)
                    self._give_back(connection, loop)
                connection = None
        finally:
            self._slots.release()

    async def close(self) -> None:
        """Close all connections; exchanges under way fail with ``"Disconnected"``."""
        self._closed = True
        if self._reaper is not None:
            self._reaper.cancel()
        connections = [*self._idle, *self._lent]
        self._idle.clear()
        for connection in connections:
            connection.abort()
        # connection_lost comes with the next turns of the loop; without it a loop that is closed
        # right after this would leave open sockets behind.
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _CLOSE_TIMEOUT_S
        while not all(connection.closed for connection in connections):
            if loop.time() > deadline:
                break
            await asyncio.sleep(0)

    # --- loans --------------------------------------------------------------------------------

    async def _wait_for_slot(self, timeout_s: float) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                await self._slots.acquire()
        except TimeoutError:
            raise ExchangeError(
                "Timeout", f"no connection became free within {timeout_s:.4g} s", sent=False
            ) from None

    def _take_idle(self) -> Connection | None:
        idle = self._idle
        while idle:
            connection = idle.pop()
            if connection.is_open() and connection.context is self._ssl_context():
                return connection
            connection.abort()
        return None

    def _give_back(self, connection: Connection, loop: asyncio.AbstractEventLoop) -> None:
        if not connection.is_open():
            return
        if self._closed:
            connection.abort()
            return
        connection.idle_since_s = loop.time()
        self._idle.append(connection)
        if self._reaper is None:
            self._reaper = loop.call_later(KEEP_ALIVE_S, self._reap)

    def _reap(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        keep = [c for c in self._idle if c.is_open() and now - c.idle_since_s < KEEP_ALIVE_S]
        for connection in set(self._idle).difference(keep):
            connection.abort()
        self._idle = keep
        self._reaper = loop.call_later(KEEP_ALIVE_S / 2, self._reap) if keep else None

    # --- new connections ----------------------------------------------------------------------

    async def _connect(self, timeout_s: float) -> Connection:
        address = self._address
        if self._closed:
            raise ExchangeError("Unreachable", "the client has been closed", sent=False)
        timeout_s = min(timeout_s, CONNECT_TIMEOUT_S)
        try:
            async with asyncio.timeout(timeout_s):
                if address.proxy is not None and address.tls:
                    return await self._connect_through_proxy(address.proxy)
                return await self._connect_directly()
        except TimeoutError:
            message = f"no connection to {address} within {timeout_s:.2g} s"
        except ssl.SSLCertVerificationError as error:
            message = f"the certificate of {address} is not trusted: {error.verify_message}"
        except OSError as error:
            message = f"no connection to {address}: {error}"
        except ExchangeError as error:
            message = f"no connection to {address}: {error.message}"
        raise ExchangeError("Unreachable", message, sent=False)

    async def _connect_directly(self) -> Connection:
        address = self._address
        loop = asyncio.get_running_loop()
        context = self._ssl_context() if address.tls else None
        host, port = address.host, address.port
        if address.proxy is not None:
            host, port = address.proxy.raw_host or "", address.proxy.port or 80
        _, connection = await loop.create_connection(
            lambda: Connection(loop, context),
            host,
            port,
            ssl=context,
            server_hostname=address.server_name if context is not None else None,
        )
        return connection

    async def _connect_through_proxy(self, proxy: URL) -> Connection:
        address = self._address
        loop = asyncio.get_running_loop()
        context = self._ssl_context()
        if context is None:
            raise OSError("there is no TLS context")
        host = f"[{address.host}]" if ":" in address.host else address.host
        target = f"{host}:{address.port}"
        request = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{proxy_credentials(proxy)}\r\n"
        tunnel: Connection
        _, tunnel = await loop.create_connection(
            lambda: Connection(loop), proxy.raw_host or "", proxy.port or 80
        )
        try:
            parser = ResponseParser(0, keep_body=False, bodiless=True)
            answer = await tunnel.exchange(request.encode(), parser, CONNECT_TIMEOUT_S)
            if answer.status != 200:
                raise OSError(f"the proxy answered {answer.status}")
            connection = Connection(loop, context)
            transport = await loop.start_tls(
                tunnel.transport, connection, context, server_hostname=address.server_name
            )
            if transport is None:
                raise OSError("the connection was closed during the TLS handshake")
            connection.connection_made(transport)
        except BaseException:
            tunnel.abort()
            raise
        return connection


def proxy_credentials(proxy: URL) -> str:
    """Return the header line for the user and password in a proxy's URL, or nothing."""
    if proxy.raw_user is None:
        return ""
    pair = f"{unquote(proxy.raw_user)}:{unquote(proxy.raw_password or '')}"
    return f"Proxy-Authorization: Basic {base64.b64encode(pair.encode()).decode()}\r\n"
