"""Send a write until it is settled: until it is known to have taken effect, or is abandoned.

    call -> accepted                                            its result
         -> failed -> pause -> in doubt: what became of it? ->  the result of that
                                                            ->  call again, or give up

The caller defines the call, how to detect that it took effect although it failed, and when to
abandon it. Everything else about an attempt follows from its error, see
:func:`~scheduler.client.errors.classify`.
"""

from __future__ import annotations

import math
from itertools import count
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec.structs import replace

from cache.value import Value
from scheduler.client.errors import Action, ApiError, classify

if TYPE_CHECKING:
    import random
    from collections.abc import Awaitable, Callable, Collection

T = TypeVar("T")

MAX_PAUSE_S: Final = 10.0
"""A write that shall wait for longer (Retry-After) is given up: meanwhile a binding would hold its
room on the node, and a worker would keep the Events and statuses of others waiting. An API server
that shuts down asks for 5 s."""

NO_MAX_PAUSE: Final = math.inf

REFUSED: Final = "refused"
THROTTLED: Final = "throttled"
RETRIES: Final = "retries"

AGAIN: Final = frozenset({Action.RETRY, Action.SETTLE})
"""What follows from failures after which the same request may succeed."""

_IN_DOUBT: Final = frozenset({Action.SETTLE, Action.CONFLICT, Action.GONE})


class Failure(Value, frozen=True):
    """An attempt that failed.

    Attributes
    ----------
    action, delay_s
        What follows from the error.
    tries
        How many attempts were made, this one included.
    why
        Why it was the last one; empty when it was not.
    """

    error: ApiError
    action: Action
    delay_s: float
    tries: int
    why: str = ""


def why_given_up(
    failure: Failure,
    max_tries: int,
    again: Collection[Action] = AGAIN,
    max_pause_s: float = MAX_PAUSE_S,
) -> str:
    """Return why a write is not sent again after a failure; empty when it is.

    Returns
    -------
    ``refused`` when what follows from the error is not among ``again``, ``throttled`` when the
    answer asks for a pause of more than ``max_pause_s``, ``retries`` after ``max_tries``.
    """
    if failure.action not in again:
        return REFUSED
    if failure.error.retry_after_s is not None and failure.delay_s > max_pause_s:
        return THROTTLED
    return RETRIES if failure.tries >= max_tries else ""


async def settle(
    call: Callable[[], Awaitable[T]],
    gives_up: Callable[[Failure], str],
    pause: Callable[[float], Awaitable[None]],
    rng: random.Random,
    took_effect: Callable[[Failure], Awaitable[T | None]] | None = None,
) -> T | Failure:
    """Send a write until it is settled.

    Parameters
    ----------
    call
        Makes one attempt.
    gives_up
        Returns why the write is not sent again after a failure; empty when it is. See
        :func:`why_given_up`.
    pause
        Waits before the next attempt, or before it is asked what became of this one.
    rng
        Jitter of the pauses.
    took_effect
        Returns the result of a write that failed and may have taken effect all the same, or None
        when it did not; asked of failures in doubt (no answer, conflict, not found), of the last
        one too. None where nothing is lost by writing twice.

    Returns
    -------
    What ``call`` or ``took_effect`` returned, or the last failure of a write that is given up.

    Notes
    -----
    *Concurrency*: on the I/O loop.
    """
    for tries in count(1):
        try:
            return await call()
        except ApiError as error:
            failure = Failure(error, *classify(error, tries - 1, rng), tries)
        why = gives_up(failure)
        asks = took_effect is not None and failure.action in _IN_DOUBT
        if failure.delay_s and (asks or not why):
            await pause(failure.delay_s)
        if asks and took_effect is not None:
            result = await took_effect(failure)
            if result is not None:
                return result
        if why:
            return replace(failure, why=why)
    raise AssertionError("count() has no end")
