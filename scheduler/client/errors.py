"""Describe the failures of a request, and classify how to react to each.

A failure is a value with four facts (status, reason, Retry-After, and whether a write may have
been carried out all the same). One pure function, :func:`classify`, decides what follows from
them, so that binds, status patches, Events and lists share one policy.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final, NamedTuple

from scheduler.process.expected_error import ExpectedError

if TYPE_CHECKING:
    import random

BACKOFF_BASE_S: Final = 0.2
BACKOFF_CAP_S: Final = 30.0
"""client-go's reflector starts at 0.8 s and ends at 30 s; a bind is worth an earlier second try."""

RETRY_AFTER_CAP_S: Final = 60.0
"""A server, or a proxy before it, that asks for an hour shall not get it."""

MESSAGE_LIMIT: Final = 2048
"""Characters of a server's message that are kept: it may quote a whole object."""


_FROM_ADMISSION: Final = ("admission webhook ", "failed calling webhook ", "AdmissionPolicy '")


class ClientConfigError(ExpectedError):
    """The way to the API server is wrong or missing; the message is one sentence for a person."""


class ApiError(Exception):
    """A request failed; of what was sent nothing else is known than what stands here.

    Attributes
    ----------
    status
        HTTP status, or None when no answer came.
    reason
        The API's machine-readable reason (``"Conflict"``), or one of ours for what the API has
        no word for: ``"Unreachable"``, ``"Disconnected"``, ``"Timeout"``, ``"ResponseTooLarge"``,
        ``"Fenced"``, ``"BadResponse"``, ``"Credentials"``.
    message
        For people; cut at `MESSAGE_LIMIT` characters.
    retry_after_s
        Seconds that the server asked to be left alone, or None.
    ambiguous
        True for a write that may or may not have been carried out. Always False for a read.
    method, path
        The request, without its query.
    causes
        Machine-readable reasons of the details (``"NamespaceTerminating"``), at most a few; None
        unless the answer was a Status object.
    """

    def __init__(
        self,
        status: int | None,
        reason: str,
        message: str,
        *,
        retry_after_s: float | None = None,
        ambiguous: bool = False,
        causes: tuple[str, ...] | None = None,
    ) -> None:
        if len(message) > MESSAGE_LIMIT:
            message = message[:MESSAGE_LIMIT] + "..."
        super().__init__(status, reason, message)
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after_s = retry_after_s
        self.ambiguous = ambiguous
        self.method = ""
        self.path = ""
        self.causes = causes

    def about(self, method: str, path: str) -> ApiError:
        """Note which request failed, and return the error."""
        self.method, self.path = method, path
        return self

    @property
    def is_explained(self) -> bool:
        """Whether the answer was a Status object: the API server made it, or what it asked did."""
        return self.causes is not None

    @property
    def is_namespace_terminating(self) -> bool:
        """Whether it was refused because the namespace is being deleted.

        *Source*: k8s.io/api/core/v1/types.go, NamespaceTerminatingCause (1.36).
        """
        return "NamespaceTerminating" in (self.causes or ())

    @property
    def is_from_admission(self) -> bool:
        """Whether an admission webhook or policy refused it, or could not be asked.

        Then a 403 says nothing of our rights. Source: k8s.io/apiserver/pkg/admission/plugin (0.36),
        webhook/errors/statuserror.go and policy/validating.
        """
        return any(each in self.message for each in _FROM_ADMISSION)

    @property
    def is_another_object(self) -> bool:
        """Whether the UID was refused: the object was made again under its name.

        A patch with another UID than the object's is no conflict to kube-apiserver 1.36 but an
        attempt to change what is immutable.
        """
        return self.status == 422 and "metadata.uid" in self.message

    def __str__(self) -> str:
        request = f"{self.method} {self.path}: " if self.method else ""
        status = f"{self.status} " if self.status is not None else ""
        return f"{request}{status}{self.reason}: {self.message}"


class Action(enum.Enum):
    """What is to be done after a failed request."""

    RETRY = "retry"
    """It was not carried out and may succeed later: send it again after the delay."""

    SETTLE = "settle"
    """Nobody knows whether it was carried out: after the delay a GET decides, nothing else."""

    GONE = "gone"
    """What it was about no longer exists (404; or 422, for its UID), or no longer in that version
    (410)."""

    CONFLICT = "conflict"
    """The object is not what we thought: another UID, already bound, already there (409)."""

    FORBIDDEN = "forbidden"
    """We are not allowed to, or not known (403, 401): say it loudly, try again after the delay."""

    GIVE_UP = "give_up"
    """The same request will fail again in the same way."""


class Verdict(NamedTuple):
    """An action and the seconds to wait before it."""

    action: Action
    delay_s: float


# 408, 425: the server did not take the request up. 429: priority and fairness refused it.
_NOT_CARRIED_OUT: Final = frozenset({408, 425, 429})
_WORTH_A_RETRY: Final = frozenset(
    {"Unreachable", "Disconnected", "Timeout", "BadResponse", "Credentials"}
)


def may_pass(error: ApiError) -> bool:
    """Return whether the same request may succeed later."""
    return _action_after(error) in (Action.RETRY, Action.SETTLE)


def classify(error: ApiError, attempt: int, rng: random.Random) -> Verdict:
    """Say what follows from `error`, the failure number `attempt` (from 0) of one request.

    Parameters
    ----------
    attempt
        How often this request has failed before, 0 for the first failure. The delay doubles with
        it, from `BACKOFF_BASE_S` to `BACKOFF_CAP_S`, half of it random.
    rng
        Where the random half comes from.

    Returns
    -------
    Verdict
        With a delay of 0 for GONE, CONFLICT and GIVE_UP. A Retry-After is a lower bound of the
        delay, itself bounded by `RETRY_AFTER_CAP_S`.
    """
    action = _action_after(error)
    if action in (Action.GONE, Action.CONFLICT, Action.GIVE_UP):
        return Verdict(action, 0.0)
    return Verdict(action, _delay_s(error, attempt, rng))


def _action_after(error: ApiError) -> Action:
    status = error.status
    if error.ambiguous:
        return Action.SETTLE
    if status is None:
        return Action.RETRY if error.reason in _WORTH_A_RETRY else Action.GIVE_UP
    if status in (404, 410) or error.is_another_object:
        return Action.GONE
    if status == 409:
        return Action.CONFLICT
    if status in (401, 403):
        return Action.FORBIDDEN
    return Action.RETRY if status in _NOT_CARRIED_OUT or status >= 500 else Action.GIVE_UP


def backoff_s(attempt: int, rng: random.Random) -> float:
    """Return seconds to wait after failure number `attempt` (from 0): doubling, half random."""
    # The exponent is bounded because 2.0 ** 2000 is an OverflowError.
    step = min(BACKOFF_BASE_S * 2.0 ** min(attempt, 32), BACKOFF_CAP_S)
    return step * (0.5 + 0.5 * rng.random())


def as_asked_s(delay_s: float, retry_after_s: float | None, rng: random.Random) -> float:
    """Return a delay that is at least the Retry-After, up to `RETRY_AFTER_CAP_S`."""
    if retry_after_s is None:
        return delay_s
    # Jitter on top, never below: all clients that were sent away were told the same second.
    return max(delay_s, min(retry_after_s, RETRY_AFTER_CAP_S) * (1.0 + 0.1 * rng.random()))


def _delay_s(error: ApiError, attempt: int, rng: random.Random) -> float:
    return as_asked_s(backoff_s(attempt, rng), error.retry_after_s, rng)
