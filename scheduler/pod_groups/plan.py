"""What a trial of a group finds out: a node for each member that fits, or why the group waits."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from cache.value import Value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cache.pod_group_objects import GroupRules
    from cache.pod_info import PodInfo
    from plugins.framework.attempt_budget import AttemptBudget
    from plugins.framework.cycle_state import CycleState
    from plugins.framework.status import Status
    from scheduler.decision.decision import Decision
    from scheduler.runtime.framework_runner import FrameworkRunner


class Verdict(Enum):
    """How a trial ended."""

    FITS = "fits"
    """At least the minimum fits."""
    DOES_NOT_FIT = "does not fit"
    """It is known that the minimum does not fit."""
    NOT_FOUND = "not found in the time given"
    """No way was found to place the minimum, and not all were tried."""
    FAILED = "failed"
    """A plugin failed, so that nobody knows."""


class GroupTask(Value, frozen=True):
    """A group whose members are to be placed together.

    Parameters
    ----------
    rules
        The rules of the group.
    framework
        The profile that its members name.
    members
        Those that wait, without scheduling gates, in the order of their creation.
    needed
        How many of them have to fit, at least 1: the minimum less those that are satisfied.
    budget
        CPU seconds for the whole group.
    """

    rules: GroupRules
    framework: FrameworkRunner
    members: Sequence[PodInfo]
    needed: int
    budget: AttemptBudget


class PlacedMember(Value, frozen=True):
    """A member that fits: it is in the snapshot, and everything of it is reserved in ``state``."""

    decision: Decision
    state: CycleState


class GroupPlan(Value, frozen=True):
    """The result of a trial.

    Parameters
    ----------
    status
        Success, or the refusal of the group: Unschedulable, or an Error when a plugin failed or
        the budget ran out before anything was known. Its message is the one reason for the group:
        below a kilobyte, and the same as long as the reason is.
    placed
        Empty unless the verdict is FITS. Otherwise the snapshot holds these members, and their
        reservations stand; in all other cases everything is undone.
    refused
        The decisions about members that were found not to fit, by UID: at least one member when
        the verdict is DOES_NOT_FIT or NOT_FOUND. One of each shape is enough.
    fitting
        The most members that fitted together.
    counted
        How many of the members placed were placed by counting; the others by search.
    domain
        The value of the required topology key of the domain that was chosen; empty without one.
    preferred_domain
        The value of the preferred topology key of the domain that holds the minimum; empty without
        one, and when only a wider domain, or the whole cluster, had room.
    """

    verdict: Verdict
    status: Status
    placed: tuple[PlacedMember, ...]
    refused: Mapping[str, Decision]
    fitting: int = 0
    counted: int = 0
    domain: str = ""
    preferred_domain: str = ""
