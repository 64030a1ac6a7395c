"""Node metrics as one part of a running berth: made, lent to plugins, and told of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scheduler.metrics.instruments import Pulled
from scheduler.node_metrics.latest_values import NodeMetricsBoard
from scheduler.node_metrics.poller import NodeMetricsPoller

if TYPE_CHECKING:
    from scheduler.metrics import Metrics
    from scheduler.node_metrics.configuration import NodeMetricsConfig


def measure_nodes(config: NodeMetricsConfig, metrics: Metrics) -> NodeMetricsPoller:
    """Return what polls the sources, once it is started.

    `metrics` tells how old is what it brings; where there is no source, nothing.

    Raises
    ------
    ClientConfigError
        When a source's TLS configuration or the environment's proxy cannot be used.
    """
    board = NodeMetricsBoard()
    poller = NodeMetricsPoller(config, board)
    if config.sources:
        for family in _families(board, poller):
            metrics.pull(family)
    return poller


def _families(board: NodeMetricsBoard, poller: NodeMetricsPoller) -> tuple[Pulled, ...]:
    label = ("metric",)
    return (
        Pulled(
            "gauge",
            "berth_node_metric_age_seconds",
            "Time since the question was sent whose answer plugins see; nothing before the first.",
            label,
            lambda: {(name,): age_s for name, age_s in board.ages_s().items()},
        ),
        Pulled(
            "gauge",
            "berth_node_metric_nodes",
            "Nodes of which a metric is known and not too old.",
            label,
            lambda: {(name,): float(count) for name, count in board.known_nodes().items()},
        ),
        Pulled(
            "counter",
            "berth_node_metric_failures_total",
            "Questions for a metric that got no answer which could be used.",
            label,
            lambda: {(name,): float(each.failed) for name, each in poller.statistics.items()},
        ),
    )
