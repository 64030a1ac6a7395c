"""The package has the metrics with kube-scheduler's names, and berth's own.

It defines names and labels, and counts. The source of a number belongs to the packages that are
measured; serving it belongs to :mod:`scheduler.serving`.
"""

from scheduler.metrics.metrics import Metrics

__all__ = ["Metrics"]
