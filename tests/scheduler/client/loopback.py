"""HTTP servers on the loopback interface, one that behaves and one that does not; a way to them."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import msgspec
from aiohttp import web

from scheduler.client.auth_source import StaticAuth
from scheduler.client.credentials import Credentials
from scheduler.client.transport import Bounds, Transport

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Received:
    """A request as it arrived."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    peer: object


class Loopback:
    """A well-behaved server whose answers come from `handler`.

    ``hang`` is for handlers that shall not answer: it waits until the server is closed.
    """

    def __init__(self, handler: Handler, ssl_context: ssl.SSLContext | None = None) -> None:
        self._handler = handler
        self._ssl_context = ssl_context
        self._closing = asyncio.Event()
        self.received: list[Received] = []
        self.url = ""

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=1 << 30)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._ssl_context)
        await site.start()
        port = self._runner.addresses[0][1]
        self.url = f"http{'s' if self._ssl_context else ''}://127.0.0.1:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closing.set()
        await self._runner.cleanup()

    async def hang(self) -> None:
        await self._closing.wait()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        assert request.transport is not None
        peer = request.transport.get_extra_info("peername")
        self.received.append(
            Received(request.method, request.path_qs, request.headers.copy(), body, peer)
        )
        return await self._handler(request)


class RawServer:
    """A server that answers each connection's first request with `answers`, byte for byte.

    The connection is closed after the last answer, unless `keep_open`.
    """

    def __init__(self, *answers: bytes, keep_open: bool = False) -> None:
        self._answers = list(answers)
        self._keep_open = keep_open
        self._closing = asyncio.Event()
        self.connections = 0
        self.url = ""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closing.set()
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            for answer in self._answers:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(answer)
                await writer.drain()
            if self._keep_open:
                await self._closing.wait()
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


def json_answer(value: Any, status: int = 200, **headers: str) -> web.Response:
    return web.Response(
        body=msgspec.json.encode(value),
        status=status,
        content_type="application/json",
        headers=headers,
    )


def status_answer(
    code: int, reason: str, message: str, *, details: Any = None, **headers: str
) -> web.Response:
    """Return the API server's Status object for a refusal."""
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "details": details or {},
        "code": code,
    }
    return json_answer(body, code, **headers)


@contextlib.asynccontextmanager
async def transport_to(url: str, **options: Any) -> AsyncIterator[Transport]:
    """Open a transport to `url`, and close it."""
    credentials = options.pop("credentials", None) or Credentials(
        url, source=StaticAuth("Bearer token"), tls=options.pop("tls", None)
    )
    named = {"max_connections": "connections", "max_body_bytes": "body_bytes"}
    bounds = {field: options.pop(name) for name, field in named.items() if name in options}
    transport = Transport(credentials, user_agent="berth/test", bounds=Bounds(**bounds), **options)
    try:
        yield transport
    finally:
        await transport.close()


async def until(condition: Callable[[], object]) -> None:
    """Let the loop turn until `condition` holds; whoever runs the loop has the deadline."""
    while not condition():  # noqa: ASYNC110 - whatever is awaited here has no event to wait for
        await asyncio.sleep(0)


async def ok(request: web.Request) -> web.Response:
    return json_answer({"kind": "Pod"})


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
