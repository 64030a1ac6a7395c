"""The labels of nodes as columns: the keys that exist, and the values of the keys in use.

Any user can create a pod that names thousands of keys. A key that no node has therefore costs a
dictionary lookup and no column, and the columns of the others are kept within a limit in bytes.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final

import numpy as np

from cache.byte_bounded import LARGEST, ByteBounded
from cache.ref_counts import RefCounts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from cache.node_info import NodeInfo

MAX_BYTES: Final = 1 << 26
"""64 MiB: some 600 columns of 15 000 nodes, more than the keys that pods ask for at one time. More
nodes may have more: as much as a few columns of keys such as the host's name take."""

ABSENT: Final = 0
"""The id that stands for nodes without the label."""

_SPARE: Final = 64
_BYTES_BY_ID: Final = 4
_BYTES_BY_VALUE: Final = 120
"""Of a value in list and dictionary. Its text belongs to a node."""

_VERSIONS: Final = count()


class LabelColumn:
    """The values of one label key over all nodes, as small integers.

    ``ids`` is int32 of shape (n_nodes,), ``ABSENT`` where the label is absent; ``values[id]`` is
    the text, with None at ``ABSENT``. What is computed from the ids is good for one ``version``,
    which no other column has.
    """

    __slots__ = ("_ids_by_value", "_in_use", "ids", "key", "values", "version")

    def __init__(self, key: str, capacity: int = 0) -> None:
        self.key = key
        self.values: list[str | None] = [None]
        self.ids = np.zeros(capacity, dtype=np.int32)
        self.version = next(_VERSIONS)
        self._ids_by_value: dict[str, int] = {}
        self._in_use: tuple[int, npt.NDArray[np.bool_]] | None = None

    @property
    def in_use(self) -> npt.NDArray[np.bool_]:
        """Return bool (number of value ids,), read-only: the values that some node has.

        ``ABSENT`` is none of them. *Cost*: one pass over the nodes for each version.
        """
        if self._in_use is None or self._in_use[0] != self.version:
            in_use = self.in_use_at(self.ids)
            in_use.flags.writeable = False
            self._in_use = (self.version, in_use)
        return self._in_use[1]

    def in_use_at(self, ids: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
        """Return bool (number of value ids,): the values of some nodes, without ``ABSENT``."""
        in_use = np.zeros(len(self.values), dtype=np.bool_)
        in_use[ids] = True
        in_use[ABSENT] = False
        return in_use

    def id_of(self, value: str) -> int | None:
        """Return the id of a value, or None when no node has it."""
        return self._ids_by_value.get(value)

    def set(self, row: int, value: str | None) -> None:
        """Set a node's value; a new value gets a new id."""
        value_id = ABSENT
        if value is not None:
            known = self._ids_by_value.get(value)
            if known is None:
                known = self._ids_by_value[value] = len(self.values)
                self.values.append(value)
            value_id = known
        if self.ids[row] != value_id:
            self.ids[row] = value_id
            self.version = next(_VERSIONS)

    def move(self, row: int, last: int) -> None:
        """Forget the node of a row; the last node moves there."""
        self.ids[row] = self.ids[last]
        self.ids[last] = ABSENT
        self.version = next(_VERSIONS)

    def fill(self, infos: Sequence[NodeInfo]) -> None:
        """Set the values of all nodes."""
        key = self.key
        known = self._ids_by_value
        ids = []
        for info in infos:
            value = info.labels.get(key)
            if value is None:
                ids.append(ABSENT)
                continue
            value_id = known.get(value)
            if value_id is None:
                value_id = known[value] = len(self.values)
                self.values.append(value)
            ids.append(value_id)
        self.ids[: len(ids)] = ids
        self.version = next(_VERSIONS)


def sum_by_value(
    column: LabelColumn, ids: npt.NDArray[np.int32], amounts: npt.NDArray[np.integer]
) -> npt.NDArray[np.int64]:
    """Return int64 (number of value ids,), read-only: the sum of the nodes' amounts by value.

    Parameters
    ----------
    ids
        int32 (n,): the values of the nodes that count.
    amounts
        The amount of each. Nodes without the label are left out: entry ``ABSENT`` is 0.
    """
    # Sums are exact: counts of pods times a weight of 100 stay far below 2**53.
    sums = np.bincount(ids, weights=amounts, minlength=len(column.values)).astype(np.int64)
    sums[ABSENT] = 0
    sums.flags.writeable = False
    return sums


class LabelColumns:
    """The label keys of nodes, and the columns of the keys in use.

    Parameters
    ----------
    node_infos
        The nodes by row: read, never changed.
    capacity
        The number of nodes to allocate for.

    Notes
    -----
    *Concurrency*: confined to the thread of the columns.
    """

    def __init__(self, node_infos: Sequence[NodeInfo], capacity: int) -> None:
        self._node_infos = node_infos
        self._capacity = capacity
        self.num_nodes_with = RefCounts()
        """How many nodes have each key; keys that no node has are left out."""
        self._columns: ByteBounded[str, LabelColumn] = ByteBounded(_limit(capacity), _weight)
        self._zeros = np.zeros(capacity, dtype=np.int32)
        self.num_filled = 0
        """How many columns have been filled so far: what asking has cost."""

    def get(self, key: str) -> tuple[LabelColumn, npt.NDArray[np.int32]]:
        """Return the values of a label key: their table, and int32 (n_nodes,) ids into it.

        *Cost*: the first time proportional to the nodes, later constant; always constant for a
        key that no node has.
        """
        num_nodes = len(self._node_infos)
        if key not in self.num_nodes_with:
            ids = self._zeros[:num_nodes]
            ids.flags.writeable = False
            return LabelColumn(key), ids
        column = self._columns.get(key)
        if column is None:
            column = LabelColumn(key, self._capacity)
            column.fill(self._node_infos)
            self.num_filled += 1
            self._columns.put(key, column)
        ids = column.ids[:num_nodes]
        ids.flags.writeable = False
        return column, ids

    def write(self, row: int, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        """Set the changed labels of a node.

        *Cost*: a microsecond where they are equal, some 0.2 us for each column where they differ.
        """
        if before is after or before == after:
            return
        self.num_nodes_with.replace(before, after)
        crowded = []
        for column in self._columns.values():
            column.set(row, after.get(column.key))
            if len(column.values) > 2 * len(self._node_infos) + _SPARE:
                # Nodes came and went, and most values are such that no node has any more.
                crowded.append(column.key)
        for key in crowded:
            self._columns.pop(key)

    def remove(self, row: int, last: int, labels: Mapping[str, str]) -> None:
        """Remove a node with these labels; the last node moves into its row."""
        self.num_nodes_with.replace(labels, {})
        for column in self._columns.values():
            column.move(row, last)

    def grow(self, capacity: int) -> None:
        """Grow to a larger capacity of nodes."""
        self._capacity = capacity
        self._zeros = np.zeros(capacity, dtype=np.int32)
        for column in self._columns.values():
            column.ids = np.pad(column.ids, (0, capacity - len(column.ids)))
        self._columns.weigh_again(_limit(capacity))


def _limit(capacity: int) -> int:
    """Return a limit below which a column is kept even if each node has a value of its own."""
    return max(MAX_BYTES, LARGEST * (capacity + 1) * (_BYTES_BY_ID + _BYTES_BY_VALUE))


def _weight(_key: str, column: LabelColumn) -> int:
    return column.ids.nbytes + _BYTES_BY_VALUE * len(column.values)
