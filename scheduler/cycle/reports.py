"""The reports about pods: Events, statuses, metrics, outcomes of recent attempts, and traces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cache.value import Value
from scheduler.decision.recent_decisions import RecentDecisions

if TYPE_CHECKING:
    from scheduler.api_writes.event_recorder import EventRecorder
    from scheduler.api_writes.pod_status_writer import PodStatusWriter
    from scheduler.metrics import Metrics
    from scheduler.tracing.traces import Traces


class Reports(Value, frozen=True):
    """The means of reporting the outcome of attempts.

    Attributes
    ----------
    events, statuses, metrics
        Events, the conditions of pods, and metrics.
    recent
        Keeps outcomes for those who ask later.
    traces
        Takes in what traced pods go through; None if none is traced.
    """

    events: EventRecorder
    statuses: PodStatusWriter
    metrics: Metrics
    recent: RecentDecisions = msgspec.field(default_factory=RecentDecisions)
    traces: Traces | None = None
