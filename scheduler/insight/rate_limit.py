"""Limits how often each user may ask: a token bucket for each user."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_USERS: Final = 4_096
"""The number of users whose questions are counted; whoever has not asked for longest is forgotten,
and by then may ask again as often as a new user."""


class RateLimit:
    """Counts the questions of each user.

    Parameters
    ----------
    per_s
        How many questions a user may ask in a second, on average.
    burst
        How many at once.
    clock
        Seconds of a monotonic clock.

    Notes
    -----
    *Concurrency*: loop-confined.
    """

    def __init__(self, per_s: float, burst: int, clock: Callable[[], float]) -> None:
        self._per_s = per_s
        self._burst = burst
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def wait_s(self, user: str) -> float:
        """Count a question and return 0.0, or return how long the user has to wait with it."""
        now_s = self._clock()
        left, since_s = self._buckets.pop(user, (float(self._burst), now_s))
        left = min(left + (now_s - since_s) * self._per_s, float(self._burst))
        wait_s = 0.0 if left >= 1.0 else (1.0 - left) / self._per_s
        self._buckets[user] = (left if wait_s else left - 1.0, now_s)
        while len(self._buckets) > MAX_USERS:
            self._buckets.popitem(last=False)
        return wait_s
