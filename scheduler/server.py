"""The HTTP endpoints for the kubelet and for Prometheus: alive, ready, and how it fares.

    GET /livez /readyz /healthz [?verbose] [&exclude=name]     200, or 500 with what is wrong
    GET /metrics                                               Prometheus text, or OpenMetrics

Nothing here changes anything, and nothing that a client sends is kept: requests, connections and
their time are bounded.

Source: k8s.io/apiserver/pkg/server/healthz, healthz.go (1.36), for the form of the answers.
"""

from __future__ import annotations

import asyncio
import os
import socket
from typing import TYPE_CHECKING, Final, Protocol

import structlog
from aiohttp import hdrs, web

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    Check = Callable[[], str | None]

MAX_CONNECTIONS: Final = 100
"""Each costs a file descriptor, of which the binds need some too."""

_IDLE_S: Final = 30.0
"""For a request to arrive whole, and between two on one connection."""

_REQUEST_S: Final = 10.0
_MAX_HEAD_LINE_BYTES: Final = 8_190
_MAX_BODY_BYTES: Final = 1_024
_GRACE_S: Final = 2.0

log = structlog.get_logger(__name__)


class ServerError(Exception):
    """The server cannot start; the message is one sentence for a person."""


class MetricsSource(Protocol):
    """Who has the metrics."""

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """Return the metrics as text, and its content type, for an Accept header."""
        ...


class Server:
    """Serves health and metrics.

    Parameters
    ----------
    bind_address
        ``host:port``, ``[::1]:port`` or ``:port`` for all interfaces; port 0 takes a free one.
    metrics
        Rendered on a thread of its own, so that a scrape does not hold up the loop.
    readiness
        What has to be well for ``/readyz``, by name: each returns None, or what is wrong in a
        few words that anybody may read. Called on the loop; must not wait.
    liveness
        The same for ``/livez`` and ``/healthz``. That the loop answers is always checked.

    Raises
    ------
    ServerError
        `bind_address` is none.

    Notes
    -----
    *Concurrency*: loop-confined.
    """

    def __init__(
        self,
        bind_address: str,
        metrics: MetricsSource,
        *,
        readiness: Mapping[str, Check],
        liveness: Mapping[str, Check] | None = None,
    ) -> None:
        self._host, self._port = parse_bind_address(bind_address)
        self._bind_address = bind_address
        self._metrics = metrics
        # One scrape at a time: more of them would only take the interpreter from each other.
        self._rendering = asyncio.Lock()
        app = web.Application(middlewares=[_bounded], client_max_size=_MAX_BODY_BYTES)
        app.router.add_get("/livez", _health("livez", liveness or {}))
        app.router.add_get("/healthz", _health("healthz", liveness or {}))
        app.router.add_get("/readyz", _health("readyz", readiness))
        app.router.add_get("/metrics", self._serve_metrics)
        self._runner = web.AppRunner(
            app,
            access_log=None,
            keepalive_timeout=_IDLE_S,
            lingering_time=0,
            max_line_size=_MAX_HEAD_LINE_BYTES,
            max_field_size=_MAX_HEAD_LINE_BYTES,
            shutdown_timeout=_GRACE_S,
        )
        self._listener: asyncio.Server | None = None

    @property
    def address(self) -> str:
        """Where it listens, with the real port; what it was told before :meth:`start`."""
        if self._listener is None:
            return self._bind_address
        host, port = self._listener.sockets[0].getsockname()[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    async def start(self) -> None:
        """Listen.

        Raises
        ------
        ServerError
            The port is taken, or the host is not one of this machine's.
        """
        try:
            listening = _listen(self._host, self._port)
        except OSError as error:
            raise ServerError(f"cannot listen on {self._bind_address}: {_reason(error)}") from error
        await self._runner.setup()
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(self._connect, sock=listening)

    async def stop(self) -> None:
        """Stop listening, let the requests under way end, and close all connections."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        await self._runner.cleanup()

    def _connect(self) -> asyncio.Protocol:
        server = self._runner.server
        if server is None or len(server.connections) >= MAX_CONNECTIONS:
            return _Refused()
        return server()

    async def _serve_metrics(self, request: web.Request) -> web.Response:
        async with self._rendering:
            body, content_type = await asyncio.to_thread(
                self._metrics.render, request.headers.get(hdrs.ACCEPT, "")
            )
        return web.Response(body=body, headers={hdrs.CONTENT_TYPE: content_type})


def parse_bind_address(text: str) -> tuple[str, int]:
    """Return host and port of ``host:port``; the host is empty for all interfaces.

    Raises
    ------
    ServerError
        It is not of this form.
    """
    host, colon, port = text.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise ServerError(f"bind address {text!r} is not host:port with a port from 0 to 65535")
    if ":" in bare and bare == host:
        raise ServerError(f"bind address {text!r}: an IPv6 address stands in brackets")
    return bare, int(port)


def _listen(host: str, port: int) -> socket.socket:
    if not host and socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    family, _, _, _, address = socket.getaddrinfo(
        host or "0.0.0.0",  # noqa: S104 - what an empty host means
        port,
        type=socket.SOCK_STREAM,
        flags=socket.AI_PASSIVE,
    )[0]
    return socket.create_server((str(address[0]), port), family=family)


def _reason(error: OSError) -> str:
    # The numbers of gaierror are not the system's, and create_server adds the address to its text.
    if isinstance(error, socket.gaierror) or error.errno is None:
        return error.strerror or str(error)
    return os.strerror(error.errno)


class _Refused(asyncio.Protocol):
    """A connection too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


@web.middleware
async def _bounded(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    try:
        async with asyncio.timeout(_REQUEST_S):
            return await handler(request)
    except TimeoutError:
        return web.Response(status=503, text="too busy\n")


def _health(
    name: str, checks: Mapping[str, Check]
) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def serve(request: web.Request) -> web.Response:
        excluded = set(request.query.getall("exclude", ()))
        lines = ["[+]ping ok"]
        is_well = True
        for check_name, check in checks.items():
            if check_name in excluded:
                lines.append(f"[+]{check_name} excluded: ok")
                continue
            problem = _problem(check_name, check)
            is_well = is_well and problem is None
            lines.append(
                f"[+]{check_name} ok" if problem is None else f"[-]{check_name} failed: {problem}"
            )
        if is_well and "verbose" not in request.query:
            return web.Response(text="ok")
        lines.append(f"{name} check {'passed' if is_well else 'failed'}")
        return web.Response(
            status=200 if is_well else 500,
            text="\n".join(lines) + "\n",
            headers={"X-Content-Type-Options": "nosniff", hdrs.CACHE_CONTROL: "no-store"},
        )

    return serve


def _problem(name: str, check: Check) -> str | None:
    try:
        return check()
    except Exception:
        # A check that cannot answer is not well, and why not is for the log alone.
        log.exception("health check failed", check=name)
        return "the check itself failed"
