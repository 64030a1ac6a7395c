"""A share of the time that passes, to be spent in small pieces."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_SAVED_S: Final = 0.05
"""What an idle hour saves up at most: pods that come after it are not to wait for long."""


class TimeBudget:
    """Allows work as long as no more than a share of the time went into it.

    Over any span of time no more is spent than its share, :data:`MAX_SAVED_S` and one piece of
    work: how long that takes is known afterwards only, so what is too much is made up for later.

    Parameters
    ----------
    share
        More than 0, at most 1.
    clock
        Seconds, never going back.

    Notes
    -----
    *Concurrency*: confined to the scheduling thread.
    """

    __slots__ = ("_at", "_clock", "_saved_s", "_share")

    def __init__(self, share: float, clock: Callable[[], float] = perf_counter) -> None:
        self._share = share
        self._clock = clock
        self._at = clock()
        self._saved_s = 0.0

    def allows(self) -> bool:
        """Tell whether there is time for a piece of work now."""
        now = self._clock()
        self._saved_s = min(self._saved_s + (now - self._at) * self._share, MAX_SAVED_S)
        self._at = now
        return self._saved_s >= 0.0

    def spend(self, seconds: float) -> None:
        """Take off what a piece of work took."""
        self._saved_s -= seconds
