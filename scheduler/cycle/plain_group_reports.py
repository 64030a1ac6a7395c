"""Report what became of groups by their statuses alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scheduler.decision.profile_origin import DEFAULT_ORIGIN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cache.pod_group_objects import GroupKey
    from cache.pod_info import PodInfo
    from scheduler.api_writes.pod_group_status_writer import PodGroupStatusWriter
    from scheduler.cycle.reports import Reports
    from scheduler.decision.profile_origin import PolicyOrigin


class PlainGroupReports:
    """Reports what became of groups."""

    def __init__(self, reports: Reports, writer: PodGroupStatusWriter) -> None:
        self._groups, self._pods = writer, reports.statuses

    def scheduled(
        self, key: GroupKey, message: str, *, policy: PolicyOrigin = DEFAULT_ORIGIN
    ) -> None:
        """Report that at least the minimum of a group has nodes."""
        self._groups.report(key, "Scheduled", message)

    def refused(
        self,
        key: GroupKey,
        members: Sequence[PodInfo],
        reason: str,
        message: str,
        *,
        policy: PolicyOrigin = DEFAULT_ORIGIN,
    ) -> None:
        """Report why a group was not placed."""
        self._groups.report(key, reason, message)
        for info in members:
            self._pods.unscheduled(info.pod, reason, message)
