"""The verdicts of all plugins that signed a pod: two kept halves, added up and ranked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from cache.columns import NodesView
from scheduler.cycle.best_rows import INFEASIBLE, BestRows
from scheduler.cycle.kept_verdicts import changed_rows

if TYPE_CHECKING:
    from plugins.framework.results import BoolArray, IntArray
    from scheduler.cycle.kept_verdicts import KeptVerdicts

MAX_FOLLOWED: Final = 256
"""Changed rows up to which a ranking is brought up to date. To add up two halves anew takes some
6 us for 5 000 nodes."""


class Ranking:
    """The sums of two kept verdicts, with the rows that have the highest.

    Parameters
    ----------
    of_nodes, of_pods
        Kept verdicts of the plugins that read no pods, and of those that do, both up to date.

    Notes
    -----
    *Concurrency*: confined to the scheduling thread.

    Invariant: after :meth:`follow`, everything equals what a new object would hold.
    """

    __slots__ = ("_best", "_bonus", "_cursor", "_feasible", "_halves", "_view", "count", "scores")

    def __init__(self, of_nodes: KeptVerdicts, of_pods: KeptVerdicts) -> None:
        left, right = self._halves = of_nodes, of_pods
        self._bonus = self._bonus_of_halves()
        total = left.scores + right.scores
        if self._bonus:
            # Of a rejected node it stays below 0: a rejection outweighs all scores together.
            total += self._bonus
        self.scores: IntArray = np.maximum(total, INFEASIBLE, out=total)
        """int16 or int64 (n_nodes,): INFEASIBLE, or what is known of the score of the node."""
        self._feasible: BoolArray | None = self.scores >= 0
        self.count = int(np.count_nonzero(self._feasible))
        """How many nodes are feasible."""
        self._view: NodesView | None = None
        self._best: BestRows | None = None
        self._cursor = left.columns.cursor

    def follow(self, *, by_columns: bool = False) -> bool:
        """Take over changed rows of the halves, which have followed before; or return False.

        False when it is quicker, or necessary, to make another ranking.
        """
        if self._bonus != self._bonus_of_halves():
            return False
        left, right = self._halves
        columns = left.columns
        seen, now = self._cursor, columns.cursor
        if seen == now:
            return True
        self._cursor = now
        if self._bonus is None:
            # A change of one row may change the scores of all.
            self._best = None
        changed = right.changed
        if (changed.seen, changed.now) != (seen, now):
            changed = changed_rows(columns, seen, now)
        _, _, few, many = changed
        if changed.are_most(len(columns)) or (many is not None and len(many) > MAX_FOLLOWED):
            return False
        bonus = self._bonus or 0
        if many is None and not by_columns:
            ours, theirs = left.scores, right.scores
            for row in few:
                total = int(ours[row]) + int(theirs[row])
                self._change(row, total + bonus if total >= 0 else INFEASIBLE)
            return True
        rows = np.array(sorted(few), dtype=np.intp) if many is None else many
        scores = left.scores[rows] + right.scores[rows]
        if bonus:
            scores += bonus
        np.maximum(scores, INFEASIBLE, out=scores)
        flips = int(np.count_nonzero((self.scores[rows] < 0) != (scores < 0)))
        if self._best is not None:
            self._best.change_all(rows, scores)
        else:
            self.scores[rows] = scores
        if flips:
            self._feasible = self._view = None
            self.count = int(np.count_nonzero(self.scores >= 0))
        return True

    def _change(self, row: int, score: int) -> None:
        was, now = self.scores[row] >= 0, score >= 0
        if was != now:
            self.count += 1 if now else -1
            self._feasible = self._view = None
        if self._best is not None:
            self._best.change(row, score)
        else:
            self.scores[row] = score

    def _bonus_of_halves(self) -> int | None:
        left, right = self._halves
        ours = left.bonus
        if ours is None:
            return None
        theirs = right.bonus
        return None if theirs is None else ours + theirs

    # --- answers ------------------------------------------------------------------------------

    @property
    def is_relative(self) -> bool:
        """Whether the score of a node depends on which other nodes are feasible."""
        return self._bonus is None

    @property
    def feasible(self) -> BoolArray:
        """The feasible nodes, bool (n_nodes,); the same array until a node becomes another."""
        if self._feasible is None:
            self._feasible = self.scores >= 0
        return self._feasible

    def best(self) -> BestRows:
        """Return the best of all feasible rows, by the signing plugins alone."""
        if self._best is None:
            scores = self.scores
            if self.is_relative:
                view = self.view()
                scores = np.full(len(scores), INFEASIBLE, dtype=np.int64)
                scores[slice(None) if view.rows is None else view.rows] = self.totals(view)
            self._best = BestRows(scores)
        return self._best

    def forget_best(self) -> None:
        """Let the next choice among equals depend on the rows, not on what was chosen before."""
        self._best = None

    def view(self) -> NodesView:
        """Return the feasible nodes; the same view until a node becomes another."""
        if self._view is None:
            self._view = NodesView(self._halves[0].columns)
            if self.count < len(self.scores):
                self._view = self._view.subset(np.flatnonzero(self.feasible))
        return self._view

    def totals(self, view: NodesView) -> IntArray:
        """Return the weighted scores of feasible nodes, normalized among them: a new array."""
        total: IntArray = view.take(self.scores).astype(np.int64)
        if self.is_relative:
            for half in self._halves:
                half.add_normalized(total, view)
        return total
