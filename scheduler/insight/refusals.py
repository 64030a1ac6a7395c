"""Turns refusals of questions into responses in the form of the API server's errors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import structlog
from aiohttp import hdrs

from scheduler.client.errors import ApiError
from scheduler.insight.refused import RefusedError
from scheduler.serving.access import status_response

if TYPE_CHECKING:
    from aiohttp import web

    from scheduler.serving.server import UserHandler, Visitor

log = structlog.get_logger(__name__)


def with_refusals(handler: UserHandler) -> UserHandler:
    """Return a handler that turns refusals, and an API server that does not say, into responses."""

    async def serve(request: web.Request, visitor: Visitor) -> web.StreamResponse:
        try:
            return await handler(request, visitor)
        except RefusedError as error:
            response = status_response(error.status, error.reason, str(error))
            if error.retry_after_s:
                response.headers[hdrs.RETRY_AFTER] = str(math.ceil(error.retry_after_s))
            return response
        except ApiError as error:
            log.error("access review failed", user=visitor.user.username, error=str(error))
            return status_response(500, "InternalError", "authorization check failed")

    return serve
