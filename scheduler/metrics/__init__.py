"""Metrics under kube-scheduler's names, and berth's own.

Names, labels and how they are counted. Where a number comes from belongs to the rooms that are
measured; how it is served to :mod:`scheduler.serving`.
"""

from scheduler.metrics.metrics import Metrics

__all__ = ["Metrics"]
