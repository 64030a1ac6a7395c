"""What the transport raises, made the way in which the transport makes it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from scheduler.client.errors import ApiError
from scheduler.client.refusal import READS, read_refusal

if TYPE_CHECKING:
    from collections.abc import Mapping


def refusal(
    method: str,
    status: int | None,
    message: str = "because",
    *,
    reason: str = "Why",
    details: Mapping[str, Any] | None = None,
) -> ApiError:
    """Return the error of a request that was answered with a Status, or, without one, never sent.

    A write that was answered with a 5xx may have been carried out all the same.
    """
    if status is None:
        return ApiError(None, "Unreachable", message).about(method, "")
    answer = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": status,
        "reason": reason,
        "message": message,
        "details": dict(details or {}),
    }
    headers: dict[str, str] = {}
    if "retryAfterSeconds" in answer["details"]:
        headers["Retry-After"] = str(answer["details"]["retryAfterSeconds"])
    return read_refusal(method, "/api/v1/any", status, headers, json.dumps(answer).encode())


def lost(method: str) -> ApiError:
    """Return the error of a request that was sent, and never answered."""
    failure = ApiError(None, "Timeout", "no answer", ambiguous=method not in READS)
    return failure.about(method, "")
