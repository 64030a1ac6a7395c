"""The stream of decisions: a reader goes on from where the last answer ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from scheduler.ui.sources import Decisions

OWN: Final = "-"
"""Stands for the own lists where otherwise the leader's pod is named; no pod has this name."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where an answer ended.

    Parameters
    ----------
    source
        Whose numbers these are: the leader's pod, or ``OWN``; empty at first.
    after
        The number of the last decision; 0 at first.
    """

    source: str = ""
    after: int = 0

    @classmethod
    def of(cls, text: str) -> Self:
        """Return the cursor that a page was given; one that cannot be read stands for the start."""
        source, _, after = text.rpartition(".")
        if source and len(text) < 300 and after.isascii() and after.isdigit() and len(after) < 19:
            return cls(source, int(after))
        return cls()

    def __str__(self) -> str:
        return f"{self.source}.{self.after}"

    def is_followed_by(self, found: Decisions) -> bool:
        """Return whether an answer goes on with these numbers: a new leader counts from 1."""
        return self.source == (found.leader or OWN) and found.last >= self.after


def stream_page(
    cursor: Cursor, found: Decisions, limit: int, *, is_whole: bool = True
) -> dict[str, Any]:
    """Return what the templates of the decisions show, the newest first.

    Parameters
    ----------
    cursor
        Where the last answer ended; the start if this one does not follow it.
    limit
        The number of decisions to show; the rest is counted.
    is_whole
        Whether decisions of all namespaces are read: a gap in the numbers is one in the stream.
    """
    shown = found.decisions[-limit:]
    missed = 0
    if cursor.after and shown:
        missed = len(found.decisions) - len(shown)
        if is_whole:
            missed = shown[0].seq - cursor.after - 1
    return {
        "found": found,
        "decisions": shown[::-1],
        "measured": bool(found.leader),
        "cursor": str(Cursor(found.leader or OWN, found.last)),
        "restart": not cursor.after,
        "missed": max(missed, 0),
    }
