"""Count the attempts to place groups of pods, and how their members were placed.

*Source*: pkg/scheduler/metrics/metrics.go (1.36) for all that begin with ``scheduler_``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scheduler.metrics.instruments import exponential

if TYPE_CHECKING:
    from scheduler.metrics.instruments import Registry

SCHEDULED = "scheduled"
UNSCHEDULABLE = "unschedulable"
WAITING_ON_PREEMPTION = "waiting_on_preemption"
ERROR = "error"


class PodGroupMetrics:
    """Attempts, decisions, members and victims of groups.

    Notes
    -----
    *Concurrency*: thread-safe.

    Attributes
    ----------
    out_of_time
        Counts a search that ended before all orders were tried.
    """

    def __init__(self, registry: Registry) -> None:
        self._attempts = registry.counter(
            "scheduler_podgroup_schedule_attempts_total",
            "Attempts to place groups of pods, by result: scheduled, unschedulable (the minimum "
            "does not fit), waiting_on_preemption, or error (a failure of the scheduler's own).",
            "profile",
            "result",
        )
        self._attempt_duration = registry.histogram(
            "scheduler_podgroup_scheduling_attempt_duration_seconds",
            "Duration of an attempt to place a group of pods: the decision and its execution.",
            exponential(0.001, 2, 15),
            "profile",
            "result",
        )
        self._algorithm_duration = registry.histogram(
            "scheduler_podgroup_scheduling_algorithm_duration_seconds",
            "Duration of the decision about a group of pods alone.",
            exponential(0.001, 2, 15),
        )
        self._victims = registry.counter(
            "berth_podgroup_victims_total",
            "Pods that were chosen to be evicted for groups of pods.",
        )
        self._gang_victims = registry.counter(
            "berth_gang_victims_total",
            "Members of gangs that were chosen to be evicted, for pods or for groups.",
        )
        self._placed = registry.counter(
            "berth_podgroup_members_placed_total",
            "Members that were placed with their group, by way: counted with like members, or "
            "searched one by one.",
            "way",
        )
        self.out_of_time = registry.counter(
            "berth_podgroup_searches_out_of_time_total",
            "Searches for a placement of a group that ended before all orders were tried.",
        ).count

    def attempt(self, profile: str, result: str, duration_s: float) -> None:
        """Count an attempt.

        Parameters
        ----------
        result
            ``scheduled``, ``unschedulable``, ``waiting_on_preemption`` or ``error``.
        duration_s
            Of the decision and what was done at once.
        """
        self._attempts.count(profile, result)
        self._attempt_duration.of(profile, result).observe(duration_s)

    def decided(self, duration_s: float) -> None:
        """Count a decision, whatever it was."""
        self._algorithm_duration.of().observe(duration_s)

    def placed(self, counted: int, searched: int) -> None:
        """Count the members of a group that were placed, by the way in which."""
        for way, number in (("counted", counted), ("searched", searched)):
            if number:
                self._placed.of(way).inc(number)

    def victims(self, number: int) -> None:
        """Count the pods that have to go for a group."""
        self._victims.of().inc(number)

    def gang_victims(self, number: int) -> None:
        """Count the members of gangs that have to go for a pod or a group."""
        if number:
            self._gang_victims.of().inc(number)
