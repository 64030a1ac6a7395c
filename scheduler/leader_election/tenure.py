"""Track until when this process leads, by its own clock, and what it may still write.

    standby --won--> leading --renewed--> leading
                     leading --closed--> closing --renewed--> closing --released--> released
                     leading, closing --lost--> lost

A renewal that was sent at second t keeps every other replica from leading until t + the lease's
duration at least: nobody can have seen it earlier than it was sent. So

- from t + renewDeadline on this process considers its leadership lost, and that is final;
- what it writes before that is abandoned by t + leaseDuration at the latest.

The second is invariant I6. Whether the event loop, the process or the machine was suspended
meanwhile does not matter: each write checks the fence, which reads a clock.

*Source*: client-go tools/leaderelection, leaderelection.go (0.36), renew and OnStoppedLeading.
"""

from __future__ import annotations

import enum
import time
from typing import TYPE_CHECKING, Final

from cache.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from scheduler.config import LeaderElection

_NS_PER_S: Final = 1_000_000_000


def boot_clock() -> float:
    """Return seconds since the machine was started, those in which it was suspended included.

    # Differs: Go's monotonic clock, and Python's, stand still while a machine is suspended; a
    leader that wakes up after an hour would think that it still leads.
    """
    return time.clock_gettime(_BOOT_CLOCK)


_BOOT_CLOCK: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Standing(enum.Enum):
    """What this process is to the others."""

    STANDBY = "standby"
    LEADING = "leading"
    CLOSING = "closing"
    """Holds the lease, and starts no more writes."""
    RELEASED = "released"
    LOST = "lost"


MOVES: Final = {
    (Standing.STANDBY, "won"): Standing.LEADING,
    (Standing.LEADING, "renewed"): Standing.LEADING,
    (Standing.LEADING, "closed"): Standing.CLOSING,
    (Standing.LEADING, "lost"): Standing.LOST,
    (Standing.CLOSING, "renewed"): Standing.CLOSING,
    (Standing.CLOSING, "released"): Standing.RELEASED,
    (Standing.CLOSING, "lost"): Standing.LOST,
}
"""Whatever is not here changes nothing: what has ended does not begin again in this process."""


class ElectionTimes(Value, frozen=True):
    """The three periods of an election, in seconds, each shorter than the one before it.

    Attributes
    ----------
    lease_s
        For how long after a renewal nobody else leads.
    renew_s
        How long after its last renewal the leader goes on.
    retry_s
        Between two renewals, or two attempts to become leader.
    """

    lease_s: float = 15.0
    renew_s: float = 10.0
    retry_s: float = 2.0

    @classmethod
    def of(cls, election: LeaderElection) -> ElectionTimes:
        """Return the periods that a checked configuration names."""
        return cls(
            election.lease_duration.ns / _NS_PER_S,
            election.renew_deadline.ns / _NS_PER_S,
            election.retry_period.ns / _NS_PER_S,
        )


class Tenure:
    """The standing of this process; the fence before its writes.

    Parameters
    ----------
    times
        The periods of the election.
    clock
        Seconds that only grow; the wall clock is of no use here.

    Notes
    -----
    *Concurrency*: everything from the I/O thread, signal handlers included; the properties from
    any thread.
    """

    def __init__(self, times: ElectionTimes, clock: Callable[[], float] = boot_clock) -> None:
        self._times = times
        self._clock = clock
        self._standing = Standing.STANDBY
        self._renewed_s = -float("inf")

    @property
    def standing(self) -> Standing:
        """What this process is, unless time has passed since somebody looked: see `check`."""
        return self._standing

    @property
    def is_leading(self) -> bool:
        """Whether this process may schedule, by the clock. Any thread; changes nothing."""
        return self._standing is Standing.LEADING and self.left_s > 0

    @property
    def left_s(self) -> float:
        """Seconds until this process is deposed unless it renews; 0 and less: it is."""
        return self._renewed_s + self._times.renew_s - self._clock()

    def won(self, sent_s: float) -> None:
        """Begin to lead, by a write that was sent at `sent_s` and accepted."""
        if self._standing is Standing.STANDBY and sent_s + self._times.renew_s > self._clock():
            self._renewed_s = sent_s
            self._move("won")

    def renewed(self, sent_s: float) -> None:
        """Go on, by a renewal that was sent at `sent_s` and accepted, unless it is too late."""
        if self.check():
            self._renewed_s = max(self._renewed_s, sent_s)
            self._move("renewed")

    def close(self) -> None:
        """Start no more writes; those under way may end."""
        self._move("closed")

    def released(self) -> None:
        """Lead no more: the lease has been given back."""
        self._move("released")

    def lose(self) -> None:
        """Lead no more, and write no more: somebody else holds the lease, or may do so soon."""
        self._move("lost")

    def check(self) -> bool:
        """Return whether the lease is held; from the renew deadline on it is lost for good."""
        if self._standing in _HOLDING and self.left_s <= 0:
            self._move("lost")
        return self._standing in _HOLDING

    def grant_s(self, timeout_s: float) -> float:
        """Return how much of its timeout a write may have that starts now; 0 for none.

        *Cost*: about a microsecond.
        """
        if self._standing is not Standing.LEADING:
            return 0.0
        age_s = self._clock() - self._renewed_s
        if age_s >= self._times.renew_s:
            self._move("lost")
            return 0.0
        return min(timeout_s, self._times.lease_s - age_s)

    def _move(self, what: str) -> None:
        self._standing = MOVES.get((self._standing, what), self._standing)


_HOLDING: Final = (Standing.LEADING, Standing.CLOSING)
