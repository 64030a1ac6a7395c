"""Serve the HTTP endpoints for the kubelet, Prometheus and people: health, metrics, state.

    GET /livez /readyz /healthz [?verbose] [&exclude=name]     200, or 500 with what is wrong
    GET /livez/name ...                                        one check
    GET /metrics                                               Prometheus text, or OpenMetrics
    pages of others, by path

Requests, connections and their time are bounded, and nothing that a client sends is kept. Over
TLS everything but the open paths needs a token and a permission; over plain text, which has to be
enabled, every client gets a response.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import structlog
from aiohttp import hdrs, web

from scheduler.serving.access import Access
from scheduler.serving.certificate import SelfMadeCertificate
from scheduler.serving.health import add_health

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from aiohttp.typedefs import Middleware

    from scheduler.metrics import Metrics
    from scheduler.serving.access_reviews import Reviews
    from scheduler.serving.health import Health
    from scheduler.serving.listener import Listener
    from scheduler.serving.options import ServingOptions

    Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]

_IDLE_S: Final = 30.0
"""For a request to arrive whole, and between two on one connection."""

_REQUEST_S: Final = 10.0
_MAX_HEAD_LINE_BYTES: Final = 8_190
_MAX_BODY_BYTES: Final = 1_024
_GRACE_S: Final = 2.0

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Page:
    """What else is served: one method of one path."""

    method: str
    path: str
    handler: Handler
    limit_s: float = _REQUEST_S
    """How long it may take."""


class Server:
    """Serves health, metrics and pages.

    Parameters
    ----------
    options
        To whom.
    listeners
        Where.
    metrics
        Rendered on a thread of its own, so that a scrape does not hold up the loop.
    health
        What has to be well.
    reviews
        Who may read over HTTPS; with None nobody may read more than the open paths.
    pages
        Everything else.

    Notes
    -----
    *Concurrency*: loop-confined.
    """

    def __init__(
        self,
        options: ServingOptions,
        listeners: Sequence[Listener],
        metrics: Metrics,
        health: Health,
        *,
        reviews: Reviews | None = None,
        pages: Sequence[Page] = (),
    ) -> None:
        self._metrics = metrics
        # One scrape at a time: more of them would only take the interpreter from each other.
        self._rendering = asyncio.Lock()
        self._endpoints: list[tuple[Listener, web.AppRunner]] = []
        limits_s = {page.path: page.limit_s for page in pages}
        for listener in listeners:
            gate = Access(reviews, options) if listener.is_secure else None
            app = web.Application(
                middlewares=[_turnstile(gate, limits_s)], client_max_size=_MAX_BODY_BYTES
            )
            for name in ("livez", "healthz"):
                told = {
                    check: detail
                    for check, detail in health.details.items()
                    if gate is None or not gate.is_open(f"/{name}/{check}")
                }
                add_health(app, name, health.liveness, told)
            add_health(app, "readyz", health.readiness, {})
            app.router.add_get("/metrics", self._serve_metrics)
            for page in pages:
                app.router.add_route(page.method, page.path, page.handler)
            self._endpoints.append((listener, _runner(app)))
            if listener.is_secure and listener.certificate is None:
                listener.certificate = SelfMadeCertificate([options.bind_address])

    async def start(self) -> None:
        """Listen.

        Raises
        ------
        ServerError
            The port is taken, or the host is not one of this machine's.
        """
        for listener, runner in self._endpoints:
            listener.listen()
            await runner.setup()
            server = runner.server
            assert server is not None  # noqa: S101 - setup() has made it
            listener.start(server)

    async def stop(self) -> None:
        """Stop listening, let the requests under way end, and close all connections."""
        for listener, runner in self._endpoints:
            await listener.stop()
            await runner.cleanup()

    async def _serve_metrics(self, request: web.Request) -> web.Response:
        async with self._rendering:
            body, content_type = await asyncio.to_thread(
                self._metrics.render, request.headers.get(hdrs.ACCEPT, "")
            )
        return web.Response(body=body, headers={hdrs.CONTENT_TYPE: content_type})


def _runner(app: web.Application) -> web.AppRunner:
    return web.AppRunner(
        app,
        access_log=None,
        keepalive_timeout=_IDLE_S,
        lingering_time=0,
        max_line_size=_MAX_HEAD_LINE_BYTES,
        max_field_size=_MAX_HEAD_LINE_BYTES,
        shutdown_timeout=_GRACE_S,
    )


def _turnstile(gate: Access | None, limits_s: Mapping[str, float]) -> Middleware:
    """Return what every request goes through: its time is bounded, and not everybody may pass."""

    @web.middleware
    async def serve(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            async with asyncio.timeout(limits_s.get(request.path, _REQUEST_S)):
                refusal = None if gate is None else await gate.refusal(request)
                return await handler(request) if refusal is None else refusal
        except TimeoutError:
            return web.Response(status=503, text="too busy\n")

    return serve
