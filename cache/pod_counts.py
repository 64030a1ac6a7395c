"""Counts of the pods on each node that a selector matches, kept up to date as pods change.

Each query in use has a column. Changes of pods are recorded in a journal; a column applies them
on its next use, at the cost of the changes since its last use. A new column, or one that was
unused for so long that the journal no longer reaches back to it, is counted from the table of
all pods. The sums of a column by a label of the nodes, such as their zone, follow in the same way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from cache.byte_bounded import ByteBounded, deep_bytes
from cache.change_journal import ChangeJournal
from cache.label_columns import ABSENT, sum_by_value
from cache.pod_table import PodTable
from cache.pods_at_once import weigh_pods

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import numpy.typing as npt

    from cache.label_columns import LabelColumn
    from cache.pod_info import PodInfo
    from cache.pod_table import PodQuery

MAX_BYTES: Final = 1 << 25
"""32 MiB: 250 queries with 15 000 nodes, more than the selectors of pods that wait at one time."""

MAX_JOURNAL: Final = 128
"""Up to so many changes are remembered and taken in one by one, at about 0.7 us each. More of them
cost more than counting 10 000 pods anew."""

MAX_BYTES_OF_SUMS: Final = 1 << 24
"""16 MiB: thousands of selectors with zones, a hundred with 15 000 hosts."""

_FEW: Final = 16
"""Up to so many changes are added to sums one by one; for more, one pass over 5 000 rows is
cheaper."""


class _Sums:
    __slots__ = ("labels", "position", "values")

    def __init__(self, labels: int, position: int, values: npt.NDArray[np.int64]) -> None:
        self.labels = labels
        """The version of the labels that they were summed by."""
        self.position = position
        self.values = values


class _Column:
    __slots__ = ("counts", "position", "query")

    def __init__(self, query: PodQuery, counts: npt.NDArray[np.int64], position: int) -> None:
        self.query = query
        self.counts = counts
        self.position = position


class PodCounts:
    """Counts by row for each query in use; queries left unused are dropped.

    Notes
    -----
    *Concurrency*: confined to the thread of the columns it belongs to.
    """

    def __init__(self) -> None:
        self._table = PodTable()
        self._slots: list[dict[str, int]] = []
        self._columns: ByteBounded[PodQuery, _Column] = ByteBounded(MAX_BYTES, _weight)
        self._sums: ByteBounded[tuple[PodQuery, str], _Sums] = ByteBounded(
            MAX_BYTES_OF_SUMS, _weight_of_sums
        )
        self._journal: ChangeJournal[tuple[int, int, PodInfo]] = ChangeJournal(MAX_JOURNAL)

    def fill(self, rows: Iterable[Mapping[str, PodInfo]]) -> None:
        """Take in the pods of all rows, by UID; until now there are none.

        *Cost*: some 0.7 us for each pod, half of what :meth:`set_row` takes.
        """
        infos: list[PodInfo] = []
        row_of: list[int] = []
        for row, pods in enumerate(rows):
            first = len(infos)
            infos += pods.values()
            row_of += [row] * len(pods)
            self._slots.append(dict(zip(pods, range(first, len(infos)), strict=True)))
        self._table.fill(infos, row_of)

    def set_row(self, row: int, pods: Mapping[str, PodInfo]) -> None:
        """Set the pods of a row.

        *Cost*: some 50 ns for each pod of the row, a few microseconds for each that changed.
        """
        while len(self._slots) <= row:
            self._slots.append({})
        slots, infos = self._slots[row], self._table.infos
        changed = [
            info for uid, info in pods.items() if uid not in slots or infos[slots[uid]] is not info
        ]
        for info in changed:
            slot = slots.get(info.uid)
            if slot is not None:
                old = infos[slot]
                if old is not None and _same_for_queries(old, info):
                    infos[slot] = info
                    continue
                self._take_off(row, info.uid)
            slots[info.uid] = self._table.add(info, row)
            self._journal.record((1, row, info))
        if len(slots) > len(pods):
            for uid in [uid for uid in slots if uid not in pods]:
                self._take_off(row, uid)

    def count(self, query: PodQuery, num_rows: int) -> npt.NDArray[np.int64]:
        """Return int64 (num_rows,), read-only: the number of matching pods of each row.

        *Cost*: constant when little changed since the same query was asked last, and for a query
        that demands a label key that no pod has; else that of
        :meth:`cache.pod_table.PodTable.count_by_row`.
        """
        now = self._journal.version
        column = self._columns.get(query)
        if column is None:
            column = _Column(query, self._table.count_by_row(query, num_rows), now)
            if not self._table.is_hopeless(query):
                self._columns.put(query, column)
        elif column.position != now:
            changes = self._journal.each_since(column.position)
            if changes is None:
                column.counts = self._table.count_by_row(query, num_rows)
            else:
                _take_in(column, changes)
            column.position = now
        if len(column.counts) < num_rows:
            more = np.zeros(num_rows - len(column.counts), dtype=np.int64)
            column.counts = np.concatenate([column.counts, more])
        view = column.counts[:num_rows]
        view.flags.writeable = False
        return view

    def sum_by_label(
        self, query: PodQuery, column: LabelColumn, ids: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.int64]:
        """Return int64 (number of value ids,), read-only: the matching pods by their node's label.

        Parameters
        ----------
        ids
            int32 (n_nodes,): the values of all nodes in that column.

        *Cost*: constant when little changed since the same query was asked last for the same
        label; else that of :meth:`count`, and one pass over the rows.
        """
        now = self._journal.version
        key = (query, column.key)
        known = self._sums.get(key)
        changes = None
        if known is not None and known.labels == column.version and now - known.position <= _FEW:
            changes = self._journal.each_since(known.position)
        if known is None or changes is None:
            values = sum_by_value(column, ids, self.count(query, len(ids)))
            if query in self._columns:
                self._sums.put(key, _Sums(column.version, now, values))
            return values
        if known.position != now:
            known.values = _with_changes(known.values, query, changes, ids)
            known.position = now
        return known.values

    def weigh(
        self, wanted: Mapping[PodQuery, int], num_rows: int, check: Callable[[], None]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the result of :func:`cache.pods_at_once.weigh_pods`, which is not cached."""
        return weigh_pods(self._table, wanted, num_rows, check)

    def _take_off(self, row: int, uid: str) -> None:
        slot = self._slots[row].pop(uid)
        info = self._table.infos[slot]
        self._table.remove(slot)
        if info is not None:
            self._journal.record((-1, row, info))


