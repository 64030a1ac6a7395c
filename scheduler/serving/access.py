"""Authenticate and authorize requests through the API server, and cache its answers.

A user is known by a front proxy, by a client certificate, or by a token, in this order: see
:mod:`scheduler.serving.client_certificates`. A name in a header alone means nothing.

# Differs: kube-scheduler treats a request without any of these as one of ``system:anonymous`` and
# responds with 403. Here the response is 401.

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

    from scheduler.serving.access_reviews import ResourceRight, Reviews, User
    from scheduler.serving.client_certificates import ClientCertificates

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
    certificates
        Knows the users of client certificates and of the front proxy; None where nobody does.

    Notes
    -----
    *Concurrency*: loop-confined.
    """

    def __init__(
        self,
        reviews: Reviews | None,
        options: ServingOptions | None = None,
        certificates: ClientCertificates | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        options = options or ServingOptions()
        self._reviews = reviews
        self._certificates = certificates
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
        user = await self.user_of(request)
        reviews = self._reviews
        if user is None or reviews is None:
            return unauthorized()
        try:
            is_allowed = await self._rights.get(
                msgspec.json.encode((user, verb, path)),
                lambda: reviews.is_allowed(user, verb, path),
            )
        except ApiError as error:
            log.error("access review failed", user=user.username, path=path, error=str(error))
            return status_response(500, "InternalError", "authorization check failed")
        if is_allowed:
            return None
        log.warning("request refused", user=user.username, verb=verb, path=path)
        return status_response(
            403, "Forbidden", f'forbidden: User "{user.username}" cannot {verb} path "{path}"'
        )

    async def user_of(self, request: web.Request) -> User | None:
        """Return the user who sent a request, or None if nobody has proved to be one."""
        if self._certificates is not None:
            user = self._certificates.user_of(request)
            if user is not None:
                return user
        token = bearer_token(request.headers.get(hdrs.AUTHORIZATION, ""))
        reviews = self._reviews
        if not token or reviews is None:
            return None
        try:
            return await self._users.get(self._disguised(token), lambda: reviews.user_of(token))
        except ApiError as error:
            log.error("token review failed", error=str(error))
            return None

    async def may(self, user: User, right: ResourceRight) -> bool:
        """Return whether a user has a right to a resource of the API.

        Raises
        ------
        ApiError
            The API server does not say.
        """
        reviews = self._reviews
        if reviews is None:
            return False
        key = msgspec.json.encode((user, right))
        return await self._rights.get(key, lambda: reviews.may(user, right))

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


def unauthorized() -> web.Response:
    """Return the response to somebody who is nobody."""
    answer = status_response(401, "Unauthorized", "Unauthorized")
    answer.headers[hdrs.WWW_AUTHENTICATE] = "Bearer"
    return answer


def status_response(code: int, reason: str, message: str) -> web.Response:
    """Return a response in the form of the API server's errors."""
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
