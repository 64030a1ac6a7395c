"""Keep connections to the API server open, and lend each to one request at a time.

A bind is a request of 300 bytes and a token, and a response of 400. Its cost depends on the code
between the socket and the caller. CPU of the client for one bind, against a server in
another process: `aiohttp` 106 us, with TLS 130 us; this pool 26 us and 40 us. Against a real API
server on the same two busy cores: 350 us and 125 us. At 1 500 binds a second that is a third of a
core.

*Concurrency*: loop-confined.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from scheduler.client.connection import Connection, ExchangeError, close_all
from scheduler.client.connector import CONNECT_TIMEOUT_S
from scheduler.client.http1 import ResponseParser

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from scheduler.client.connector import Connector
    from scheduler.client.http1 import RawResponse

# Shorter than the 90 s after which the API server closes an idle connection: a write should not
# be sent into a connection that is being closed.
KEEP_ALIVE_S: Final = 45.0

_AT_ONCE: Final = 8
"""Connections that are made at a time. A TLS handshake is 1 to 2 ms of CPU on the loop, and a burst
of 64 requests began with as many of them in a row. Whoever has to wait mostly gets a connection
that another request gives back, which takes less time than to make one."""

_TICK_S: Final = 0.001


class _Waiter(NamedTuple):
    """A request in line for a connection."""

    turn: asyncio.Future[None]
    deadline_s: float
    timeout_s: float


class ConnectionPool:
    """Connections to one address.

    Parameters
    ----------
    connector
        Makes them.
    ssl_context
        Asked at each loan: a connection that was made with another context than today's is not
        lent again.
    max_connections
        More requests than that wait in line, each at most for its own timeout.
    """

    def __init__(
        self,
        connector: Connector,
        *,
        ssl_context: Callable[[], ssl.SSLContext | None],
        max_connections: int,
    ) -> None:
        self._connector = connector
        self._ssl_context = ssl_context
        self._free = max_connections
        self._line: deque[_Waiter] = deque()
        self._connecting = 0
        self._seekers: deque[asyncio.Future[None]] = deque()  # would connect, but not now
        # Lent from the end: the connection used last is the one most surely alive, and those
        # that are not needed are left alone long enough to be closed.
        self._idle: list[Connection] = []
        self._lent: dict[Connection, float] = {}  # to their timeouts in seconds
        self._reaper: asyncio.TimerHandle | None = None
        # One timer for all exchanges under way: to make and cancel one for each costs a third of
        # what the exchange itself does.
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_s = math.inf
        self._closed = False

    async def exchange(
        self,
        request: bytes,
        *,
        timeout_s: float,
        max_body_bytes: int,
        keep_body: bool = True,
        may_resend: bool = False,
        before_send: Callable[[], None] | None = None,
    ) -> RawResponse:
        """Send `request` on some connection and return the answer.

        Parameters
        ----------
        timeout_s
            For everything: the wait for a connection, its making, the answer.
        may_resend
            The request does no harm if it is carried out twice: should a kept connection turn
            out to be dead, it is sent once more on a new one.
        before_send
            Called right before the request is written: it may have waited for a connection, and the
            process may have stood still. What it raises refuses the request.

        Raises
        ------
        ExchangeError
            No answer.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        if self._free > 0:
            self._free -= 1
        else:
            await self._wait_in_line(deadline, timeout_s, loop)
        try:
            connection = self._take_idle()
            if connection is None and self._connecting >= _AT_ONCE:
                connection = await self._wait_to_connect(deadline, timeout_s, loop)
            may_resend = may_resend and connection is not None
            while True:
                if connection is None:
                    connection = await self._connect(deadline - loop.time())
                if before_send is not None:
                    try:
                        before_send()
                    except BaseException:
                        self._give_back(connection, loop)
                        raise
                parser = ResponseParser(max_body_bytes, keep_body=keep_body)
                self._lent[connection] = timeout_s
                connection.deadline_s = deadline
                if deadline < self._alarm_s:
                    self._set_alarm(deadline, loop)
                try:
                    return await connection.exchange(request, parser)
                except ExchangeError as error:
                    stale = error.reason == "Disconnected" and not parser.started
                    if not (may_resend and stale):
                        raise
                    may_resend = False
                finally:
                    del self._lent[connection]
                    self._give_back(connection, loop)
                connection = None
        finally:
            self._release()
            self._wake_seeker()

    async def close(self) -> None:
        """Close all connections; exchanges under way fail with ``"Disconnected"``."""
        self._closed = True
        while self._seekers:
            self._wake_seeker()
        for timer in (self._reaper, self._alarm):
            if timer is not None:
                timer.cancel()
        connections = [*self._idle, *self._lent]
        self._idle.clear()
        await close_all(connections)

    # --- loans --------------------------------------------------------------------------------

    async def _wait_in_line(
        self, deadline_s: float, timeout_s: float, loop: asyncio.AbstractEventLoop
    ) -> None:
        """Return once a connection may be used; who came first is served first."""
        turn: asyncio.Future[None] = loop.create_future()
        self._line.append(_Waiter(turn, deadline_s, timeout_s))
        if deadline_s < self._alarm_s:
            self._set_alarm(deadline_s, loop)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._release()  # it had become ours at the same moment
            raise

    def _release(self) -> None:
        """Let the next one in line use a connection."""
        while self._line:
            turn = self._line.popleft().turn
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

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

    # --- time ---------------------------------------------------------------------------------

    def _set_alarm(self, at_s: float, loop: asyncio.AbstractEventLoop) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_s = at_s
        self._alarm = loop.call_at(at_s, self._give_up_late)

    def _give_up_late(self) -> None:
        """Give up on what is due, answers and turns in line, and come back for the next."""
        loop = asyncio.get_running_loop()
        # Whoever is due within the clock's resolution is due now, as timers of the loop are.
        now = loop.time() + _TICK_S
        self._alarm, self._alarm_s = None, math.inf
        for connection, timeout_s in list(self._lent.items()):
            if connection.deadline_s <= now:
                connection.give_up(timeout_s)
            elif connection.deadline_s < self._alarm_s:
                self._alarm_s = connection.deadline_s
        for waiter in self._line:
            if waiter.turn.done():
                continue
            if waiter.deadline_s <= now:
                message = f"no connection became free within {waiter.timeout_s:.4g} s"
                waiter.turn.set_exception(ExchangeError("Timeout", message, sent=False))
            elif waiter.deadline_s < self._alarm_s:
                self._alarm_s = waiter.deadline_s
        if self._alarm_s < math.inf:
            self._set_alarm(self._alarm_s, loop)

    # --- new connections ----------------------------------------------------------------------

    async def _connect(self, timeout_s: float) -> Connection:
        if self._closed:
            raise ExchangeError("Unreachable", "the client has been closed", sent=False)
        self._connecting += 1
        try:
            return await self._connector.connect(Connection, min(timeout_s, CONNECT_TIMEOUT_S))
        finally:
            self._connecting -= 1
            self._wake_seeker()

    async def _wait_to_connect(
        self, deadline_s: float, timeout_s: float, loop: asyncio.AbstractEventLoop
    ) -> Connection | None:
        """Return a connection that has become idle, or None once another one may be made."""
        try:
            async with asyncio.timeout(deadline_s - loop.time()):
                while self._connecting >= _AT_ONCE and not self._closed:
                    turn: asyncio.Future[None] = loop.create_future()
                    self._seekers.append(turn)
                    try:
                        await turn
                    except asyncio.CancelledError:
                        if turn.done() and not turn.cancelled():
                            self._wake_seeker()  # it was woken at the same moment
                        raise
                    connection = self._take_idle()
                    if connection is not None:
                        return connection
        except TimeoutError:
            message = f"no connection became free within {timeout_s:.4g} s"
            raise ExchangeError("Timeout", message, sent=False) from None
        return None

    def _wake_seeker(self) -> None:
        """Let one that waits to connect look again: an exchange or the making of one has ended."""
        while self._seekers:
            turn = self._seekers.popleft()
            if not turn.done():
                turn.set_result(None)
                return
