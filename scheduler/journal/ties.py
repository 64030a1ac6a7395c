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
    from plugins.framework.results import RowArray
    from scheduler.cycle.best_rows import BestRows

TRIES: Final = 20
"""Draws among all rows before the best ones are listed, which takes longer the more there are: with
one best row of ten, one choice of eight comes to that."""

_MASK: Final = (1 << 64) - 1
_STEP: Final = 0x9E3779B97F4A7C15
_NEXT_CHOICE: Final = 0xD1B54A32D192ED03
"""Another odd number: the draws of two choices are not the same ones shifted."""


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
        self._choice = 0
        """Where the draws of the last choice began. How many it took is not the same in a replay,
        which may know from elsewhere that one row is better than all others."""
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
        self.number = self._state = self._choice = number

    @contextmanager
    def seeded(self, name: str) -> Iterator[Callable[[int], int]]:
        """Let choices within the context depend on the seed and a name alone; yield ``pick``."""
        before = self._state, self._choice
        number = self.number_of(name) if self.group_number is None else self.group_number
        self._state = self._choice = number
        self._is_seeded = True
        try:
            yield self.pick
        finally:
            self._state, self._choice = before
            self._is_seeded = False

    def _draw(self, equals: RowArray, view: NodesView) -> int:
        """Return one of some indices; of the best ones, that of the row of :meth:`_draw_row`."""
        state = self._next_choice()
        if len(equals) == 1:
            return int(equals[0])
        rows = equals if view.rows is None else view.rows[equals]
        is_best = np.zeros(len(view.columns), np.bool_)
        is_best[rows] = True
        for _ in range(TRIES):
            state, row = _draw(state, len(is_best))
            if is_best[row]:
                return int(equals[np.flatnonzero(rows == row)[0]])
        _, place = _draw(state, len(rows))
        return int(equals[np.argsort(rows)[place]])

    def _draw_row(self, best: BestRows) -> int:
        """Return one of the best rows; raises LookupError when no row is feasible."""
        best.settle()
        state = self._next_choice()
        only = best.only
        if only is not None:
            return only
        num_rows = len(best.scores)
        for _ in range(TRIES):
            state, row = _draw(state, num_rows)
            if best.is_best(row):
                return row
        rows = best.all()
        if len(rows) == 1:
            return rows[0]
        _, place = _draw(state, len(rows))
        return rows[place]

    def pick(self, count: int) -> int:
        """Return one of ``count`` equals, counted from 0."""
        self._state, place = _draw(self._state, count)
        return place

    def _next_choice(self) -> int:
        state = self._choice = (self._choice + _NEXT_CHOICE) & _MASK
        return state


def _draw(state: int, count: int) -> tuple[int, int]:
    """Return the next state, and one of ``count`` equals, counted from 0."""
    state = (state + _STEP) & _MASK
    mixed = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    return state, ((mixed ^ (mixed >> 31)) * count) >> 64
