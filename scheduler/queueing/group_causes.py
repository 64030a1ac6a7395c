"""Count the groups that wait, by what each of them waits for."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from cache.pod_group_objects import MAX_MEMBERS
from plugins import names
from scheduler.queueing.group_entries import GROUP_GATE
from scheduler.queueing.group_readiness import lack_of
from scheduler.queueing.queue_states import QueueState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cache.pod_group_objects import GroupKey
    from cache.pod_groups import GroupStanding
    from scheduler.queueing.pending_pods import WaitingGroup

CAUSES: Final = (
    "object",
    "rules",
    "scheduler_names",
    "members",
    "gates",
    "size",
    "preemption",
    "plugin",
    "active",
    "backoff",
    "refused",
)
"""All values: the object is unknown; its rules are refused; members name different schedulers; too
few members; enough members, but too many have gates of their own; too many members; victims are
evicted for the group; another plugin gates it; it is next; it pauses; it did not fit, or its
minResources are beyond the cluster."""

_OF_STATE: Final = {
    QueueState.ACTIVE: "active",
    QueueState.BACKOFF: "backoff",
    QueueState.UNSCHEDULABLE: "refused",
}


def waiting_by_cause(
    groups: Iterable[WaitingGroup], standing: Callable[[GroupKey], GroupStanding]
) -> dict[str, float]:
    """Return the number of groups for each of `CAUSES`.

    Parameters
    ----------
    standing
        Returns what is known of a group.

    Notes
    -----
    *Cost*: about 2 us for each group.
    """
    counts = Counter(_cause(group, standing) for group in groups)
    return {cause: float(counts[cause]) for cause in CAUSES}


def _cause(group: WaitingGroup, standing: Callable[[GroupKey], GroupStanding]) -> str:
    if group.state is not QueueState.GATED:
        return _OF_STATE.get(group.state, "active")
    if group.gated_by != GROUP_GATE:
        return "preemption" if group.gated_by == names.DEFAULT_PREEMPTION else "plugin"
    stands = standing(group.key)
    lack = lack_of(group.key, stands, stands.counts.waiting, MAX_MEMBERS)
    # One that lacks nothing else has more members than a lower limit allows.
    return "size" if lack is None else lack.cause
