"""Node metrics from Prometheus, for plugins that look at what nodes really do.

Asks, keeps the latest values and how old they are. What a value means for a node is decided by the
plugins that read it.
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
