"""Somebody opens connections and leaves them idle; the kubelet is answered all the same."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections import deque
from typing import TYPE_CHECKING

import pytest

from scheduler.serving import listener as listener_module
from scheduler.serving.listener import MAX_CONNECTIONS, parse_bind_address
from scheduler.serving.options import ServingOptions
from tests.scheduler.serving.served import OwnServer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

KUBELET = "127.0.0.1"
STRANGER = "127.0.0.2"
CROWD = 16
PROBES = 15
IDLE_FOR_EACH_PROBE = 50
BETWEEN_HANDSHAKE_AND_REQUEST = 20
"""Of 500 a second: what comes in 40 ms, which is a slow kubelet."""

REQUEST = b"GET /livez HTTP/1.1\r\nHost: here\r\n\r\n"

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def anybody() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class Door:
    """A server over HTTPS, and clients with addresses of their own."""

    def __init__(self, server: OwnServer) -> None:
        self._host, self._port = parse_bind_address(server.address)
        self._tls = anybody()
        self.idle = 0

    async def connect(self, client: str) -> Streams:
        return await asyncio.open_connection(
            self._host, self._port, local_addr=(client, 0), ssl=self._tls
        )

    async def probe(self, client: str = KUBELET) -> bytes:
        """Return the status line that a connection of its own gets."""
        reader, writer = await self.connect(client)
        try:
            await self.crowded(self.idle + BETWEEN_HANDSHAKE_AND_REQUEST)
            return await ask(reader, writer)
        finally:
            writer.close()

    async def crowded(self, idle: int) -> None:
        """Wait until so many idle connections have been opened."""
        while self.idle < idle:  # noqa: ASYNC110 - the crowd tells nobody
            await asyncio.sleep(0)

    async def hold_idle(self, client: str, *, shakes_hands: bool) -> None:
        """Open connections for ever and say nothing; keep as many as the server does, and more."""
        loop = asyncio.get_running_loop()
        held: deque[asyncio.Transport] = deque()
        try:
            while True:
                with contextlib.suppress(OSError):  # evicted before it was established
                    transport, _ = await loop.create_connection(
                        asyncio.Protocol,
                        self._host,
                        self._port,
                        local_addr=(client, 0),
                        ssl=self._tls if shakes_hands else None,
                    )
                    held.append(transport)
                self.idle += 1
                if len(held) > 2 * MAX_CONNECTIONS:
                    held.popleft().abort()
        finally:
            for transport in held:
                transport.abort()


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    writer.write(REQUEST)
    return (await reader.readuntil(b"\r\n\r\nok"))[:15]


def play(scene: Callable[[Door], Awaitable[None]]) -> None:
    async def run() -> None:
        options = ServingOptions(bind_address="127.0.0.1", secure_port=0)
        server = OwnServer(options)
        await server.start()
        try:
            async with asyncio.timeout(120):
                await scene(Door(server))
        finally:
            await server.stop()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("client", "shakes_hands"),
    [
        pytest.param(STRANGER, False, id="sockets-that-say-nothing"),
        pytest.param(STRANGER, True, id="connections-that-ask-nothing"),
        pytest.param(KUBELET, False, id="sockets-from-the-kubelets-own-address"),
        pytest.param(KUBELET, True, id="connections-from-the-kubelets-own-address"),
    ],
)
def test_no_probe_fails_while_idle_connections_come_without_end(
    client: str, shakes_hands: bool
) -> None:
    async def scene(door: Door) -> None:
        crowd = [
            asyncio.create_task(door.hold_idle(client, shakes_hands=shakes_hands)) for _ in range(4)
        ]
        try:
            for number in range(PROBES):
                await door.crowded(MAX_CONNECTIONS + number * IDLE_FOR_EACH_PROBE)
                assert await door.probe() == b"HTTP/1.1 200 OK"
        finally:
            for task in crowd:
                task.cancel()
            await asyncio.gather(*crowd, return_exceptions=True)

    play(scene)


def test_whoever_holds_most_loses_a_connection_not_whoever_came_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(listener_module, "MAX_CONNECTIONS", 4)

    async def scene(door: Door) -> None:
        first = await door.connect(KUBELET)
        strangers = [await door.connect(STRANGER) for _ in range(4)]
        assert await strangers[0][0].read() == b""
        assert await ask(*first) == b"HTTP/1.1 200 OK"
        assert await ask(*strangers[3]) == b"HTTP/1.1 200 OK"
        for _, writer in (first, *strangers):
            writer.transport.abort()

    play(scene)


@pytest.mark.parametrize(
    ("one", "other", "are_one"),
    [
        pytest.param("10.0.0.1", "10.0.0.1", True, id="one-address"),
        pytest.param("10.0.0.1", "10.0.0.2", False, id="two-addresses"),
        pytest.param("::ffff:10.0.0.1", "10.0.0.1", True, id="ipv4-over-ipv6"),
        pytest.param("2001:db8::1", "2001:db8::ffff:1", True, id="one-ipv6-network"),
        pytest.param("2001:db8::1", "2001:db8:0:1::1", False, id="two-ipv6-networks"),
        pytest.param("fe80::1%eth0", "fe80::2", True, id="a-link-local-address-with-its-zone"),
    ],
)
def test_what_counts_as_one_client(one: str, other: str, are_one: bool) -> None:
    assert (listener_module._client(one) == listener_module._client(other)) == are_one
