"""A circuit breaker: a plugin that keeps failing is not called for a while.

The table, `state, stimulus -> state`; a dot marks a stimulus that cannot occur:

    state        failed      tripped     due         succeeded
    closed       closed      open        .           closed
    open         .           .           half_open   .
    half_open    .           open        .           closed

    failed     a call failed, and the limit of failures in the window is not reached
    tripped    a call failed, and the limit is reached; in the half-open state, any failure
    due        the open time has passed, and a call is requested
    succeeded  a call returned a result
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import Final

from cache.value import Value


class State(Enum):
    """The state of a breaker; its value is the name in the drawing, in metrics and in the log."""

    CLOSED = "closed"
    """Calls are made."""
    OPEN = "open"
    """Calls are not made."""
    HALF_OPEN = "half_open"
    """One test call is made."""

    __hash__ = object.__hash__


class Stimulus(Enum):
    """An event that changes the state of a breaker."""

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
    """The table has no such stimulus in this state: a programming error of the caller."""


class BreakerRules(Value, frozen=True):
    """The rules by which a breaker opens, and how long it stays open.

    Parameters
    ----------
    failures
        The number of failures within ``window_s`` that opens the breaker.
    open_s
        How long the breaker stays open the first time. The time doubles whenever the breaker opens
        again without a window free of failures in between, up to ``max_open_s``.
    """

    failures: int = 5
    window_s: float = 60.0
    open_s: float = 30.0
    max_open_s: float = 600.0


class Breaker:
    """A circuit breaker for one plugin version.

    After the half-open state the breaker is closed on probation: until a window without a failure
    has passed, the first failure opens it again.

    Parameters
    ----------
    rules
        The rules by which the breaker opens.

    Attributes
    ----------
    state
        The current state. Only this class assigns it.
    open_until
        The time of the next test call, on the clock from which callers pass ``now``. It is
        meaningless unless the breaker is open.
    changes
        The number of changes between calls being made and not being made. Results from a time
        without calls are invalid.

    Notes
    -----
    *Concurrency*: one thread calls the methods; any thread may read the attributes.
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
        """Return whether a call may be made; after its open time a breaker becomes half-open."""
        if self.state is not State.OPEN:
            return True
        if now < self.open_until:
            return False
        self._move(Stimulus.DUE)
        self.changes += 1
        return True

    def succeed(self, now: float) -> None:
        """Record a call that returned a result."""
        if self.state is State.HALF_OPEN:
            self._probation_until = now + self._rules.window_s
            self._move(Stimulus.SUCCEEDED)

    def fail(self, now: float, weight: int = 1) -> bool:
        """Record a failure that counts ``weight`` times; return whether the breaker opened.

        A failure on probation, or of the test call of a half-open breaker, opens the breaker
        whatever its weight. Otherwise a single failure opens it only if its weight alone suffices.
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
