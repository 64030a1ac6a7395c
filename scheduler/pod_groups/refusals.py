"""Why a group is refused, in one sentence that is the same as long as the reason is.

Names and values come in a fixed order, and the text stays below a kilobyte.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plugins.framework.status import Code, Status, unschedulable
from scheduler.decision.decision import Decision, Diagnosis
from scheduler.pod_groups.plan import GroupPlan, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cache.pod_info import PodInfo
    from scheduler.pod_groups.plan import GroupTask
    from scheduler.pod_groups.scopes import Scope, Scopes

MAX_TEXT: Final = 900
"""Characters of a reason: a condition and an Event have room for 1 024."""

MAX_NAME: Final = 80
"""Characters of the value of a label."""

MAX_PART: Final = 500
"""Characters of what one member lacks: the number of the members and the domain come as well."""


def cut(text: str, at_most: int = MAX_TEXT) -> str:
    """Return a text that is not too long."""
    return text if len(text) <= at_most else text[: at_most - 3] + "..."


def broken_off(task: GroupTask) -> GroupPlan:
    """Return the plan of a trial that ended with its budget before anything was known."""
    budget = task.budget
    why = (
        f"attempt stopped: budget exceeded, {budget.limit_s:g} s of CPU time; "
        "the next attempt may use more"
    )
    status = Status(Code.ERROR, (why,))
    return GroupPlan(Verdict.NOT_FOUND, status, (), _all_alike(task, status))


def failed(task: GroupTask, status: Status, refused: Mapping[str, Decision]) -> GroupPlan:
    """Return the plan of a trial in which a plugin failed."""
    return GroupPlan(Verdict.FAILED, status, (), refused or _all_alike(task, status))


def refused_whole(task: GroupTask, reason: str, num_nodes: int) -> GroupPlan:
    """Return the plan of a group that is refused before a member is looked at."""
    status = unschedulable(cut(reason))
    refused = _all_alike(task, status, num_nodes)
    return GroupPlan(Verdict.DOES_NOT_FIT, status, (), refused)


def _all_alike(task: GroupTask, status: Status, num_nodes: int = 0) -> dict[str, Decision]:
    """Return a decision about the first member that stands for all of them."""
    return {info.uid: decision_of(task, info, status, num_nodes) for info in task.members[:1]}


def decision_of(task: GroupTask, info: PodInfo, status: Status, num_nodes: int) -> Decision:
    """Return a decision that refuses a member for a reason that is not a filter's."""
    framework = task.framework
    pre_filter = status if status.is_rejection else None
    return Decision(
        cycle=0,
        profile=framework.profile_name,
        info=info,
        status=status,
        diagnosis=Diagnosis(num_nodes, pre_filter=pre_filter),
        policy=framework.policy,
    )


def members_text(fitting: int, needed: int) -> str:
    """Return how many of the members needed fit."""
    noun = "member" if needed == 1 else "members"
    verb = "fits" if fitting == 1 else "fit"
    return f"{fitting} of {needed} {noun} needed {verb}"


def refusal_text(
    task: GroupTask,
    scopes: Scopes,
    scope: Scope | None,
    fitting: int,
    refused: Mapping[str, Decision],
    verdict: Verdict,
) -> str:
    """Return why too few members fit: how many do, where, and what the next one lacks.

    Parameters
    ----------
    scope
        Where the most members fit.
    """
    text = members_text(fitting, task.needed)
    key = task.rules.topology_key
    if key and scope is not None:
        together = scopes.bound_of_all()
        everywhere = ""
        if together >= task.needed:
            everywhere = f", all of them together for up to {min(together, len(task.members))}"
        text = (
            f"no domain of {key!r} has room for {task.needed} members{everywhere}; "
            f"{cut(repr(scope.domain), MAX_NAME)} comes closest: {text}"
        )
    if verdict is Verdict.NOT_FOUND:
        text = f"no placement was found in the time given: {text}"
    following = next(iter(refused.values()), None)
    if following is not None:
        text += f"; the next one: {cut(following.message(), MAX_PART)}"
    return cut(text)
