"""Node metrics from Prometheus, for plugins that look at what nodes really do."""

from scheduler.node_metrics.board import NodeMetricsBoard
from scheduler.node_metrics.configuration import (
    MetricQuery,
    MetricSource,
    NodeMetricsConfig,
    load_node_metrics,
)
from scheduler.node_metrics.measuring import measure_nodes
from scheduler.node_metrics.poller import NodeMetricsPoller

__all__ = [
    "MetricQuery",
    "MetricSource",
    "NodeMetricsBoard",
    "NodeMetricsConfig",
    "NodeMetricsPoller",
    "load_node_metrics",
    "measure_nodes",
]
