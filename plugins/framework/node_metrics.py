"""Metrics of nodes from sources other than the API server, such as their measured load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class MetricReading:
    """One metric as it was read last.

    Parameters
    ----------
    by_node
        The value by node name; finite. Nodes that are not in it are unknown. Never changed.
    version
        Another number for each other content.
    """

    by_node: Mapping[str, float]
    version: int


class NodeMetrics(Protocol):
    """Gives the latest readings. Any thread."""

    def latest(self, name: str) -> MetricReading | None:
        """Return a metric's latest reading; None when there is none, or it is too old to count.

        *Cost*: a microsecond; asked once for each call of a plugin that reads the metric.
        """
        ...


class NoMetrics:
    """Where nobody measures."""

    def latest(self, name: str) -> MetricReading | None:
        """Return None."""
        return None
