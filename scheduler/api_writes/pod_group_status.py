"""Derive what the status of a PodGroup should say, and build the patch.

The status of a PodGroup of ``scheduling.x-k8s.io`` follows from its members alone, as the
controller of scheduler-plugins derives it. A PodGroup of ``scheduling.k8s.io`` has conditions
instead.

*Source*: sigs.k8s.io/scheduler-plugins 0.34.7, pkg/controllers/podgroup_controller.go, Reconcile;
pkg/scheduler/schedule_one_podgroup.go, updatePodGroupCondition, and k8s.io/api
scheduling/v1alpha2/types.go (1.36).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from msgspec.structs import replace

from cache.pod_group_objects import PodGroup, PodGroupCondition, XPodGroup, XPodGroupStatus
from scheduler.api_writes.pod_condition import TRUST_S
from scheduler.client.timestamps import api_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cache.pod_group_objects import GroupKey
    from cache.pod_groups import GroupReport

GroupT = TypeVar("GroupT", PodGroup, XPodGroup)

TEXT_LIMIT: Final = 4_096
"""Characters of a message that are kept; many groups may wait to be written."""

POD_GROUP_SCHEDULED: Final = "PodGroupScheduled"
DISRUPTION_TARGET: Final = "DisruptionTarget"

SCHEDULED: Final = "Scheduled"
PREEMPTION_BY_SCHEDULER: Final = "PreemptionByScheduler"

_V1ALPHA2: Final = "scheduling.k8s.io/v1alpha2"
_LATER_NAME: Final = "PodGroupInitiallyScheduled"
"""Of the condition, in versions after v1alpha2."""

PENDING: Final = "Pending"
SCHEDULING: Final = "Scheduling"
RUNNING: Final = "Running"
FINISHED: Final = "Finished"
FAILED: Final = "Failed"

_CUT_MARK: Final = " ..."
_MAX_REMEMBERED: Final = 10_000

_FINAL: Final = frozenset({FINISHED, FAILED})

# --- scheduling.x-k8s.io ----------------------------------------------------------------------


def wanted_x_status(shown: XPodGroupStatus, report: GroupReport, wall_s: float) -> XPodGroupStatus:
    """Return what the status of a PodGroup of ``scheduling.x-k8s.io`` should say.

    A group that has finished or failed stays as it is.

    # Differs: the controller goes from phase to phase by one write each, and counts members only in
    later phases than ``Pending``; here one write leads to the last phase, and counts are always
    those of the members. A minimum of 0 is 1, so that a group without members is not ``Finished``.
    Members are those of the group's own namespace. ``scheduleStartTime``, which the CRD defines and
    the controller never sets, is when the minimum of members was first there.

    Parameters
    ----------
    shown
        What it says now.
    wall_s
        Now, in seconds since the epoch.
    """
    rules, counts = report.standing.rules, report.standing.counts
    if rules is None or shown.phase in _FINAL:
        return shown
    is_complete = counts.members >= rules.minimum
    wanted = replace(
        shown,
        phase=_phase(report, rules.minimum) if is_complete else PENDING,
        running=counts.running,
        succeeded=counts.succeeded,
        failed=counts.failed,
    )
    if is_complete and shown.phase in ("", PENDING):
        wanted = replace(
            wanted,
            occupied_by=report.owners or shown.occupied_by,
            schedule_start_time=shown.schedule_start_time or api_time(wall_s),
        )
    return wanted


def _phase(report: GroupReport, minimum: int) -> str:
    """Return the phase of a group with its minimum of members."""
    counts = report.standing.counts
    if counts.succeeded >= minimum:
        return FINISHED
    if counts.failed and counts.failed + counts.running + counts.succeeded >= minimum:
        return FAILED
    return RUNNING if counts.succeeded + counts.running >= minimum else SCHEDULING


def x_status_patch(shown: XPodGroupStatus, wanted: XPodGroupStatus) -> dict[str, Any]:
    """Return the merge patch of the status; a number that is 0 is left out, as in Go."""
    fields = (
        ("phase", "phase"),
        ("occupiedBy", "occupied_by"),
        ("running", "running"),
        ("succeeded", "succeeded"),
        ("failed", "failed"),
        ("scheduleStartTime", "schedule_start_time"),
    )
    return {
        name: getattr(wanted, attribute) or None
        for name, attribute in fields
        if getattr(wanted, attribute) != getattr(shown, attribute)
    }


# --- scheduling.k8s.io ------------------------------------------------------------------------


class WantedCondition(NamedTuple):
    """What a condition of a PodGroup should say."""

    is_true: bool
    reason: str
    message: str


def cut_text(message: str) -> str:
    """Return a message of at most `TEXT_LIMIT` characters, with a mark where it was cut."""
    if len(message) <= TEXT_LIMIT:
        return message
    return message[: TEXT_LIMIT - len(_CUT_MARK)] + _CUT_MARK


def is_whole(report: GroupReport) -> bool:
    """Tell whether the minimum of a group has or had nodes, as the API shows it."""
    rules, counts = report.standing.rules, report.standing.counts
    return rules is not None and counts.assigned + counts.succeeded >= rules.minimum


def was_scheduled(group: PodGroup) -> bool:
    """Tell whether a PodGroup says that it was scheduled."""
    return any(
        condition.type in (POD_GROUP_SCHEDULED, _LATER_NAME) and condition.status == "True"
        for condition in group.status.conditions
    )


def condition_name(group_version: str, name: str) -> str:
    """Return the type of a condition as a version of the API calls it."""
    is_renamed = name == POD_GROUP_SCHEDULED and group_version != _V1ALPHA2
    return _LATER_NAME if is_renamed else name


def changed_conditions(
    wanted: Mapping[str, WantedCondition], group: PodGroup, group_version: str, wall_s: float
) -> tuple[PodGroupCondition, ...]:
    """Return the conditions that have to be written so that a PodGroup says what it should.

    A group that was scheduled once stays so, and a condition DisruptionTarget is only taken back
    where it is a scheduler's and True. The time of the last transition stays as long as the status
    of the condition does.

    Parameters
    ----------
    wanted
        By type, as v1alpha2 calls it.
    group
        What it says now.
    wall_s
        Now, in seconds since the epoch.
    """
    shown = {condition.type: condition for condition in group.status.conditions}
    changed = []
    for name, condition in wanted.items():
        type_ = condition_name(group_version, name)
        before = shown.get(type_, PodGroupCondition())
        if _is_settled(name, condition, before):
            continue
        after = PodGroupCondition(
            type_,
            "True" if condition.is_true else "False",
            condition.reason,
            condition.message,
            before.last_transition_time,
            group.metadata.generation,
        )
        if before.status != after.status or not before.last_transition_time:
            after = replace(after, last_transition_time=api_time(wall_s))
        if after != before:
            changed.append(after)
    return tuple(changed)


def _is_settled(name: str, wanted: WantedCondition, shown: PodGroupCondition) -> bool:
    """Tell whether what is shown must not be changed to what is wanted."""
    if name == POD_GROUP_SCHEDULED:
        return shown.status == "True"
    if wanted.is_true:
        return False
    return (shown.status, shown.reason) != ("True", PREEMPTION_BY_SCHEDULER)


def conditions_patch(changed: tuple[PodGroupCondition, ...]) -> dict[str, Any]:
    """Return the strategic merge patch of the status, in which conditions are merged by type."""
    return {
        "conditions": [
            {
                "type": condition.type,
                "status": condition.status,
                "reason": condition.reason,
                "message": condition.message,
                "lastTransitionTime": condition.last_transition_time,
                "observedGeneration": condition.observed_generation,
            }
            for condition in changed
        ]
    }


# --- what was written -------------------------------------------------------------------------


class WrittenGroups:
    """The groups that were written lately, and what the API server returned.

    Notes
    -----
    *Concurrency*: loop-confined. *Cost*: memory for the last 30 s, and at most 10 000 groups.
    """

    def __init__(self) -> None:
        self._groups: dict[GroupKey, tuple[float, PodGroup | XPodGroup | None]] = {}
        """The oldest first."""

    def written_at_s(self, key: GroupKey) -> float:
        """Return when a group was written last (monotonic seconds)."""
        return self._groups.get(key, (-math.inf, None))[0]

    def newest(self, key: GroupKey, shown: GroupT, now_s: float) -> GroupT:
        """Return the newer one of what the watch shows and what the last write returned."""
        at_s, ours = self._groups.get(key, (-math.inf, None))
        if not isinstance(ours, type(shown)) or now_s - at_s > TRUST_S:
            return shown
        return ours if _is_newer(ours, shown) else shown

    def written(self, key: GroupKey, returned: PodGroup | XPodGroup | None, now_s: float) -> None:
        """Note a write, and forget those that nobody asks for any more."""
        self._groups.pop(key, None)
        self._groups[key] = now_s, returned
        while True:
            oldest, (at_s, _) = next(iter(self._groups.items()))
            if now_s - at_s <= TRUST_S and len(self._groups) <= _MAX_REMEMBERED:
                return
            del self._groups[oldest]


def _is_newer(ours: PodGroup | XPodGroup, shown: PodGroup | XPodGroup) -> bool:
    """Tell whether a version that a write returned is newer than what the watch shows."""
    if ours.metadata.uid != shown.metadata.uid:
        return False
    try:
        return int(ours.metadata.resource_version) > int(shown.metadata.resource_version)
    except ValueError:
        return False
