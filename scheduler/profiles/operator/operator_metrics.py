"""Metrics of SchedulingProfiles, of kopf and of status writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scheduler.metrics.instruments import Pulled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scheduler.metrics.metrics import Metrics
    from scheduler.profiles.operator.crd_operator import CrdOperator


def add_operator_metrics(metrics: Metrics, operator: CrdOperator) -> None:
    """Export the metrics of an operator; each scrape reads them, from any thread."""
    watch, writer = operator.watch, operator.writer

    def by_state() -> Mapping[tuple[str, ...], float]:
        statuses = list(operator.known.statuses().values())
        return {
            ("accepted",): float(sum(each.accepted.status for each in statuses)),
            ("active",): float(sum(each.active.status for each in statuses)),
            ("degraded",): float(sum(each.degraded.status for each in statuses)),
        }

    for pulled in (
        Pulled(
            "gauge",
            "berth_kopf_up",
            "1 if the watch of SchedulingProfiles runs, else 0. Profiles keep running without it.",
            (),
            lambda: {(): float(watch.kopf_is_up)},
        ),
        Pulled(
            "counter",
            "berth_kopf_restarts_total",
            "Number of times that the watch of SchedulingProfiles ended and was restarted.",
            (),
            lambda: {(): float(watch.restarts)},
        ),
        Pulled(
            "gauge",
            "berth_scheduling_profiles",
            "Number of SchedulingProfiles by state. A profile may be in several states.",
            ("state",),
            by_state,
        ),
        Pulled(
            "counter",
            "berth_profile_status_writes_total",
            "Number of writes of the status of SchedulingProfiles, by result.",
            ("result",),
            lambda: {("written",): writer.written, ("failed",): writer.failed},
        ),
    ):
        metrics.pull(pulled)
