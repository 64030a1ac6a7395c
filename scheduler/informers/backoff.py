"""Calculate the delay before a retry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scheduler.client.errors import as_asked_s

if TYPE_CHECKING:
    import random


class Backoff:
    """Delays that double with each use, half of each random.

    Parameters
    ----------
    base_s, cap_s
        The first delay lies in [base/2, base), the later ones in [d/2, d) with d up to `cap_s`.
    reset_after_s
        When nobody has asked for a delay for so long, the next one is the first again.
    rng
        Where the random half comes from.

    *Concurrency*: loop-confined.
    """

    def __init__(
        self, base_s: float, cap_s: float, rng: random.Random, *, reset_after_s: float = 120.0
    ) -> None:
        self._base_s = base_s
        self._cap_s = cap_s
        self._reset_after_s = reset_after_s
        self._rng = rng
        self._next_s = base_s
        self._used_until = float("-inf")

    def delay_s(self, now: float, retry_after_s: float | None = None) -> float:
        """Return seconds to wait from `now` on, at least `retry_after_s` (up to the cap)."""
        if now - self._used_until > self._reset_after_s:
            self.reset()
        step_s = self._next_s
        self._next_s = min(step_s * 2, self._cap_s)
        delay_s = step_s * (0.5 + 0.5 * self._rng.random())
        delay_s = as_asked_s(delay_s, retry_after_s, self._rng)
        self._used_until = now + delay_s
        return delay_s

    def reset(self) -> None:
        """Begin again with the first delay."""
        self._next_s = self._base_s
