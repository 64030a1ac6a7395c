"""The reports about pods: Events, pod statuses and metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scheduler.api_writes.event_recorder import EventRecorder
    from scheduler.api_writes.pod_status_writer import PodStatusWriter
    from scheduler.metrics import Metrics


@dataclass(frozen=True, slots=True)
class Reports:
    """The means of reporting the outcome of attempts: Events, pod statuses and metrics."""

    events: EventRecorder
    statuses: PodStatusWriter
    metrics: Metrics
