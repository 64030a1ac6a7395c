"""Convert a response that is not a success into an error.

The API server describes an error in a Status object; a gateway before it sends a page of HTML, or
no body. Either becomes an :class:`~scheduler.client.errors.ApiError`.

*Source*: apimachinery 1.36, pkg/apis/meta/v1/types.go, Status and StatusReason.
"""

from __future__ import annotations

import datetime as dt
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

import msgspec

from scheduler.client.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_REFUSAL_BYTES: Final = 64 << 10
"""What is looked at of the body."""

_MAX_CAUSES: Final = 8

READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing, so that their outcome cannot be in doubt."""


class _StatusCause(msgspec.Struct, frozen=True):
    reason: str | None = None


class _StatusDetails(msgspec.Struct, frozen=True):
    causes: tuple[_StatusCause, ...] | None = None
    retry_after_seconds: int | None = msgspec.field(default=None, name="retryAfterSeconds")


class _Status(msgspec.Struct, frozen=True):
    kind: str | None = None
    message: str | None = None
    reason: str | None = None
    details: _StatusDetails | None = None


_STATUS_DECODER: Final = msgspec.json.Decoder(_Status)


def read_refusal(
    method: str, path: str, status: int, headers: Mapping[str, str], body: bytes
) -> ApiError:
    """Make the error of an answer that is not a success."""
    body = body[:MAX_REFUSAL_BYTES]
    try:
        stated = _STATUS_DECODER.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # A gateway's page, not the API server's Status.
        stated = _Status(message=body.decode("utf-8", "replace").strip())
    retry_after_s = _retry_after_s(headers.get("Retry-After"))
    if retry_after_s is None and stated.details is not None:
        seconds = stated.details.retry_after_seconds
        retry_after_s = float(seconds) if seconds is not None and seconds > 0 else None
    causes = () if stated.details is None else stated.details.causes or ()
    reasons = tuple(each.reason for each in causes[:_MAX_CAUSES] if each.reason)
    return ApiError(
        status,
        stated.reason or _REASONS.get(status, "Unknown"),
        stated.message or "the server gave no message",
        retry_after_s=retry_after_s,
        # A 5xx can be the storage's timeout behind a write that went through, or a gateway's.
        ambiguous=status >= 500 and method not in READS,
        causes=reasons if stated.kind == "Status" else None,
    ).about(method, path)


_REASONS: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Expired",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


def _retry_after_s(value: str | None) -> float | None:
    if not value:
        return None
    value = value.strip()
    if value.isdecimal() and len(value) < 10:
        return float(value)
    try:
        at = parsedate_to_datetime(value)
    except ValueError:
        return None
    if at.tzinfo is None:
        at = at.replace(tzinfo=dt.UTC)
    return max(0.0, (at - dt.datetime.now(dt.UTC)).total_seconds())
