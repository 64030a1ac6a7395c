"""Authenticate and authorize requests through the API server, and cache its answers.

# Differs: kube-scheduler treats a request without a token as one of ``system:anonymous`` and
# responds with 403; it supports client certificates and front proxies too. Here a token is the only
# way to authenticate, and without one the response is 401.

*Source*: k8s.io/apiserver pkg/endpoints/filters/{authentication,authorization}.go and
pkg/authentication/token/cache (0.36).
"""

from __future__ import annotations

import hashlib
import os
import time
from typing import TYPE_CHECKING, Final

import msgspec
import structlog
from aiohttp import hdrs, web

from scheduler.client.errors import ApiError
from scheduler.serving.expiring_answers import Answers
from scheduler.serving.options import ServingOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from scheduler.serving.access_reviews import Reviews, User

MAX_ANSWERS: Final = 8_192
"""Of tokens, and of rights. Source: plugin/pkg/authorizer/webhook/webhook.go, for rights."""

log = structlog.get_logger(__name__)


class Access:
    """Lets requests in or turns them away.

    Parameters
    ----------
    reviews
        Knows who has which token and who may do what; with None nobody has any.
    options
        Which paths are open, and how long answers hold.

    Notes
    -----
    *Concurrency*: loop-confined.
    """

    def __init__(
        self,
        reviews: Reviews | None,
        options: ServingOptions | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        options = options or ServingOptions()
        self._reviews = reviews
        self._open = options.always_allowed_paths
        self._users: Answers[User | None] = Answers(
            MAX_ANSWERS, lambda _: options.token_ttl_s, clock
        )
        self._rights: Answers[bool] = Answers(
            MAX_ANSWERS,
            lambda allowed: options.allowed_ttl_s if allowed else options.refused_ttl_s,
            clock,
        )
        self._secret = os.urandom(32)

    async def refusal(self, request: web.Request) -> web.Response | None:
        """Return the answer to somebody who may not do what they ask; None to go on."""
        path, verb = request.path, request.method.lower()
        if self.is_open(path):
            return None
        token = bearer_token(request.headers.get(hdrs.AUTHORIZATION, ""))
        reviews = self._reviews
        if not token or reviews is None:
            return _unauthorized()
        try:
            user = await self._users.get(self._disguised(token), lambda: reviews.user_of(token))
        except ApiError as error:
            log.error("token review failed", error=str(error))
            return _unauthorized()
        if user is None:
            return _unauthorized()
        try:
            is_allowed = await self._rights.get(
                msgspec.json.encode((user, verb, path)),
                lambda: reviews.is_allowed(user, verb, path),
            )
        except ApiError as error:
            log.error("access review failed", user=user.username, path=path, error=str(error))
            return _status(500, "InternalError", "authorization check failed")
        if is_allowed:
            return None
        log.warning("request refused", user=user.username, verb=verb, path=path)
        return _status(
            403, "Forbidden", f'forbidden: User "{user.username}" cannot {verb} path "{path}"'
        )

    def _disguised(self, token: str) -> bytes:
        """Return what stands for a token: nobody shall find one in our memory."""
        return hashlib.blake2b(token.encode("utf-8", "surrogateescape"), key=self._secret).digest()

    def is_open(self, path: str) -> bool:
        """Tell whether a path needs no token."""
        return any(
            path.startswith(each[:-1]) if each.endswith("*") else path == each
            for each in self._open
        )


def bearer_token(authorization: str) -> str:
    """Return the token in an Authorization header, or the empty string."""
    scheme, _, token = authorization.strip().partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _unauthorized() -> web.Response:
    answer = _status(401, "Unauthorized", "Unauthorized")
    answer.headers[hdrs.WWW_AUTHENTICATE] = "Bearer"
    return answer


def _status(code: int, reason: str, message: str) -> web.Response:
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
    return web.Response(
        status=code, body=msgspec.json.encode(body), content_type="application/json"
    )
