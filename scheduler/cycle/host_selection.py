"""Choose one of the nodes with the highest score."""

from __future__ import annotations

import random
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cache.columns import NodesView
    from plugins.framework.results import IntArray
    from scheduler.cycle.best_rows import BestRows


class HostSelector:
    """Choose the node with the highest score, at random among several.

    Parameters
    ----------
    seed
        The same seed and the same calls give the same choices.

    Notes
    -----
    *Concurrency*: confined to the scheduling thread.

    *Source*: pkg/scheduler/schedule_one.go, newSortedNodeScores (1.36): a random number breaks
    ties, so that pods without preferences spread.
    """

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.Random(seed)
        self._seed = random.getrandbits(64) if seed is None else seed

    @contextmanager
    def seeded(self, name: str) -> Iterator[Callable[[int], int]]:
        """Let choices within the context depend on the seed and a name alone; yield ``pick``.

        What was chosen before does not matter then, so that equal attempts choose alike.
        """
        own = self._random
        self._random = random.Random(f"{self._seed}/{name}")
        try:
            yield self.pick
        finally:
            self._random = own

    def select(self, total: IntArray, view: NodesView) -> int:
        """Return the index of a highest score.

        Parameters
        ----------
        total
            int64, shape (n,), n > 0: the scores of the nodes of the view.
        """
        best = np.flatnonzero(total == total.max())
        return int(best[self.pick(len(best))])

    def select_row(self, best: BestRows) -> int:
        """Return one of the best rows.

        Raises
        ------
        LookupError
            When no row is feasible.
        """
        return best.pick(self.pick)

    def pick(self, count: int) -> int:
        """Return one of ``count`` equals, counted from 0."""
        return 0 if count == 1 else self._random.randrange(count)
