"""What a plugin works out for each node itself, kept from one call to the next.

The snapshot's derived columns are filled while the snapshot is brought up to date, outside of any
call into the plugin: a function of a user's that failed there would stop the scheduler. So the
columns here are brought up to date when the plugin asks for them, within its own call.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from plugins.policy.answers import PolicyAnswerError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    import numpy.typing as npt

    from cache.columns import Columns
    from cache.node_info import NodeInfo
    from plugins.framework.node_metrics import NodeMetrics


class _Filled:
    """One column over all rows, and what it was filled from."""

    __slots__ = ("array", "epoch", "position", "sources", "version")

    def __init__(self) -> None:
        self.array: npt.NDArray[Any] = np.zeros(0)
        self.sources: list[Any] = []
        self.epoch = -1
        self.position = -1
        self.version = -1


class OwnColumns:
    """The columns of one plugin.

    Parameters
    ----------
    metrics
        Gives what was measured.

    Notes
    -----
    *Concurrency*: confined to the thread that calls the plugin.

    Columns die with the snapshot that they are about.
    """

    def __init__(self, metrics: NodeMetrics) -> None:
        self._metrics = metrics
        self._kept: WeakKeyDictionary[Columns, dict[Hashable, _Filled]] = WeakKeyDictionary()

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
        """Return a metric of all rows, float64 (n_nodes,), read-only, NaN where unknown.

        *Cost*: constant until there is a new reading, or nodes come or go.
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
        """Return a metric of one node; NaN where it is unknown."""
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
        """Return a function's values for all rows, float64 (n_nodes,), read-only.

        *Cost*: one call for each node that changed since the last time; when nodes came or went,
        some 50 ns more for each node.

        Raises
        ------
        PolicyAnswerError
            When the function returns anything but a number; what it raises is raised.
        """
        kept = self._column(columns, ("per_node", key, of_pods))
        infos = columns.node_infos
        position = columns.change_count
        if kept.epoch == columns.epoch and kept.position == position:
            return kept.array
        # What the function raises must leave the column as it was.
        changed = columns.changed_since(kept.position) if kept.epoch == columns.epoch else None
        if changed is None:
            known = {id(source): at for at, source in enumerate(kept.sources)}
            sources = [info if of_pods else info.node for info in infos]
            array = np.empty(len(infos))
            for row, (info, source) in enumerate(zip(infos, sources, strict=True)):
                at = known.get(id(source))
                if at is None:
                    array[row] = _number(key, function(info), info.name)
                else:
                    array[row] = kept.array[at]
            kept.sources = sources
        else:
            updates: list[tuple[int, Any, float]] = []
            for row in changed:
                info = infos[row]
                source = info if of_pods else info.node
                if kept.sources[row] is not source:
                    updates.append((row, source, _number(key, function(info), info.name)))
            array = kept.array.copy() if updates else kept.array
            for row, filled_from, number in updates:
                array[row] = number
                kept.sources[row] = filled_from
        kept.array = _read_only(array)
        kept.epoch, kept.position = columns.epoch, position
        return kept.array

    def _column(self, columns: Columns, key: Hashable) -> _Filled:
        of_columns = self._kept.get(columns)
        if of_columns is None:
            of_columns = self._kept[columns] = {}
        found = of_columns.get(key)
        if found is None:
            found = of_columns[key] = _Filled()
        return found


def _number(key: Hashable, value: object, node: str) -> float:
    if isinstance(value, (int, float, np.integer, np.floating, np.bool_)):
        return float(value)
    raise PolicyAnswerError(
        "dtype", f"per_node({key!r}) got {type(value).__name__} for node {node}, it needs a number"
    )


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.flags.writeable = False
    return array
