"""A connection to the leader, over which one question is asked after another."""

from __future__ import annotations

import http.client
import io
import re
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final

from scheduler.insight.port_forward import SecureTunnel, TunnelError, port_forward

if TYPE_CHECKING:
    import ssl
    from typing import Self

    from scheduler.client.credentials import Credentials

_HEAD_END: Final = b"\r\n\r\n"
_MAX_HEAD_BYTES: Final = 1 << 16
_LENGTH: Final = re.compile(rb"(?im)^content-length:[ \t]*([0-9]{1,12})[ \t]*\r$")
_CLOSE: Final = re.compile(rb"(?im)^connection:[ \t]*close[ \t]*\r$")


MAX_IDLE: Final = 2
"""Connections that are kept: all users' come to the leader from one address, its kubelet's, and it
has a limit for all of them."""

IDLE_S: Final = 15.0
"""After that a connection is not used again: the leader closes it after 30 seconds."""

MAX_AGE_S: Final = 300.0
"""After that a connection is not kept: a client certificate may have been renewed."""


class CutResponseError(Exception):
    """The connection has ended within a response; the message is one sentence."""


class LeaderConnection:
    """TLS to the leader through the API server; made by :meth:`open`.

    Attributes
    ----------
    is_reusable
        Whether another question may be asked.

    Notes
    -----
    *Concurrency*: one question at a time. A question that is cancelled leaves nothing that could be
    used again: close it.
    """

    def __init__(self, tunnel: SecureTunnel, resources: AsyncExitStack) -> None:
        self._tunnel = tunnel
        self._resources = resources
        self._until_s = time.monotonic() + MAX_AGE_S
        self.is_reusable = True

    @classmethod
    async def open(
        cls,
        credentials: Credentials,
        pod: tuple[str, str, int],
        context: ssl.SSLContext,
        server_name: str,
    ) -> Self:
        """Connect to a pod, given as namespace, name and port.

        Raises
        ------
        TunnelError
            The API server refuses; the server's certificate is not the expected one.
        """
        async with AsyncExitStack() as resources:
            tunnel = await resources.enter_async_context(port_forward(credentials, *pod))
            secure = SecureTunnel(tunnel, context, server_name)
            await secure.handshake()
            return cls(secure, resources.pop_all())

    async def ask(self, request: bytes, limit_bytes: int) -> tuple[int, bytes]:
        """Send a request; return status and body of the response.

        Raises
        ------
        CutResponseError
            The connection has ended before the end of the response.
        TunnelError
            The connection cannot be used, or the response is too large.
        """
        self.is_reusable = False
        await self._tunnel.send(request)
        received = bytearray()
        wanted: int | None = None
        while wanted is None or len(received) < wanted:
            part = await self._tunnel.receive()
            if not part:
                break
            received += part
            if len(received) > limit_bytes:
                raise TunnelError("the answer is too large")
            if wanted is None:
                wanted = _length(received)
        head = bytes(received[:_MAX_HEAD_BYTES]).partition(_HEAD_END)[0]
        is_whole = len(received) == wanted and not _CLOSE.search(head + b"\r")
        self.is_reusable = is_whole and time.monotonic() < self._until_s
        return _response(bytes(received))

    async def close(self) -> None:
        """Close it."""
        self.is_reusable = False
        await self._resources.aclose()


class IdleConnections:
    """The connections that wait for the next question.

    Notes
    -----
    *Concurrency*: loop-confined.
    """

    def __init__(self) -> None:
        self._idle: list[tuple[float, LeaderConnection]] = []

    async def take(self) -> LeaderConnection | None:
        """Remove and return the connection that was used last; None if there is none to be used."""
        while self._idle:
            since_s, connection = self._idle.pop()
            if time.monotonic() - since_s < IDLE_S:
                return connection
            await connection.close()
        return None

    async def put(self, connection: LeaderConnection) -> None:
        """Keep a connection, or close it if it cannot be used again or enough others are kept."""
        if len(self._idle) < MAX_IDLE and connection.is_reusable:
            self._idle.append((time.monotonic(), connection))
        else:
            await connection.close()

    async def close(self) -> None:
        """Close all of them."""
        while self._idle:
            await self._idle.pop()[1].close()


def _length(received: bytearray) -> int | None:
    """Return the bytes of a response that says how long it is, or None."""
    end = received.find(_HEAD_END, 0, _MAX_HEAD_BYTES)
    if end < 0:
        return None
    found = _LENGTH.search(bytes(received[: end + 2]))
    return None if found is None else end + len(_HEAD_END) + int(found[1])


class _Received:
    """What was received, as :class:`http.client.HTTPResponse` reads it."""

    def __init__(self, received: bytes) -> None:
        self._received = received

    def makefile(self, _: str) -> io.BytesIO:
        return io.BytesIO(self._received)


def _response(received: bytes) -> tuple[int, bytes]:
    """Return status and body of a response; raises CutResponseError if it is not complete."""
    if _HEAD_END not in received:  # http.client takes a head that was cut for a whole one
        raise CutResponseError("the leader ended in the middle of its answer")
    response = http.client.HTTPResponse(_Received(received))  # type: ignore[arg-type]
    try:
        response.begin()
        return response.status, response.read()
    except (http.client.HTTPException, OSError) as error:
        raise CutResponseError("the leader ended in the middle of its answer") from error
