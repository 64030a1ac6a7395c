"""Report what became of groups: in their status, by an Event on the group, and in their members.

A group has one reason. It is reported when it changes, never once for each attempt or each member:
the status and the Event at once, the text in the members' conditions at most once a minute, and
with a second for each member, as long as the reason is of the same kind. Members that join later
get the text that the others have.

# Differs: kube-scheduler writes an Event about each member for each attempt, and none about the
group, whose condition says neither which member nor what is missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
import structlog

from cache.value import MutableValue
from scheduler.api_writes.pod_condition import POD_SCHEDULED
from scheduler.api_writes.pod_group_status import SCHEDULED, cut_text
from scheduler.decision.profile_origin import DEFAULT_ORIGIN

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cache.objects import Pod
    from cache.pod_group_objects import GroupKey, GroupSource
    from cache.pod_groups import PodGroups
    from cache.pod_info import PodInfo
    from scheduler.api_writes.event_recorder import EventRecorder
    from scheduler.api_writes.event_series import EventType
    from scheduler.api_writes.member_conditions import MemberConditions
    from scheduler.api_writes.pod_group_status_writer import PodGroupStatusWriter
    from scheduler.decision.profile_origin import PolicyOrigin
    from scheduler.kinds import ResourceKind
    from scheduler.process.ports import Ports

MEMBERS_EVERY_S: Final = 60.0
"""The least time between two texts in the members' conditions, where only the numbers differ."""

MEMBER_EVERY_S: Final = 1.0
"""The same for each member: the texts of a large group are no more than a write a second."""

SHORT_LIMIT: Final = 512
"""Characters of a group's reason in the condition of each member."""

UNSCHEDULABLE: Final = "Unschedulable"
SCHEDULER_ERROR: Final = "SchedulerError"
WAITING: Final = "WaitingForPodGroup"
"""The reason in the members' condition while their group cannot be tried: no autoscaler is to add
nodes for a group that waits for its object or for more members."""

log = structlog.get_logger(__name__)


class _Told(MutableValue):
    """What was reported about a group that waits.

    Attributes
    ----------
    uid
        Of the group's object; empty without one.
    member_text
        Reason and text in the conditions of ``members``, written at ``members_at_s``.
    """

    uid: str
    reason: str
    message: str
    member_text: tuple[str, str]
    members_at_s: float
    members: set[str] = msgspec.field(default_factory=set)


def short_text(key: GroupKey, message: str) -> str:
    """Return the reason of a group as its members' conditions say it."""
    text = f'pod group "{key.name}": {message}'
    return text if len(text) <= SHORT_LIMIT else text[: SHORT_LIMIT - 4] + " ..."


