"""Metrics of nodes from sources other than the API server, such as their measured load."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from cache.value import Value

if TYPE_CHECKING:
    from collections.abc import Mapping


class MetricReading(Value, frozen=True):
    """The latest reading of one metric.

    Parameters
    ----------
    by_node
        The value by node name; finite. Nodes that are not in it are unknown. Never changed.
    version
        A number that differs for different contents.
    """

    by_node: Mapping[str, float]
    version: int


class NodeMetrics(Protocol):
    """Returns the latest readings. Any thread."""

    def latest(self, name: str) -> MetricReading | None:
        """Return a metric's latest reading; None when there is none, or it is too old to count.

        *Cost*: a microsecond; asked once for each call of a plugin that reads the metric.
        """
        ...


class NoMetrics:
    """The implementation for a cluster without metrics."""

    def latest(self, name: str) -> MetricReading | None:
        """Return None."""
        return None
