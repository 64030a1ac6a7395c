"""Choose a node by its score: one with the highest, but for the space that is left to others."""

from __future__ import annotations

import random
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from cache.columns import NodesView
from scheduler.cycle.soft_reserve import SoftReserve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cache.columns import Columns
    from cache.pod_info import PodInfo
    from plugins.framework.results import IntArray, RowArray
    from scheduler.cycle.best_rows import BestRows
    from scheduler.cycle.soft_reserve import Sizes


def second_best(total: IntArray, chosen: int) -> tuple[int, int]:
    """Return the index and score of the best node but the chosen one, the first of several.

    Parameters
    ----------
    total
        int64, shape (n,), n > 1, not negative; changed meanwhile.

    *Cost*: one pass over the scores.
    """
    score, total[chosen] = total[chosen], -1
    second = int(total.argmax())
    total[chosen] = score
    return second, int(total[second])


DRAWS: Final = 4
"""Nodes that are drawn among equals where others bind; the one on which they bind least is taken.
If they bind on half of the equals, one choice of sixteen falls on such a node. If they bind on all
of them alike, it is as good as one draw. All equals are never looked through."""


class ForeignRates(Protocol):
    """Returns what other schedulers bind, and how often on which nodes."""

    def is_any(self) -> bool:
        """Return whether others have bound anything of late."""
        ...

    def rates(self, node_names: Sequence[str]) -> Sequence[float]:
        """Return how many pods others bound to each node of late."""
        ...

    def sizes(self) -> Sizes:
        """Return the sizes of pods for which space is left to others; empty for no space."""
        ...


class HostSelector:
    """Choose the node with the highest score, at random among several.

    # Differs: among equals, nodes on which other schedulers bind often are left to them. While they
    bind, a node with space for their pods is preferred to one with a slightly higher score: see
    :mod:`scheduler.cycle.soft_reserve`.

    Parameters
    ----------
    seed
        The same seed and the same calls give the same choices.

    Attributes
    ----------
    others
        What other schedulers bind, and where; None for nobody.

    Notes
    -----
    *Concurrency*: confined to the scheduling thread.

    *Source*: pkg/scheduler/schedule_one.go, newSortedNodeScores (1.36): a random number breaks
    ties, so that pods without preferences spread.
    """

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.Random(seed)
        self._seed = random.getrandbits(64) if seed is None else seed
        self._is_seeded = False
        self.others: ForeignRates | None = None

    @contextmanager
    def seeded(self, name: str) -> Iterator[Callable[[int], int]]:
        """Let choices within the context depend on the seed and a name alone; yield ``pick``.

        What was chosen before does not matter then, so that equal attempts choose alike.
        """
        own = self._random
        self._random = random.Random(f"{self._seed}/{name}")
        self._is_seeded = True
        try:
            yield self.pick
        finally:
            self._random = own
            self._is_seeded = False

    def select(self, total: IntArray, view: NodesView, leaving: PodInfo | None = None) -> int:
        """Return the index of a highest score, or of a node that has space for others besides.

        Parameters
        ----------
        total
            int64, shape (n,), n > 0: the scores of the nodes of the view.
        leaving
            The pod, if it is to leave space to others; None if it need not.
        """
        best = np.flatnonzero(total == total.max())
        others = self._asked()
        if others is None:
            return self._draw(best, view)
        drawn = [self._draw(best, view) for _ in range(DRAWS)]
        reserve = _reserve(others, leaving)
        if reserve is not None:
            drawn = reserve.keeping(drawn, view) or self._draw_candidates(reserve, total, view)
        rows = drawn if view.rows is None else view.rows[drawn].tolist()
        return drawn[_least(others, rows, view.columns)]

    def select_row(self, best: BestRows, columns: Columns, leaving: PodInfo | None = None) -> int:
        """Return one of the best rows, or that of a node that has space for others besides.

        Raises
        ------
        LookupError
            When no row is feasible.
        """
        others = self._asked()
        if others is None:
            return self._draw_row(best)
        rows = [self._draw_row(best) for _ in range(DRAWS)]
        reserve = _reserve(others, leaving)
        if reserve is not None:
            view = NodesView(columns)
            best.settle()
            rows = reserve.keeping(rows, view) or self._draw_candidates(reserve, best.scores, view)
        return rows[_least(others, rows, columns)]

    def _draw_candidates(
        self, reserve: SoftReserve, scores: IntArray, view: NodesView
    ) -> list[int]:
        found = reserve.candidates(scores, view)
        return [self._draw(found, view) for _ in range(DRAWS)]

    def _asked(self) -> ForeignRates | None:
        """Return what knows of others, if there are any and choices may depend on them."""
        others = self.others
        return None if others is None or self._is_seeded or not others.is_any() else others

    def _draw(self, equals: RowArray, view: NodesView) -> int:
        """Return one of some indices of a view."""
        return int(equals[self.pick(len(equals))])

    def _draw_row(self, best: BestRows) -> int:
        return best.pick(self.pick)

    def pick(self, count: int) -> int:
        """Return one of ``count`` equals, counted from 0."""
        return 0 if count == 1 else self._random.randrange(count)


def _reserve(others: ForeignRates, leaving: PodInfo | None) -> SoftReserve | None:
    sizes = None if leaving is None else others.sizes()
    return SoftReserve(leaving, sizes) if leaving is not None and sizes else None


def _least(others: ForeignRates, rows: Sequence[int], columns: Columns) -> int:
    """Return the index of the row on which others bind least, the first of several."""
    infos = columns.node_infos
    rates = others.rates([infos[row].name for row in rows])
    return rates.index(min(rates))
