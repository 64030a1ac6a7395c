"""Counts objects, such as matching pods, in each domain of a topology.

A topology is a node label, a domain one of its values. Sums over domains are computed from
columns. What-ifs change them by single pods; these changes are stored apart from the sums, so that
a copy for a what-if costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cache.label_columns import sum_by_value

if TYPE_CHECKING:
    from typing import Self

    import numpy.typing as npt

    from cache.columns import Columns, NodesView
    from cache.label_columns import LabelColumn
    from cache.pod_table import PodQuery
    from plugins.framework.results import IntArray


class DomainCounts:
    """Counts by domain, with the changes of a what-if.

    Parameters
    ----------
    key
        The topology.
    column
        The label's values at the time when the sums were computed.
    sums
        int64, shape (number of value ids,), 0 for nodes without the label; None for 0
        everywhere. Kept and not changed.
    """

    __slots__ = ("_changes", "_column", "_sums", "key", "total")

    def __init__(
        self, key: str, column: LabelColumn | None = None, sums: IntArray | None = None
    ) -> None:
        self.key = key
        self._column = column
        self._sums = sums
        self._changes: dict[str, int] = {}
        self.total = 0 if sums is None else int(sums.sum())
        """The sum over all domains."""

    @classmethod
    def summed(cls, columns: Columns, key: str, amounts: npt.NDArray[np.integer]) -> Self:
        """Return the sums by domain of each node's amount, which has shape (n_nodes,).

        Amounts of nodes without the label are not counted.
        """
        column, ids = columns.labels.get(key)
        return cls(key, column, sum_by_value(column, ids, amounts))

    @classmethod
    def of_pods(cls, columns: Columns, key: str, query: PodQuery, weight: int = 1) -> Self:
        """Return the sums by domain of the matching pods, each counted ``weight`` times.

        *Cost*: constant when little changed since the same query was asked last.
        """
        column, ids = columns.labels.get(key)
        sums = columns.terms.sum_by_label(query, column, ids)
        return cls(key, column, sums if weight == 1 else sums * weight)

    def copy(self) -> Self:
        """Return counts that change independently."""
        twin = type(self)(self.key)
        twin._column = self._column
        twin._sums = self._sums
        twin._changes = self._changes.copy()
        twin.total = self.total
        return twin

    def of(self, value: str) -> int:
        """Return the count of one domain."""
        return self._summed(value) + self._changes.get(value, 0)

    def change(self, value: str, by: int) -> None:
        """Add to the count of one domain."""
        self._changes[value] = self._changes.get(value, 0) + by
        self.total += by

    def by_id(self, column: LabelColumn) -> IntArray:
        """Return int64 (number of value ids,): counts by the ids of a column, 0 without a label.

        The result is not to be changed. *Cost*: constant for the column that was summed by, as long
        as nothing has changed since.
        """
        if (
            column is self._column
            and self._sums is not None
            and not self._changes
            and len(self._sums) == len(column.values)
        ):
            return self._sums
        if column is self._column and self._sums is not None:
            table = np.zeros(len(column.values), dtype=np.int64)
            table[: len(self._sums)] = self._sums
        elif self._sums is None:
            table = np.zeros(len(column.values), dtype=np.int64)
        else:
            texts = column.values
            table = np.array(
                [0 if text is None else self._summed(text) for text in texts], dtype=np.int64
            )
        for value, change in self._changes.items():
            value_id = column.id_of(value)
            if value_id is not None:
                table[value_id] += change
        return table

    def at(self, nodes: NodesView) -> IntArray:
        """Return int64 (n_nodes,): the count of each node's domain, 0 without one."""
        column, ids = nodes.label(self.key)
        return self.by_id(column).take(ids)

    def _summed(self, value: str) -> int:
        if self._column is None or self._sums is None:
            return 0
        value_id = self._column.id_of(value)
        return 0 if value_id is None or value_id >= len(self._sums) else int(self._sums[value_id])
