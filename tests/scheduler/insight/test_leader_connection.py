"""Responses over a connection that is kept: real TLS over loopback."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest

from scheduler.client.credentials import Credentials
from scheduler.insight import leader_connection
from scheduler.insight.leader_connection import (
    MAX_IDLE,
    CutResponseError,
    IdleConnections,
    LeaderConnection,
    _response,
)
from scheduler.insight.port_forward import SecureTunnel, TunnelError
from scheduler.serving.certificate import SelfMadeCertificate
from tests.scheduler.insight.test_leader_certificate import Wire

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

CERTIFICATE = SelfMadeCertificate()
LIMIT = 1 << 20
WHOLE = b'HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{"a": "bcde"'
NO_LENGTH = b'HTTP/1.1 200 OK\r\n\r\n{"a": "bcde"'
CLOSING = b'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 12\r\n\r\n{"a": "bcde"'
BODY = b'{"a": "bcde"'


def play(scene: Callable[[Callable[[], Awaitable[LeaderConnection]]], Any], *said: bytes) -> Any:
    """Connect to a server that gives these responses, one for each request, and ends then."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for response in said:
            if not await reader.read(1 << 16):
                break
            writer.write(response)
            await writer.drain()
        writer.close()

    async def main() -> Any:
        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=CERTIFICATE.context())
        context = Credentials("https://127.0.0.1").context_for(certificate=CERTIFICATE.pem)
        async with AsyncExitStack() as writers, asyncio.timeout(30):

            async def connect() -> LeaderConnection:
                reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
                writers.callback(writer.close)
                tunnel = SecureTunnel(Wire(reader, writer), context)  # type: ignore[arg-type]
                await tunnel.handshake()
                return LeaderConnection(tunnel, AsyncExitStack())

            try:
                return await scene(connect)
            finally:
                server.close()

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("response", "is_reusable"),
    [
        pytest.param(WHOLE, True, id="of known length"),
        pytest.param(NO_LENGTH, False, id="up to the end"),
        pytest.param(CLOSING, False, id="the last one"),
    ],
)
def test_what_the_connection_is_good_for_afterwards(response, is_reusable):
    async def scene(connect):
        connection = await connect()
        return await connection.ask(b"GET / HTTP/1.1\r\n\r\n", LIMIT), connection.is_reusable

    assert play(scene, response) == ((200, BODY), is_reusable)


def test_one_question_after_another():
    async def scene(connect):
        connection = await connect()
        return [await connection.ask(b"GET / HTTP/1.1\r\n\r\n", LIMIT) for _ in range(3)]

    assert play(scene, WHOLE, WHOLE, WHOLE) == [(200, BODY)] * 3


@pytest.mark.parametrize(
    ("response", "error"),
    [
        pytest.param(WHOLE[:-1], CutResponseError, id="in its body"),
        pytest.param(WHOLE[:20], CutResponseError, id="in its head"),
        pytest.param(b"", CutResponseError, id="before it"),
        pytest.param(NO_LENGTH + b" " * LIMIT, TunnelError, id="never"),
    ],
)
def test_a_response_that_ends_elsewhere(response, error):
    async def scene(connect):
        connection = await connect()
        with pytest.raises(error):
            await connection.ask(b"GET / HTTP/1.1\r\n\r\n", LIMIT)
        return connection.is_reusable

    assert play(scene, response) is False


def test_a_whole_response_is_read():
    assert _response(WHOLE) == (200, BODY)


@pytest.mark.parametrize("length", range(len(WHOLE)))
def test_a_response_that_is_cut_anywhere(length):
    with pytest.raises(CutResponseError):
        _response(WHOLE[:length])


def test_only_some_connections_are_kept_and_the_last_used_is_taken_first():
    async def scene(connect):
        idle, made = IdleConnections(), [await connect() for _ in range(MAX_IDLE + 1)]
        for each in made:
            await idle.put(each)
        taken = [await idle.take() for _ in made]
        return [each and made.index(each) for each in taken], made[-1].is_reusable

    assert play(scene, WHOLE) == ([*reversed(range(MAX_IDLE)), None], False)


def test_a_connection_that_was_idle_for_long_is_not_used(monkeypatch):
    monkeypatch.setattr(leader_connection, "IDLE_S", 0.0)

    async def scene(connect):
        idle = IdleConnections()
        await idle.put(await connect())
        return await idle.take()

    assert play(scene, WHOLE) is None
