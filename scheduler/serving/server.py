"""Serve the HTTP endpoints for the kubelet, Prometheus and people: health, metrics, state.

    GET /livez /readyz /healthz [?verbose] [&exclude=name]     200, or 500 with what is wrong
    GET /livez/name ...                                        one check
    GET /metrics                                               Prometheus text, or OpenMetrics
    pages of others, by path

Requests, connections and their time are bounded, and nothing that a client sends is kept. Over
TLS everything but the open paths needs a proof of identity and a permission; over plain text, which
has to be enabled, every client gets a response. A :class:`UserPage` decides for itself what each
user may see, and is served over TLS only.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import structlog
from aiohttp import hdrs, web

from scheduler.client.errors import ApiError
from scheduler.process.periodic_task import PeriodicTask
from scheduler.serving.access import Access, unauthorized
from scheduler.serving.access_reviews import ResourceRight
from scheduler.serving.certificate import SelfMadeCertificate
from scheduler.serving.client_certificates import Authorities, ClientCertificates
from scheduler.serving.health import add_health

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Container, Mapping, Sequence

    from aiohttp.typedefs import Middleware

    from scheduler.metrics import Metrics
    from scheduler.serving.access_reviews import Reviews, User
    from scheduler.serving.health import Health
    from scheduler.serving.listener import Listener
    from scheduler.serving.options import ServingOptions

    Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]
    UserHandler: TypeAlias = Callable[[web.Request, "Visitor"], Awaitable[web.StreamResponse]]

_IDLE_S: Final = 30.0
"""For a request to arrive whole, and between two on one connection."""

_REQUEST_S: Final = 10.0
_MAX_HEAD_LINE_BYTES: Final = 8_190
_MAX_BODY_BYTES: Final = 1_024
_GRACE_S: Final = 2.0

_AUTHORITIES_S: Final = 60.0
"""How often the authorities of client certificates are read again."""

_FIRST_AUTHORITIES_S: Final = 2.0
"""How long the first request may have to wait for them."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Page:
    """What else is served: one method of one path."""

    method: str
    path: str
    handler: Handler
    limit_s: float = _REQUEST_S
    """How long it may take."""


class Visitor:
    """A user who has proved who they are.

    Attributes
    ----------
    user
        The user, as the API server knows them.

    Notes
    -----
    *Concurrency*: loop-confined.
    """

    def __init__(self, user: User, access: Access) -> None:
        self.user = user
        self._access = access

    async def may(
        self, verb: str, resource: str, *, group: str = "", namespace: str = "", name: str = ""
    ) -> bool:
        """Return whether the user may do this; without a namespace, in all of them.

        Raises
        ------
        ApiError
            The API server does not say.
        """
        right = ResourceRight(verb, resource, group, namespace, name)
        return await self._access.may(self.user, right)


@dataclass(frozen=True, slots=True)
class UserPage:
    """A page that decides itself what a user may see: one method of one path."""

    method: str
    path: str
    handler: UserHandler
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
        pages: Sequence[Page | UserPage] = (),
    ) -> None:
        self._metrics = metrics
        self._reviews = reviews
        self._certificates = ClientCertificates()
        self._authorities = PeriodicTask(self._follow_authorities)
        self._has_no_authorities = False
        # One scrape at a time: more of them would only take the interpreter from each other.
        self._rendering = asyncio.Lock()
        self._endpoints: list[tuple[Listener, web.AppRunner]] = []
        limits_s = {page.path: page.limit_s for page in pages}
        for listener in listeners:
            gate = None
            if listener.is_secure:
                gate = Access(reviews, options, self._certificates)
            own = {page.path for page in pages if isinstance(page, UserPage)}
            app = web.Application(
                middlewares=[_turnstile(gate, limits_s, own)], client_max_size=_MAX_BODY_BYTES
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
                if isinstance(page, Page):
                    app.router.add_route(page.method, page.path, page.handler)
                elif gate is not None:
                    app.router.add_route(page.method, page.path, _for_users(gate, page.handler))
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
        if self._reviews is not None and any(each.is_secure for each, _ in self._endpoints):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_FIRST_AUTHORITIES_S):
                    await self._follow_authorities()
            self._authorities.start(_AUTHORITIES_S)
        for listener, runner in self._endpoints:
            listener.listen()
            await runner.setup()
            server = runner.server
            assert server is not None  # noqa: S101 - setup() has made it
            listener.start(server)

    async def stop(self) -> None:
        """Stop listening, let the requests under way end, and close all connections."""
        await self._authorities.stop()
        for listener, runner in self._endpoints:
            await listener.stop()
            await runner.cleanup()

    async def _follow_authorities(self) -> float:
        """Read who signs client certificates, and ask for these; keep what was read if it fails."""
        assert self._reviews is not None  # noqa: S101 - see start()
        try:
            found = Authorities.of(await self._reviews.authorities())
        except ApiError as error:
            if not self._has_no_authorities:
                log.warning("client certificates cannot be used", error=str(error))
            self._has_no_authorities = True
            return _AUTHORITIES_S
        self._has_no_authorities = False
        self._certificates.trust(found)
        for listener, _ in self._endpoints:
            if listener.certificate is not None:
                listener.certificate.ask_clients(found.pem())
        return _AUTHORITIES_S

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


def _for_users(gate: Access, handler: UserHandler) -> Handler:
    async def serve(request: web.Request) -> web.StreamResponse:
        user = await gate.user_of(request)
        return unauthorized() if user is None else await handler(request, Visitor(user, gate))

    return serve


def _turnstile(
    gate: Access | None, limits_s: Mapping[str, float], own: Container[str]
) -> Middleware:
    """Return what every request goes through: its time is bounded, and not everybody may pass."""

    @web.middleware
    async def serve(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            async with asyncio.timeout(limits_s.get(request.path, _REQUEST_S)):
                refusal = None
                if gate is not None and request.path not in own:
                    refusal = await gate.refusal(request)
                return await handler(request) if refusal is None else refusal
        except TimeoutError:
            return web.Response(status=503, text="too busy\n")

    return serve
