"""SchedulingProfiles and the kopf that watches them, as metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scheduler.metrics.instruments import Pulled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scheduler.metrics.metrics import Metrics
    from scheduler.profiles.operator.crd_operator import CrdOperator


def add_operator_metrics(metrics: Metrics, operator: CrdOperator) -> None:
    """Have an operator asked at each scrape, from any thread."""
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
            "Whether the watch of SchedulingProfiles runs; policies run without it, too.",
            (),
            lambda: {(): float(watch.kopf_is_up)},
        ),
        Pulled(
            "counter",
            "berth_kopf_restarts_total",
            "How often the watch of SchedulingProfiles has ended and was started again.",
            (),
            lambda: {(): float(watch.restarts)},
        ),
        Pulled(
            "gauge",
            "berth_scheduling_profiles",
            "SchedulingProfiles by state; one may be in several.",
            ("state",),
            by_state,
        ),
        Pulled(
            "counter",
            "berth_profile_status_writes_total",
            "Writes of the status of SchedulingProfiles, by result.",
            ("result",),
            lambda: {("written",): writer.written, ("failed",): writer.failed},
        ),
    ):
        metrics.pull(pulled)
