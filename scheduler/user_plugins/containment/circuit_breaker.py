"""A circuit breaker: whoever keeps failing is left alone for a while.

The table, `state, stimulus -> state`; a dot is a stimulus that cannot come:

    state        failed      tripped     due         succeeded
    closed       closed      open        .           closed
    open         .           .           half_open   .
    half_open    .           open        .           closed

    failed     a failure, of which there may still be more within the window
    tripped    a failure too many; after a half-open state each is
    due        the time to be open is over, and somebody wants to call
    succeeded  a call came back with an answer
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum
from typing import Final


class State(Enum):
    """What becomes of calls; the value is the name in the drawing, in metrics and in the log."""

    CLOSED = "closed"
    """They are made."""
    OPEN = "open"
    """They are not made."""
    HALF_OPEN = "half_open"
    """One is made, to see."""

    __hash__ = object.__hash__


class Stimulus(Enum):
    """What happens to a breaker."""

    FAILED = "failed"
    TRIPPED = "tripped"
    DUE = "due"
    SUCCEEDED = "succeeded"

    __hash__ = object.__hash__


TRANSITIONS: Final = {
    (State.CLOSED, Stimulus.FAILED): State.CLOSED,
    (State.CLOSED, Stimulus.TRIPPED): State.OPEN,
    (State.CLOSED, Stimulus.SUCCEEDED): State.CLOSED,
    (State.OPEN, Stimulus.DUE): State.HALF_OPEN,
    (State.HALF_OPEN, Stimulus.TRIPPED): State.OPEN,
    (State.HALF_OPEN, Stimulus.SUCCEEDED): State.CLOSED,
}
"""All that can happen."""


class ImpossibleStimulusError(Exception):
    """A stimulus that the table does not have: a mistake of the caller's."""


@dataclass(frozen=True, slots=True)
class BreakerRules:
    """When a breaker opens, and for how long.

    Parameters
    ----------
    failures
        So many within ``window_s`` open it.
    open_s
        For how long it is open the first time. Each time that it opens again without a window
        free of failures in between it is open twice as long, up to ``max_open_s``.
    """

    failures: int = 5
    window_s: float = 60.0
    open_s: float = 30.0
    max_open_s: float = 600.0


class Breaker:
    """One circuit breaker.

    After a half-open state it is closed on probation: until a window without a failure has passed,
    the first failure opens it again.

    Parameters
    ----------
    rules
        When it opens.

    Attributes
    ----------
    state
        Assigned here only.
    open_until
        When the next call is let through, on the clock of whoever passes ``now``; without a
        meaning while it is not open.
    changes
        How often calls began to be made or ceased to be: answers of a time when they were not are
        no answers.

    Notes
    -----
    *Concurrency*: one thread calls the methods; any may read the attributes.
    """

    def __init__(self, rules: BreakerRules) -> None:
        self._rules = rules
        self._failures: deque[float] = deque(maxlen=rules.failures)
        self._open_for_s = rules.open_s
        self._probation_until = float("-inf")
        self.state = State.CLOSED
        self.open_until = float("-inf")
        self.changes = 0

    def admits(self, now: float) -> bool:
        """Tell whether a call may be made; a breaker whose time is over becomes half-open."""
        if self.state is not State.OPEN:
            return True
        if now < self.open_until:
            return False
        self._move(Stimulus.DUE)
        self.changes += 1
        return True

    def succeed(self, now: float) -> None:
        """Take note of an answer."""
        if self.state is State.HALF_OPEN:
            self._probation_until = now + self._rules.window_s
            self._move(Stimulus.SUCCEEDED)

    def fail(self, now: float, weight: int = 1) -> bool:
        """Take note of a failure that counts ``weight`` times; return whether it opened.

        A failure on probation, or of the one call of a half-open breaker, opens it whatever its
        weight. Otherwise a single one opens it only if its weight alone is enough.
        """
        if self.state is State.HALF_OPEN or now < self._probation_until:
            self._open(now)
            return True
        since = now - self._rules.window_s
        failures = self._failures
        while failures and failures[0] < since:
            failures.popleft()
        failures.extend([now] * min(weight, self._rules.failures))
        if len(failures) < self._rules.failures:
            self._move(Stimulus.FAILED)
            return False
        self._open_for_s = self._rules.open_s
        self._open(now)
        return True

    def _open(self, now: float) -> None:
        self._move(Stimulus.TRIPPED)
        self._failures.clear()
        self.open_until = now + self._open_for_s
        self._open_for_s = min(self._open_for_s * 2, self._rules.max_open_s)
        self.changes += 1

    def _move(self, stimulus: Stimulus) -> None:
        state = TRANSITIONS.get((self.state, stimulus))
        if state is None:
            raise ImpossibleStimulusError(f"{stimulus.value} while {self.state.value}")
        self.state = state
