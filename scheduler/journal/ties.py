"""Choose among equal nodes in a way that a replay can repeat from any point on.

:class:`~scheduler.cycle.host_selection.HostSelector` draws from one sequence of random numbers, and
from a list of rows whose order depends on earlier cycles. Here each decision has a number of its
own, and the choice depends on that number and on the set of the best rows alone.
"""

from __future__ import annotations

import hashlib
import random
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import numpy as np

from scheduler.cycle.host_selection import HostSelector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cache.columns import NodesView
    from plugins.framework.results import IntArray
    from scheduler.cycle.best_rows import BestRows

TRIES: Final = 16
"""Draws among all rows before the best ones are listed: with one best row of 16 and more, most
choices end before that."""

_MASK: Final = (1 << 64) - 1
_STEP: Final = 0x9E3779B97F4A7C15


class RecordedTies(HostSelector):
    """Choose the node with the highest score; a number decides among several.

    Parameters
    ----------
    seed
        As in the base class.

    Attributes
    ----------
    number
        The number of the current decision.
    group_number
        What :meth:`seeded` uses in place of a number made from the seed and the name; None to make
        one.

    Notes
    -----
    *Concurrency*: confined to the scheduling thread.

    *Source*: the generator is SplitMix64 (Steele, Lea and Flood, 2014).
    """

    def __init__(self, seed: int | None = None) -> None:
        super().__init__(seed)
        self._stream = random.Random(self._seed)
        self._state = 0
        self.number = 0
        self.group_number: int | None = None

    def next_number(self) -> int:
        """Return the number for another decision."""
        return self._stream.getrandbits(63)

    def number_of(self, name: str) -> int:
        """Return the number that :meth:`seeded` makes from the seed and a name."""
        told = hashlib.blake2b(f"{self._seed}/{name}".encode(), digest_size=8).digest()
        return int.from_bytes(told, "big") >> 1

    def begin(self, number: int) -> None:
        """Let the next choices depend on a number alone."""
        self.number = self._state = number

    @contextmanager
    def seeded(self, name: str) -> Iterator[Callable[[int], int]]:
        """Let choices within the context depend on the seed and a name alone; yield ``pick``."""
        before = self._state
        self._state = self.number_of(name) if self.group_number is None else self.group_number
        try:
            yield self.pick
        finally:
            self._state = before

    def select(self, total: IntArray, view: NodesView) -> int:
        """Return the index of a highest score: that of the row that :meth:`select_row` returns."""
        best = np.flatnonzero(total == total.max())
        rows = best if view.rows is None else view.rows[best]
        num_rows = len(view.columns)
        index_of: dict[int, int] = dict(zip(rows.tolist(), best.tolist(), strict=True))
        for _ in range(TRIES):
            row = self.pick(num_rows)
            if row in index_of:
                return index_of[row]
        return index_of[sorted(index_of)[self.pick(len(index_of))]]

    def select_row(self, best: BestRows) -> int:
        """Return one of the best rows; raises LookupError when no row is feasible."""
        best.settle()
        num_rows = len(best.scores)
        for _ in range(TRIES):
            row = self.pick(num_rows)
            if best.is_best(row):
                return row
        rows = best.all()
        return rows[self.pick(len(rows))]

    def pick(self, count: int) -> int:
        """Return one of ``count`` equals, counted from 0."""
        state = self._state = (self._state + _STEP) & _MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
        return ((state ^ (state >> 31)) * count) >> 64
