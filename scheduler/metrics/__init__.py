"""Metrics under kube-scheduler's names, and berth's own."""

from scheduler.metrics.metrics import Metrics

__all__ = ["Metrics"]