def _take_in(column: _Column, changes: Iterable[tuple[int, int, PodInfo]]) -> None:
    counts, matches = column.counts, column.query.matches
    for sign, row, info in changes:
        if matches(info.pod):
            if row >= len(counts):
                more = np.zeros(row + 1 - len(counts), dtype=np.int64)
                counts = column.counts = np.concatenate([counts, more])
            counts[row] += sign


def _with_changes(
    values: npt.NDArray[np.int64],
    query: PodQuery,
    changes: Iterable[tuple[int, int, PodInfo]],
    ids: npt.NDArray[np.int32],
) -> npt.NDArray[np.int64]:
    matches = query.matches
    changed = [(ids[row], sign) for sign, row, info in changes if matches(info.pod)]
    if not changed:
        return values
    # Others have the old sums, which stay as they are.
    sums = values.copy()
    for value_id, sign in changed:
        sums[value_id] += sign
    sums[ABSENT] = 0
    sums.flags.writeable = False
    return sums


def _weight(query: PodQuery, column: _Column) -> int:
    return column.counts.nbytes + deep_bytes(query, at_most=MAX_BYTES)


def _weight_of_sums(key: tuple[PodQuery, str], sums: _Sums) -> int:
    return sums.values.nbytes + deep_bytes(key, at_most=MAX_BYTES_OF_SUMS)


def _same_for_queries(old: PodInfo, new: PodInfo) -> bool:
    before, after = old.pod.metadata, new.pod.metadata
    return (
        before.labels == after.labels
        and before.namespace == after.namespace
        and (before.deletion_timestamp is None) == (after.deletion_timestamp is None)
    )
