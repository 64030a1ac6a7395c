"""SchedulingProfiles and the kopf that watches them, as metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scheduler.metrics.instruments import Pulled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from scheduler.metrics.metrics import Metrics
    from scheduler.profiles import PolicyStatus

_STATES: Final = ("accepted", "active", "degraded")


def add_operator_metrics(
    metrics: Metrics,
    *,
    kopf_is_up: Callable[[], bool],
    kopf_restarts: Callable[[], int],
    statuses: Callable[[], Iterable[PolicyStatus]],
    status_writes: Callable[[], Mapping[str, float]],
) -> None:
    """Name those to ask at each scrape. They are asked from any thread.

    Parameters
    ----------
    statuses
        Of all SchedulingProfiles that were taken over.
    status_writes
        Writes of their status by result.
    """

    def by_state() -> Mapping[tuple[str, ...], float]:
        known = list(statuses())
        return {
            (state,): float(sum(getattr(each, state).status for each in known)) for state in _STATES
        }

    metrics.pull(
        Pulled(
            "gauge",
            "berth_kopf_up",
            "Whether the watch of SchedulingProfiles runs; policies run without it, too.",
            (),
            lambda: {(): float(kopf_is_up())},
        )
    )
    metrics.pull(
        Pulled(
            "counter",
            "berth_kopf_restarts_total",
            "How often the watch of SchedulingProfiles has ended and was started again.",
            (),
            lambda: {(): float(kopf_restarts())},
        )
    )
    metrics.pull(
        Pulled(
            "gauge",
            "berth_scheduling_profiles",
            "SchedulingProfiles by state; one may be in several.",
            ("state",),
            by_state,
        )
    )
    metrics.pull(
        Pulled(
            "counter",
            "berth_profile_status_writes_total",
            "Writes of the status of SchedulingProfiles, by result.",
            ("result",),
            lambda: {(result,): count for result, count in status_writes().items()},
        )
    )
