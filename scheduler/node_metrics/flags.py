"""The flag of ``berth run`` about node metrics."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from scheduler.node_metrics.configuration import NodeMetricsConfig, load_node_metrics

if TYPE_CHECKING:
    import argparse


def add_node_metrics_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flag."""
    parser.add_argument(
        "--node-metrics",
        metavar="F",
        type=Path,
        help="a NodeMetricsConfiguration: what to ask Prometheus about nodes, for plugins that "
        "look at what they really do",
    )


def node_metrics_config(options: argparse.Namespace) -> NodeMetricsConfig:
    """Return what to ask whom: nothing where the flag is not given.

    Raises
    ------
    ConfigError
        When the file cannot be used.
    """
    path: Path | None = options.node_metrics
    return NodeMetricsConfig() if path is None else load_node_metrics(path)
