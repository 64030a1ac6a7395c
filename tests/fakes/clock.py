"""A clock that stands still until a test moves it."""

from __future__ import annotations


class FakeClock:
    """Seconds that pass by hand; call it for the time.

    Parameters
    ----------
    now_s
        Where it starts.
    """

    def __init__(self, now_s: float = 1_000.0) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s

    def advance(self, seconds: float) -> None:
        self.now_s += seconds