class GroupReports:
    """Reports reasons of groups when they change.

    Parameters
    ----------
    ports
        Locks and the clock.
    groups
        All groups.
    kinds
        Returns the kind of the PodGroups of an API, in the version that is watched, or None.
    writer
        Writes the statuses of groups.
    events
        Records Events.
    members
        Writes the conditions of members.

    Notes
    -----
    *Concurrency*: thread-safe, and nothing waits or raises; :meth:`told` belongs to the loop.

    *Cost*: O(members), about 0.1 us for each, and once for each change of the reason what
    :class:`~scheduler.api_writes.member_conditions.MemberConditions` takes on the loop. Memory
    belongs to the groups that wait.
    """

    def __init__(
        self,
        ports: Ports[object],
        groups: PodGroups,
        kinds: Callable[[GroupSource], ResourceKind[Any] | None],
        writer: PodGroupStatusWriter,
        events: EventRecorder,
        members: MemberConditions,
    ) -> None:
        self._clock = ports.clock.monotonic
        self._lock = ports.executor.lock()
        self._groups = groups
        self._kinds = kinds
        self._writer = writer
        self._events = events
        self._members = members
        self._told: dict[GroupKey, _Told] = {}
        groups.subscribe(self._changed)

    def refused(
        self,
        key: GroupKey,
        members: Sequence[PodInfo],
        reason: str,
        message: str,
        *,
        policy: PolicyOrigin = DEFAULT_ORIGIN,
    ) -> None:
        """Report why a group was not placed. To be called for each attempt.

        Parameters
        ----------
        members
            All that wait; not changed afterwards.
        reason
            ``Unschedulable`` or ``SchedulerError``; the members' conditions say the same.
        message
            The one reason for the group.
        """
        self._report(key, members, (reason, message), (reason, short_text(key, message)), policy)

    def held(self, key: GroupKey, members: Sequence[PodInfo], message: str) -> None:
        """Report why a group cannot be tried. See :class:`~.held_groups.HeldGroups`.

        Parameters
        ----------
        message
            What is waited for, or why the group is refused as it is.
        """
        text = (WAITING, short_text(key, message))
        self._report(key, members, (UNSCHEDULABLE, message), text, DEFAULT_ORIGIN)

    def scheduled(
        self, key: GroupKey, message: str, *, policy: PolicyOrigin = DEFAULT_ORIGIN
    ) -> None:
        """Report that at least the minimum of a group has nodes. To be called once for each."""
        with self._lock:
            self._told.pop(key, None)
        self._writer.report(key, SCHEDULED, message)
        self._writer.spared(key, message)
        self._event(key, "Normal", SCHEDULED, "Binding", message, policy)

    def evicting(self, key: GroupKey, message: str) -> None:
        """Report that members of a group are about to be evicted, by status and Event.

        :meth:`told` waits until the status says so.
        """
        self._writer.evicting(key, message)
        self._event(key, "Warning", "Evicting", "Evicting", message, DEFAULT_ORIGIN)

    def spared(self, key: GroupKey, message: str) -> None:
        """Take back in the status what :meth:`evicting` reported."""
        self._writer.spared(key, message)

    async def told(self, key: GroupKey) -> None:
        """Wait until the status of a group says what was reported, two seconds at most."""
        await self._writer.written(key)

    def names_two(self, member: Pod, label: str) -> None:
        """Report that the label of a member does not count, since its field names a group."""
        field = member.spec.scheduling_group
        name = "" if field is None else field.pod_group_name
        note = f'the pod belongs to pod group "{name}", the label that names "{label}" is ignored'
        self._events.event(member, "Warning", "PodGroupLabelIgnored", "Scheduling", note)

    def evicted(self, member: Pod, message: str) -> None:
        """Report that a member of a partial gang was evicted, by an Event on the pod."""
        self._events.event(member, "Warning", "PartialGangEvicted", "Evicting", message)

    def _report(
        self,
        key: GroupKey,
        members: Sequence[PodInfo],
        text: tuple[str, str],
        member_text: tuple[str, str],
        policy: PolicyOrigin,
    ) -> None:
        try:
            reason, message = text[0], cut_text(text[1])
            is_first, is_new = self._note(key, (reason, message))
            if is_first and self._is_shown(members, member_text):
                is_new = False  # another leader has reported it
            if is_new:
                log.info("pod group waits", group=str(key), reason=message, policy=policy.text)
                self._event(key, "Warning", "FailedScheduling", "Scheduling", message, policy)
            if is_first or is_new:
                self._writer.report(key, reason, message)
            self._tell_members(key, members, member_text)
        except Exception:
            # Whatever cannot be reported changes nothing of what becomes of the group.
            log.exception("a pod group could not be reported", group=str(key))

    def _note(self, key: GroupKey, text: tuple[str, str]) -> tuple[bool, bool]:
        """Note a reason; return whether it is the first one of a group, and whether it is new."""
        rules = self._groups.rules(key)
        uid = "" if rules is None else rules.uid
        with self._lock:
            told = self._told.get(key)
            if told is None:
                self._told[key] = _Told(uid, *text, ("", ""), 0.0)
                return True, True
            is_new = (told.uid, told.reason, told.message) != (uid, *text)
            told.uid, (told.reason, told.message) = uid, text
            return False, is_new

    def _tell_members(
        self, key: GroupKey, members: Sequence[PodInfo], text: tuple[str, str]
    ) -> None:
        now_s = self._clock()
        with self._lock:
            told = self._told.get(key)
            if told is None:
                return
            pause_s = max(MEMBERS_EVERY_S, MEMBER_EVERY_S * len(members))
            is_due = now_s - told.members_at_s >= pause_s
            if text != told.member_text and (is_due or text[0] != told.member_text[0]):
                told.member_text, told.members_at_s = text, now_s
                told.members = set()
            newcomers = [each for each in members if each.uid not in told.members]
            told.members = {each.uid for each in members}
            reason, message = told.member_text
        if newcomers:
            self._members.tell(key, newcomers, reason, message)

    def _is_shown(self, members: Sequence[PodInfo], text: tuple[str, str]) -> bool:
        """Tell whether the members' conditions have this text: a leader before us wrote it."""
        return any(
            condition.type == POD_SCHEDULED and (condition.reason, condition.message) == text
            for member in members[:1]
            for condition in member.pod.status.conditions
        )

    def _event(
        self,
        key: GroupKey,
        event_type: EventType,
        reason: str,
        action: str,
        note: str,
        policy: PolicyOrigin,
    ) -> None:
        report, kind = self._groups.report(key), self._kinds(key.source)
        if report is None or report.described_by is None or kind is None:
            return  # there is no object that it could be about
        self._events.group_event(
            report.described_by.metadata,
            kind.group_version,
            event_type,
            reason,
            action,
            note,
            policy=policy,
        )

    def _changed(self, key: GroupKey) -> None:
        """Forget what was told about a group that is gone, or whose members go alone by now."""
        if key in self._told:
            report = self._groups.report(key)
            if report is None or report.standing.has_begun or not report.standing.counts.members:
                with self._lock:
                    self._told.pop(key, None)
