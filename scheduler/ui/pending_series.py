"""How many pods were waiting for each reason since the page was started, in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_POINTS: Final = 240
"""Of each line. Beyond it every second point goes, and the next ones are twice as far apart."""

MAX_REASONS: Final = 40
"""Lines besides that of all pods; the reasons of the most pods have them."""

STEP_S: Final = 15.0
"""Between two points at first: an hour of them is kept whole."""


@dataclass(frozen=True, slots=True)
class Trend:
    """One line, from the first point to the last.

    Parameters
    ----------
    times_s
        Seconds since the epoch.
    counts
        The pods that waited at these times.
    """

    times_s: tuple[float, ...]
    counts: tuple[int, ...]

    @property
    def change(self) -> int:
        """How many more pods wait at the end than at the start."""
        return self.counts[-1] - self.counts[0]


class PendingSeries:
    """Counts of pending pods by reason over time.

    Attributes
    ----------
    step_s
        How far apart points have to be.

    Notes
    -----
    *Concurrency*: loop-confined. Memory: at most ``MAX_POINTS`` times ``MAX_REASONS`` numbers.
    """

    def __init__(self) -> None:
        self.step_s = STEP_S
        self._is_leaders = False
        self._points: list[tuple[float, int, dict[str, int]]] = []

    def __len__(self) -> int:
        return len(self._points)

    def add(self, now_s: float, counts: Mapping[str, int], leader: str) -> None:
        """Add a point, unless the last one is less than a step ago.

        Parameters
        ----------
        counts
            The pending pods by reason.
        leader
            Who has counted; empty for own lists. Where the one takes over from the other, the lines
            begin again: they have other reasons.
        """
        if self._is_leaders is not bool(leader):
            self._is_leaders = bool(leader)
            self._points.clear()
        if self._points and now_s < self._points[-1][0] + self.step_s:
            return
        most = sorted(counts, key=lambda reason: (-counts[reason], reason))[:MAX_REASONS]
        self._points.append(
            (now_s, sum(counts.values()), {reason: counts[reason] for reason in most})
        )
        if len(self._points) > MAX_POINTS:
            del self._points[1::2]
            self.step_s *= 2

    def trends(
        self, now_s: float, counts: Mapping[str, int], leader: str
    ) -> tuple[Trend, dict[str, Trend]]:
        """Return the line of all pods, and those of the reasons in ``counts``; each ends with now.

        Parameters
        ----------
        now_s, counts, leader
            As in :meth:`add`: the last point of each line.
        """
        points = self._points if self._is_leaders is bool(leader) else []
        times_s = (*(time_s for time_s, _, _ in points), now_s)
        total = (*(total for _, total, _ in points), sum(counts.values()))
        return Trend(times_s, total), {
            reason: Trend(times_s, (*(by.get(reason, 0) for _, _, by in points), count))
            for reason, count in counts.items()
        }
