"""Stores results for single nodes until these nodes change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

if TYPE_CHECKING:
    from cache.columns import Columns
    from plugins.framework.results import BoolArray, RowArray

T = TypeVar("T")


class NodeMemory(Generic[T]):
    """One value for each node, valid until the node or a pod on it changes.

    Notes
    -----
    *Concurrency*: confined to the thread of the columns.

    *Cost*: some 50 ns for each node that has changed.
    """

    def __init__(self) -> None:
        self._columns: Columns | None = None
        self._cursor = 0
        self._epoch = -1
        self._is_known: BoolArray = np.zeros(0, dtype=np.bool_)
        self.values: list[T | None] = []
        """The values by row; None where the value is not known."""

    def follow(self, columns: Columns) -> bool:
        """Drop the values of changed nodes; return whether rows stand for other nodes now."""
        if columns is not self._columns:
            self._columns, self._cursor, self._epoch = columns, 0, -1
        self._cursor, changed = columns.follow(self._cursor)
        count = len(columns)
        if count != len(self.values):
            self._is_known = np.resize(self._is_known, count)
            self.values = [*self.values[:count], *[None] * (count - len(self.values))]
        for row in changed:
            if row < count:
                self._is_known[row] = False
                self.values[row] = None
        means_others = columns.epoch != self._epoch
        self._epoch = columns.epoch
        return means_others

    def known(self, rows: RowArray) -> BoolArray:
        """Return bool (n,): whether the value of each row is known and still valid."""
        is_known: BoolArray = self._is_known[rows]
        return is_known

    def put(self, row: int, value: T) -> None:
        """Store the value of the node that a row stands for."""
        self._is_known[row] = True
        self.values[row] = value
