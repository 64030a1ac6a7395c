"""What was worked out for single nodes, kept until they change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, TypeVar

import numpy as np

from cache.columns import ColumnSpec

if TYPE_CHECKING:
    from cache.columns import Columns
    from plugins.framework.results import BoolArray, RowArray

T = TypeVar("T")

GENERATIONS: Final = ColumnSpec(
    ("generation",), lambda node_info: node_info.generation, np.int64, of_pods=True
)
"""int64: the generation of each node, from one counter over all nodes."""

_NEVER: Final = -1


class NodeMemory(Generic[T]):
    """One value for each node, good while the node has the generation it was worked out at.

    Notes
    -----
    *Concurrency*: confined to the thread of the columns.

    *Cost*: a pass over a column; proportional to the nodes after nodes came or went.
    """

    def __init__(self) -> None:
        self._columns: Columns | None = None
        self._epoch = 0
        self._names: list[str] = []
        self._made_at = np.empty(0, dtype=np.int64)
        self.values: list[T | None] = []
        """By row; None where nothing is known."""

    def follow(self, columns: Columns) -> bool:
        """Take over which node each row is; return whether rows have come to mean others."""
        if columns is self._columns and columns.epoch == self._epoch:
            return False
        known = {}
        if columns is self._columns:
            known = {
                name: (made_at, value)
                for name, made_at, value in zip(
                    self._names, self._made_at.tolist(), self.values, strict=True
                )
                if value is not None
            }
        self._columns, self._epoch = columns, columns.epoch
        self._names = [node_info.name for node_info in columns.node_infos]
        kept = [known.get(name, (_NEVER, None)) for name in self._names]
        self._made_at = np.array([made_at for made_at, _ in kept], dtype=np.int64)
        self.values = [value for _, value in kept]
        return True

    def forget(self) -> None:
        """Know nothing any more."""
        self._made_at[:] = _NEVER
        self.values = [None] * len(self.values)

    def known(self, rows: RowArray) -> BoolArray:
        """Return bool (n,): whether the value of each row is known and still good."""
        columns = self._columns
        if columns is None:
            return np.zeros(len(rows), dtype=np.bool_)
        same: BoolArray = self._made_at[rows] == columns.derived(GENERATIONS)[rows]
        return same

    def put(self, row: int, value: T) -> None:
        """Remember what was worked out for the node that a row is now."""
        assert self._columns is not None, "follow comes first"  # noqa: S101 - misuse
        self._made_at[row] = self._columns.node_infos[row].generation
        self.values[row] = value
