"""The columns that one user's plugin computes for each node, cached between its calls.

Derived columns of the snapshot are shared by all plugins that define the same column, and their
functions must not raise. The columns here belong to one plugin; a function that raises leaves its
column unchanged.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from plugins.authoring.checked_results import PolicyAnswerError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    import numpy.typing as npt

    from cache.columns import Columns
    from cache.node_info import NodeInfo
    from plugins.framework.node_metrics import NodeMetrics


class _Column:
    """One column over all rows, with the cursor, epoch and version of its source."""

    __slots__ = ("array", "cursor", "epoch", "version")

    def __init__(self) -> None:
        self.array: npt.NDArray[Any] = np.zeros(0)
        self.cursor = 0
        self.epoch = -1
        self.version = -1


class OwnColumns:
    """The columns of one plugin.

    Parameters
    ----------
    metrics
        The node metrics.

    Notes
    -----
    *Concurrency*: confined to the thread that calls the plugin.

    The columns of a snapshot are dropped together with the snapshot.
    """

    def __init__(self, metrics: NodeMetrics) -> None:
        self._metrics = metrics
        self._kept: WeakKeyDictionary[Columns, dict[Hashable, _Column]] = WeakKeyDictionary()

    def names(self, columns: Columns) -> npt.NDArray[np.object_]:
        """Return the names of all rows, object (n_nodes,), read-only."""
        kept = self._column(columns, "names")
        if kept.epoch != columns.epoch:
            kept.array = _read_only(
                np.array([info.name for info in columns.node_infos], dtype=np.object_)
            )
            kept.epoch = columns.epoch
        return kept.array

    def metric(self, columns: Columns, name: str) -> npt.NDArray[np.float64]:
        """Return a metric of all rows, float64 (n_nodes,), read-only, NaN where it is unknown.

        *Cost*: constant, except after a new reading or after nodes were added or removed.
        """
        reading = self._metrics.latest(name)
        kept = self._column(columns, ("metric", name))
        version = -2 if reading is None else reading.version
        if kept.epoch != columns.epoch or kept.version != version:
            count = len(columns)
            if reading is None:
                array = np.full(count, math.nan)
            else:
                of, nan = reading.by_node.get, math.nan
                infos = columns.node_infos
                array = np.fromiter((of(info.name, nan) for info in infos), np.float64, count)
            kept.array = _read_only(array)
            kept.epoch, kept.version = columns.epoch, version
        return kept.array

    def metric_of(self, name: str, node_name: str) -> float:
        """Return a metric of one node; NaN if it is unknown."""
        reading = self._metrics.latest(name)
        return math.nan if reading is None else reading.by_node.get(node_name, math.nan)

    def per_node(
        self,
        columns: Columns,
        key: Hashable,
        function: Callable[[NodeInfo], object],
        *,
        of_pods: bool,
    ) -> npt.NDArray[np.float64]:
        """Return the values of a function for all rows, float64 (n_nodes,), read-only.

        *Cost*: one call for each node that changed since the last call; additionally a copy of the
        column.

        Raises
        ------
        PolicyAnswerError
            When the function does not return a number. Its own exceptions propagate.
        """
        kept = self._column(columns, ("per_node", key, of_pods))
        cursor, rows = columns.follow(kept.cursor, of_pods=of_pods)
        if not rows:
            return kept.array
        # If the function raises, the stored column must stay unchanged.
        array = np.resize(kept.array, len(columns))
        for row in rows:
            info = columns.info_at(row)
            if info is not None:
                array[row] = _number(key, function(info), info.name)
        kept.array, kept.cursor = _read_only(array), cursor
        return kept.array

    def _column(self, columns: Columns, key: Hashable) -> _Column:
        of_columns = self._kept.get(columns)
        if of_columns is None:
            of_columns = self._kept[columns] = {}
        column = of_columns.get(key)
        if column is None:
            column = of_columns[key] = _Column()
        return column


def _number(key: Hashable, value: object, node: str) -> float:
    if isinstance(value, (int, float, np.integer, np.floating, np.bool_)):
        return float(value)
    raise PolicyAnswerError(
        "dtype", f"per_node({key!r}) got {type(value).__name__} for node {node}, it needs a number"
    )


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.flags.writeable = False
    return array
