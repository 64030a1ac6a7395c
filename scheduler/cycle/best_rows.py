"""The rows with the highest score, kept up to date while single scores change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from plugins.framework.results import BoolArray, IntArray, RowArray

INFEASIBLE: Final = -1
"""The score of a row that is out of the question. Real scores are not negative."""

MAX_SEARCHED: Final = 500
"""Rows that are searched for the second best one: numpy keeps the GIL for so many elements. To have
it back beside a busy I/O thread costs more than a whole decision."""

_TRIES: Final = 4
"""Picks in vain after which all listed rows are looked through."""


class BestRows:
    """Store all rows that share the highest score.

    Parameters
    ----------
    scores
        int64 (n_nodes,), which this object owns from now on; ``INFEASIBLE`` where a node cannot be
        chosen.

    Notes
    -----
    The rows are listed one by one only with the first change: of many kinds of pods in turn, most
    rankings are asked once.

    A row whose score fell stays listed until a pick reaches it, so that no search and removal is
    needed when many rows change at once.

    *Cost*: a change of one row and a pick are O(1), on average over picks. When the score of the
    last best row falls, all scores are searched: with equal nodes that happens once for as many
    pods as there are nodes.
    """

    __slots__ = ("_best", "_found", "_listed", "_rows", "scores")

    def __init__(self, scores: IntArray) -> None:
        self.scores = scores
        self._best = INFEASIBLE
        """No row has a higher score; that of the listed rows, unless they got worse."""
        self._rows: list[int] = []
        """Every row with the highest score once, and rows that had it before; see ``_found``."""
        self._found: RowArray | None = None
        """The rows, not listed yet, while no score has changed since they were found."""
        self._listed = bytearray()
        self._find()

    def change(self, row: int, score: int) -> None:
        """Give a row another score."""
        if self._found is not None:
            self._list_found()
        self.scores[row] = score
        if score > self._best:
            self._raise_to(score)
        if score == self._best != INFEASIBLE:
            self._list(row)

    def change_all(self, rows: RowArray, scores: IntArray) -> None:
        """Give rows other scores, int64 of shape (len(rows),)."""
        if self._found is not None:
            self._list_found()
        self.scores[rows] = scores
        top = int(scores.max(initial=INFEASIBLE))
        if top > self._best:
            self._raise_to(top)
        if top == self._best != INFEASIBLE:
            for row in rows[scores == top].tolist():
                self._list(row)

    def pick(self, choose: Callable[[int], int]) -> int:
        """Return one of the best rows; any is as good as another.

        Parameters
        ----------
        choose
            Gives a number below its argument, each as likely as any other.

        Raises
        ------
        LookupError
            When no row is feasible.
        """
        if self._found is not None:
            if len(self._found):
                return int(self._found[choose(len(self._found))])
            raise LookupError("no row is feasible")
        tries = 0
        while True:
            if tries == _TRIES:
                self._forget_worse()
            if not self._rows:
                self._look()
                if not self._rows:
                    raise LookupError("no row is feasible")
            index = choose(len(self._rows))
            row = self._rows[index]
            if self.scores[row] == self._best:
                return row
            tries += 1
            last = self._rows.pop()
            if last != row:
                self._rows[index] = last
            self._listed[row] = 0

    def second(self, row: int) -> tuple[int, int] | None:
        """Return the best row but one that was picked, and its score; None if it is not at hand.

        It is at hand where another row has the same score, or there are few rows.

        *Cost*: 0.3 us; 3 us with few rows.
        """
        scores = self.scores
        last = self._rows[-2:] if self._found is None else self._found[-2:].tolist()
        for other in last:
            if other != row and scores[other] == self._best:
                return other, self._best
        if not 1 < len(scores) <= MAX_SEARCHED:
            return None
        score, scores[row] = scores[row], INFEASIBLE
        best = scores.max()
        # argmax lets go of the GIL however few the elements are.
        other = (scores == best).tobytes().index(1)
        scores[row] = score
        return None if best == INFEASIBLE else (other, int(best))

    def settle(self) -> None:
        """Make :meth:`is_best` and :meth:`all` true of the scores as they are now.

        Raises
        ------
        LookupError
            When no row is feasible.

        *Cost*: O(1), on average over the changes.
        """
        if self._found is not None:
            self._list_found()
        while self._rows:
            row = self._rows[-1]
            if self.scores[row] == self._best:
                return
            self._rows.pop()
            self._listed[row] = 0
        self._look()
        if not self._rows:
            raise LookupError("no row is feasible")

    @property
    def only(self) -> int | None:
        """The only row with the highest score, after :meth:`settle`; None if there may be more."""
        return self._rows[0] if len(self._rows) == 1 else None

    def is_best(self, row: int) -> bool:
        """Return whether a row has the highest score."""
        return bool(self._listed[row]) and bool(self.scores[row] == self._best)

    def all(self) -> list[int]:
        """Return all rows with the highest score, in ascending order."""
        self._forget_worse()
        return self._rows

    def _forget_worse(self) -> None:
        """Take all rows off the list that got worse."""
        self._list_found()
        still = np.zeros(len(self.scores), dtype=np.bool_)
        still[self._rows] = True
        still &= self.scores == self._best
        self._take_over(still)
        self._list_found()

    def _list_found(self) -> None:
        if self._found is not None:
            is_listed = np.zeros(len(self.scores), dtype=np.bool_)
            is_listed[self._found] = True
            self._listed = bytearray(is_listed.tobytes())
            self._rows, self._found = self._found.tolist(), None

    def _raise_to(self, score: int) -> None:
        self._best = score
        self._rows = []
        self._listed = bytearray(len(self.scores))

    def _list(self, row: int) -> None:
        if not self._listed[row]:
            self._listed[row] = 1
            self._rows.append(row)

    def _look(self) -> None:
        self._find()
        self._list_found()

    def _find(self) -> None:
        self._best = int(self.scores.max(initial=INFEASIBLE))
        best = self.scores == self._best
        if self._best == INFEASIBLE:
            best[:] = False
        self._take_over(best)

    def _take_over(self, best: BoolArray) -> None:
        self._found = np.flatnonzero(best)
        self._rows = []
