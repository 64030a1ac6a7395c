"""The package queries node metrics from Prometheus, for plugins that use measured load.

It stores the latest values and their age. The plugins that read a value decide what it means for a
node.
"""

from scheduler.node_metrics.configuration import (
    MetricQuery,
    MetricSource,
    NodeMetricsConfig,
    load_node_metrics,
)
from scheduler.node_metrics.latest_values import NodeMetricsBoard
from scheduler.node_metrics.poller import NodeMetricsPoller, measure_nodes

__all__ = [
    "MetricQuery",
    "MetricSource",
    "NodeMetricsBoard",
    "NodeMetricsConfig",
    "NodeMetricsPoller",
    "load_node_metrics",
    "measure_nodes",
]
