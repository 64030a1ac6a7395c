"""Store the latest values of node metrics for plugins.

The poller writes whole tables on the I/O loop, plugins read them on the scheduling thread. A table
is never changed once it is here, and replacing one is one assignment: a reader gets the old one
or the new one, and the clock alone says whether it still counts.
"""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING

import structlog

from cache.value import Value
from plugins.framework.node_metrics import MetricReading

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

log = structlog.get_logger(__name__)


class _Table(Value, frozen=True):
    reading: MetricReading
    taken_s: float
    stale_after_s: float


class NodeMetricsBoard:
    """Node metrics by name: what a :class:`plugins.framework.node_metrics.NodeMetrics` has to be.

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
        self._versions = itertools.count(1)
        self._tables: dict[str, _Table | None] = {}
        self._missed: set[str] = set()

    def expect(self, name: str) -> None:
        """Note that somebody asks for a metric of this name, though nothing has come yet."""
        self._tables.setdefault(name, None)

    def publish(
        self, name: str, values: Mapping[str, float], *, taken_s: float, stale_after_s: float
    ) -> None:
        """Let new values take the place of those before.

        Parameters
        ----------
        values
            By node name, finite; not to be changed any more.
        taken_s
            When the question was sent, on the board's clock.
        stale_after_s
            The age beyond which they count for nothing.
        """
        reading = MetricReading(values, next(self._versions))
        self._tables[name] = _Table(reading, taken_s, stale_after_s)

    def latest(self, name: str) -> MetricReading | None:
        """Return a metric's latest values; None when there are none that count.

        That nobody asks for a metric of this name is told to the log once.
        """
        table = self._tables.get(name)
        if table is None:
            if name not in self._tables and name not in self._missed:
                self._missed.add(name)
                log.warning("no such node metric", metric=name, known=sorted(self._tables))
            return None
        return table.reading if self._clock() - table.taken_s <= table.stale_after_s else None

    def ages_s(self) -> dict[str, float]:
        """Return how old each metric's values are, in seconds, for those that have any."""
        now = self._clock()
        return {
            name: now - table.taken_s
            for name, table in list(self._tables.items())
            if table is not None
        }

    def known_nodes(self) -> dict[str, int]:
        """Return for how many nodes each metric has a value that counts."""
        readings = {name: self.latest(name) for name in list(self._tables)}
        return {name: 0 if each is None else len(each.by_node) for name, each in readings.items()}
