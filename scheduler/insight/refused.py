"""The refusal of a question, as an exception."""

from __future__ import annotations

from typing import Final

NOT_LEADING: Final = "NotLeading"
"""The reason in the response of a replica that does not lead: the client asks the leader."""


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
