"""The latest values of node metrics, where plugins find them.

Pollers write whole tables from the I/O loop, plugins read columns on the scheduling thread. A
table is never changed once it is here, and replacing one is one assignment: a reader sees the
old one or the new one, and the clock alone says whether it still counts.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import structlog

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from cache.columns import Columns, NodesView

    FloatArray: TypeAlias = npt.NDArray[np.float64]

log = structlog.get_logger(__name__)

_FEW: Final = 64
"""Up to so many nodes a column is made for the one question: it takes some 5 us, and what-if
questions about single nodes would otherwise push the cluster's column out."""


@dataclass(frozen=True, slots=True)
class MetricTable:
    """One metric of all nodes, as one answer told it.

    Parameters
    ----------
    values
        By node name; finite.
    taken_s
        When the question was sent, on the board's clock.
    stale_after_s
        The age from which on the values count for nothing.
    """

    values: Mapping[str, float]
    taken_s: float
    stale_after_s: float


@dataclass(frozen=True, slots=True)
class _Column:
    """A table laid along the rows of columns; good for these columns in this epoch."""

    table: MetricTable
    columns: Columns
    epoch: int
    array: FloatArray


class NodeMetricsBoard:
    """Node metrics by name.

    Parameters
    ----------
    clock
        Monotonic seconds.

    Notes
    -----
    *Concurrency*: thread-safe: every change is one assignment, and what is read is immutable.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._tables: dict[str, MetricTable | None] = {}
        self._columns: dict[str, _Column] = {}
        self._missed: set[str] = set()

    def expect(self, name: str) -> None:
        """Note that a metric of this name is asked for somewhere, and has not come yet."""
        self._tables.setdefault(name, None)

    def publish(self, name: str, table: MetricTable) -> None:
        """Let a table take the place of the one before."""
        self._tables[name] = table

    def names(self) -> tuple[str, ...]:
        """Return the names of all metrics that are expected or there, sorted."""
        return tuple(sorted(self._tables))

    def column(self, name: str, nodes: NodesView) -> FloatArray:
        """Return a metric along the nodes of a view.

        Returns
        -------
        float64 (n,), read-only: NaN for a node of which nothing is known, and for all of them
        when the last answer is too old, when none has come yet or when nobody asks for a metric
        of this name. The latter is told to the log once.

        *Cost*: constant while the view has all nodes and no new answer has come; a tenth of a
        microsecond for each node of the cluster when one has.
        """
        table = self._fresh(name)
        if table is None:
            return _unknown(len(nodes))
        columns = nodes.columns
        if len(columns) <= _FEW:
            return nodes.take(_along(table, columns))
        kept = self._columns.get(name)
        if (
            kept is None
            or kept.table is not table
            or kept.columns is not columns
            or kept.epoch != columns.epoch
        ):
            kept = _Column(table, columns, columns.epoch, _along(table, columns))
            self._columns[name] = kept
        return nodes.take(kept.array)

    def value(self, name: str, node_name: str) -> float:
        """Return a metric of one node; NaN as in :meth:`column`."""
        table = self._fresh(name)
        return math.nan if table is None else table.values.get(node_name, math.nan)

    def ages_s(self) -> dict[str, float]:
        """Return how old each metric's values are, in seconds; infinite before the first."""
        now = self._clock()
        return {
            name: math.inf if table is None else now - table.taken_s
            for name, table in list(self._tables.items())
        }

    def known_nodes(self) -> dict[str, int]:
        """Return for how many nodes each metric has a value that counts."""
        fresh = {name: self._fresh(name) for name in list(self._tables)}
        return {name: 0 if table is None else len(table.values) for name, table in fresh.items()}

    def _fresh(self, name: str) -> MetricTable | None:
        table = self._tables.get(name)
        if table is None:
            if name not in self._tables and name not in self._missed:
                self._missed.add(name)
                log.warning("no such node metric", metric=name, known=list(self.names()))
            return None
        return table if self._clock() - table.taken_s <= table.stale_after_s else None


def _along(table: MetricTable, columns: Columns) -> FloatArray:
    get = table.values.get
    infos = columns.node_infos
    array = np.fromiter((get(info.name, math.nan) for info in infos), np.float64, len(infos))
    array.flags.writeable = False
    return array


def _unknown(n: int) -> FloatArray:
    array = np.full(n, math.nan)
    array.flags.writeable = False
    return array
