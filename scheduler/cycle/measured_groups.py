"""Measure the attempts to place groups, between their cycle and what it calls.

An attempt begins with its plan, and ends with its report: once for each attempt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scheduler.cycle.failure_handler import REASON_UNSCHEDULABLE
from scheduler.metrics.pod_group_metrics import ERROR, SCHEDULED, UNSCHEDULABLE
from scheduler.pod_groups.plan import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from cache.pod_group_objects import GroupKey, GroupRules
    from cache.pod_info import PodInfo
    from scheduler.cycle.group_cycle import Planner
    from scheduler.cycle.group_reports import AttemptReports
    from scheduler.decision.profile_origin import PolicyOrigin
    from scheduler.metrics.pod_group_metrics import PodGroupMetrics
    from scheduler.pod_groups.domains import MemberDomain
    from scheduler.pod_groups.plan import GroupPlan, GroupTask


class MeasuredGroups:
    """A planner and reports for :class:`scheduler.cycle.group_cycle.GroupCycles`.

    Parameters
    ----------
    planner, reports
        Called for everything.
    metrics
        Where attempts are counted.
    clock
        Seconds of a monotonic clock.

    Notes
    -----
    *Concurrency*: scheduling thread.
    """

    def __init__(
        self,
        planner: Planner,
        reports: AttemptReports,
        metrics: PodGroupMetrics,
        clock: Callable[[], float],
    ) -> None:
        self._planner = planner
        self._reports = reports
        self._metrics = metrics
        self._clock = clock
        self._began: tuple[str, float] | None = None
        """The profile and the start of the attempt under way."""

    def plan(self, task: GroupTask) -> GroupPlan:
        """Return the planner's plan, and count what it found."""
        began_s = self._clock()
        self._began = task.framework.profile_name, began_s
        plan = self._planner.plan(task)
        self._metrics.decided(self._clock() - began_s)
        if plan.verdict is Verdict.FITS:
            self._metrics.placed(plan.counted, len(plan.placed) - plan.counted)
        elif plan.verdict is Verdict.NOT_FOUND:
            self._metrics.out_of_time()
        return plan

    def domain_of(self, rules: GroupRules, node_names: Collection[str]) -> MemberDomain:
        """Return the planner's answer."""
        return self._planner.domain_of(rules, node_names)

    def scheduled(self, key: GroupKey, message: str, *, policy: PolicyOrigin) -> None:
        """Report and count an attempt that placed a group."""
        self._end(SCHEDULED)
        self._reports.scheduled(key, message, policy=policy)

    def refused(
        self,
        key: GroupKey,
        members: Sequence[PodInfo],
        reason: str,
        message: str,
        *,
        policy: PolicyOrigin,
    ) -> None:
        """Report and count an attempt that did not."""
        self._end(UNSCHEDULABLE if reason == REASON_UNSCHEDULABLE else ERROR)
        self._reports.refused(key, members, reason, message, policy=policy)

    def _end(self, result: str) -> None:
        if self._began is not None:
            profile, began_s = self._began
            self._metrics.attempt(profile, result, self._clock() - began_s)
        self._began = None
