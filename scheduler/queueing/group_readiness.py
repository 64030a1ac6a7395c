"""What a group lacks before it can be tried: its object, valid rules, one scheduler, members."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from cache.pod_group_objects import GroupKey
    from cache.pod_groups import GroupStanding


class Lack(NamedTuple):
    """Why a group cannot be tried.

    Attributes
    ----------
    cause
        ``object``, ``rules``, ``scheduler_names``, ``size``, ``members`` or ``gates``.
    text
        For people.
    """

    cause: str
    text: str


def lack_of(key: GroupKey, standing: GroupStanding, ready: int, most_members: int) -> Lack | None:
    """Return what a group lacks, or None for one that can be tried.

    Parameters
    ----------
    ready
        Its members that can be tried.
    most_members
        A group with more members is not tried.
    """
    rules, counts = standing.rules, standing.counts
    if rules is None:
        return Lack("object", f'waiting for pod group "{key.name}" to appear')
    if rules.problem:
        return Lack("rules", f"the pod group is refused: {rules.problem}")
    if len(standing.scheduler_names) > 1:
        names = ", ".join(map(repr, standing.scheduler_names))
        return Lack("scheduler_names", f"members name different schedulers: {names}")
    total = counts.known + counts.gated
    if total > most_members:
        return Lack("size", f"{total} members are more than {most_members}")
    known = ready + standing.satisfied
    if known >= rules.minimum:
        return None
    gated = f", {counts.gated} more have scheduling gates" if counts.gated else ""
    cause = "gates" if known + counts.gated >= rules.minimum else "members"
    return Lack(cause, f"waiting for members: {known} of at least {rules.minimum} wait{gated}")
