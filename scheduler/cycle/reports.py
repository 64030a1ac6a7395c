"""What is said of pods, to whoever looks from outside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scheduler.api_writes.event_recorder import EventRecorder
    from scheduler.api_writes.pod_status_writer import PodStatusWriter
    from scheduler.metrics import Metrics


@dataclass(frozen=True, slots=True)
class Reports:
    """The ways to report what becomes of pods: Events, the pods' statuses, and metrics."""

    events: EventRecorder
    statuses: PodStatusWriter
    metrics: Metrics
