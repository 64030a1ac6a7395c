"""Who may use the page: whoever knows the address that was printed, from a page of its own.

Any web page that a browser shows may send requests to a server on loopback. Three checks keep
them out:

- the first segment of every path is a random token, which no other page knows;
- the Host header has to be an address of loopback with our port: a name that another page's owner
  has pointed to 127.0.0.1 ("DNS rebinding") is refused;
- a request that does more than read needs an Origin header that is ours.

Responses forbid inline scripts and styles, all other servers, frames, and copies in caches.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

from aiohttp import hdrs, web

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from aiohttp.typedefs import Middleware

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_SAFE_METHODS: Final = frozenset({"GET", "HEAD"})

HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

FRESH_FOR_S: Final = 3600
"""How long a browser may keep a stylesheet or a script: its address has the token of this run."""


class Guard:
    """Decides which requests are answered.

    Parameters
    ----------
    port
        The port on loopback.
    token
        The first segment of every path; None for a random one.
    """

    def __init__(self, port: int, token: str | None = None) -> None:
        self.token = secrets.token_urlsafe(24) if token is None else token
        self._hosts = frozenset(f"{host}:{port}" for host in ("127.0.0.1", "localhost", "[::1]"))
        self._origins = frozenset(f"http://{host}" for host in self._hosts)

    def refusal(self, method: str, path: str, headers: Mapping[str, str]) -> tuple[int, str] | None:
        """Return the status and the text of a refusal, or None for a request to be answered."""
        if headers.get(hdrs.HOST, "").lower() not in self._hosts:
            return 421, "this server answers to its address on loopback only\n"
        segment = path.split("/", 2)[1] if path.startswith("/") else ""
        if not secrets.compare_digest(segment.encode(), self.token.encode()):
            return 403, "the address is not complete: use the one that berth ui has printed\n"
        if method in _SAFE_METHODS:
            return None
        if headers.get(hdrs.ORIGIN, "").lower() not in self._origins:
            return 403, "the request comes from another page\n"
        if headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
            return 403, "the request comes from another site\n"
        return None

    def middleware(self) -> Middleware:
        """Return what every request passes first."""

        @web.middleware
        async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
            refused = self.refusal(request.method, request.path, request.headers)
            response: web.StreamResponse
            if refused is not None:
                response = web.Response(status=refused[0], text=refused[1])
            else:
                try:
                    response = await handler(request)
                except web.HTTPException as error:
                    response = web.Response(status=error.status, text=f"{error.reason}\n")
                    response.headers.update(
                        {k: v for k, v in error.headers.items() if k in (hdrs.LOCATION, hdrs.ALLOW)}
                    )
            for name, value in HEADERS.items():
                response.headers.setdefault(name, value)
            return response

        return check
