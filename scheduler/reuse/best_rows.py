"""The rows with the highest score, kept while single scores change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from plugins.framework.results import IntArray

INFEASIBLE: Final = -1
"""The score of a row that is out of the question. Real scores are not negative."""


class BestRows:
    """All rows that share the highest score.

    Parameters
    ----------
    scores
        int64 (n_nodes,), owned from here on; ``INFEASIBLE`` where a node cannot be chosen.

    Notes
    -----
    *Cost*: a change and a pick are O(1). When the last of the best rows gets worse, all scores are
    looked through: with equal nodes that is once for as many pods as there are nodes.
    """

    __slots__ = ("_at", "_rows", "best", "scores")

    def __init__(self, scores: IntArray) -> None:
        self.scores = scores
        self.best = INFEASIBLE
        self._rows: list[int] = []
        self._at: dict[int, int] = {}
        self._look()

    def __len__(self) -> int:
        """Return how many rows share the highest score."""
        return len(self._rows)

    def __getitem__(self, index: int) -> int:
        return self._rows[index]

    def change(self, row: int, score: int) -> None:
        """Give a row another score."""
        self.scores[row] = score
        at = self._at.get(row)
        if score > self.best:
            self.best = score
            self._rows = [row]
            self._at = {row: 0}
        elif at is None:
            if score == self.best and score != INFEASIBLE:
                self._at[row] = len(self._rows)
                self._rows.append(row)
        elif score < self.best:
            last = self._rows.pop()
            del self._at[row]
            if last != row:
                self._rows[at] = last
                self._at[last] = at
            if not self._rows:
                self._look()

    def _look(self) -> None:
        self.best = int(self.scores.max(initial=INFEASIBLE))
        if self.best == INFEASIBLE:
            self._rows = []
        else:
            self._rows = np.flatnonzero(self.scores == self.best).tolist()
        self._at = {row: index for index, row in enumerate(self._rows)}
