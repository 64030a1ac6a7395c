"""The refusals of questions, as responses in the form of the API server's errors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import structlog
from aiohttp import hdrs

from scheduler.client.errors import ApiError
from scheduler.serving.access import status_response

if TYPE_CHECKING:
    from aiohttp import web

    from scheduler.serving.server import UserHandler, Visitor

NOT_LEADING: Final = "NotLeading"
"""The reason in the response of a replica that does not lead: the client asks the leader."""

log = structlog.get_logger(__name__)


class RefusedError(Exception):
    """A question gets no answer.

    Attributes
    ----------
    status, reason
        Of HTTP, and a word for programs.
    retry_after_s
        When it may be asked again; 0 for no such time.
    """

    def __init__(self, status: int, reason: str, message: str, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.retry_after_s = retry_after_s


def not_leading() -> RefusedError:
    """Return the refusal of a replica that does not lead."""
    return RefusedError(503, NOT_LEADING, "this replica does not schedule: ask the leader")


def bad_question(message: str) -> RefusedError:
    """Return the refusal of a question that has a mistake."""
    return RefusedError(400, "BadRequest", message)


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
