"""The groups among the queued pods: while a group gathers, one entry stands for its members.

    gathering   no member has a node: the members are grouped, and tried together
    begun       a member has, or had, a node: those left are tried one by one, as all pods are

An entry moves as a pod does. It is gated until the group can be tried: its object is known, enough
members wait without gates of their own, and all of them name one scheduler. A refused group waits
among the unschedulable pods, and some of its members, the *watchers*, wait there as well: what
would help one of them is worth another attempt of the group.

# Differs: in kube-scheduler members wait one by one, each with a pause of its own, and return after
it whether anything has changed or not; a minimum counts for replacements too, so that they wait for
ever once other members have finished.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from cache.pod_group_objects import MAX_MEMBERS, group_key
from plugins.framework.status import SUCCESS, Status, unresolvable
from scheduler.queueing.group_readiness import lack_of
from scheduler.queueing.queue_states import QueueState
from scheduler.queueing.queued_group import MEMBERS_PER_BUDGET, QueuedGroup, entry_info

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Set

    from cache.objects import Pod
    from cache.pod_group_objects import GroupKey
    from cache.pod_groups import GroupStanding
    from cache.pod_info import PodInfo
    from scheduler.queueing.queued_pod import QueuedPod

GROUP_GATE: Final = "PodGroup"
"""What keeps out an entry that cannot be tried, named as a plugin is."""

MAX_WATCHERS: Final = 16
"""Members of a refused group whose hints are asked. They are chosen for different needs."""

GROUP_CHANGED: Final = "PodGroupChange"
"""The label of the event that a group's object or its members are others."""

_HELD: Final = (QueueState.NOWHERE, QueueState.GATED)
_ALONE: Final = (QueueState.ACTIVE, QueueState.BACKOFF, QueueState.UNSCHEDULABLE)


class Refusers(NamedTuple):
    """The plugins that rejected a member; as in :class:`QueuedPod`."""

    unschedulable: Set[str]
    pending: Set[str] = frozenset()


class Moves(NamedTuple):
    """What the queue does for groups.

    Attributes
    ----------
    move
        Moves an entry or a pod to a state, for an event.
    try_active
        Brings one to active, or to backoff if it pauses, unless it is kept out; called with the
        event, and with whether it pauses.
    shut_out
        Gates one with a status.
    pre_enqueue
        Returns whether the plugins let a pod become active.
    replace
        Puts another version of the pod in place of the one at hand.
    new_entry
        Returns the time and the sequence number of a new entry.
    """

    move: Callable[[QueuedPod, QueueState, str], None]
    try_active: Callable[[QueuedPod, str, bool], bool]
    shut_out: Callable[[QueuedPod, Status, str], None]
    pre_enqueue: Callable[[Pod], Status]
    replace: Callable[[QueuedPod, PodInfo], None]
    new_entry: Callable[[], tuple[float, int]]


class GroupEntries:
    """Store the entries of all groups that queued pods name, and bring them to their states.

    Parameters
    ----------
    standing
        Returns what is known of a group; None to take no pod for a member.
    moves
        The queue's methods, called with its lock held.
    most_members
        A group with more members is not tried.

    Notes
    -----
    *Concurrency*: belongs to the queue and its lock.

    *Cost*: O(1) for a change of a member or of a group, but O(members) when members are tried,
    or when the group begins or gathers again.
    """

    def __init__(
        self,
        standing: Callable[[GroupKey], GroupStanding] | None,
        moves: Moves,
        most_members: int = MAX_MEMBERS,
    ) -> None:
        self._standing = standing
        self._moves = moves
        self._most_members = most_members
        self._groups: dict[GroupKey, QueuedGroup] = {}
        self._kept_out: dict[GroupKey, QueuedGroup] = {}
        """Those that a plugin keeps out, and not what they lack."""

    def __iter__(self) -> Iterator[QueuedGroup]:
        """Iterate over the entries."""
        return iter(self._groups.values())

    def get(self, key: GroupKey) -> QueuedGroup | None:
        """Return the entry of a group, or None while no queued pod names it."""
        return self._groups.get(key)

    # --- members ------------------------------------------------------------------------------

    def join(self, queued: QueuedPod) -> bool:
        """Make a pod a member of the group that it names; return whether that is another one."""
        key = None if self._standing is None else group_key(queued.info.pod)
        was = queued.group
        if (None if was is None else was.key) == key:
            return False
        if was is not None:
            self._leave(queued, was)
        if key is not None:
            group = self._groups.get(key)
            if group is None:
                group = self._groups[key] = self._new(key, queued)
            group.members[queued.info.uid] = queued
            queued.group = group
            if queued.state is QueueState.GROUPED:
                self.moved(queued, GROUP_CHANGED)
        return True

    def _new(self, key: GroupKey, first: QueuedPod) -> QueuedGroup:
        spec = first.info.pod.spec
        info = entry_info(key, spec.scheduler_name, spec.priority or 0)
        since_s, sequence = self._moves.new_entry()
        group = QueuedGroup(info, since_s, sequence, first.sort_key, key=key)
        standing = self._stands(key)
        group.has_begun, group.rules = standing.has_begun, standing.rules
        return group

    def _stands(self, key: GroupKey) -> GroupStanding:
        if self._standing is None:
            raise LookupError(key)
        return self._standing(key)

    def gathers(self, queued: QueuedPod) -> bool:
        """Return whether a pod is tried together with others."""
        return queued.group is not None and not queued.group.has_begun

    def is_missed(self, queued: QueuedPod) -> bool:
        """Return whether a gang that has begun is below its minimum without this pod."""
        return queued.group is not None and queued.group.is_short

    def gather(self, queued: QueuedPod, event: str, *, pauses: bool = True) -> None:
        """Group a member, and wake its group if that was refused."""
        group = queued.group
        if group is None:
            return
        if queued.state is not QueueState.GROUPED:
            self._moves.move(queued, QueueState.GROUPED, event)
        if group.state is QueueState.UNSCHEDULABLE:
            self.wake(group, event, pauses=pauses)
        elif group.state is QueueState.GATED:
            self.settle(group, event)

    def moved(self, queued: QueuedPod, event: str) -> None:
        """Take note of the new state of a member."""
        group = queued.group
        if group is None:
            return
        uid, state = queued.info.uid, queued.state
        is_ready = state is QueueState.GROUPED or (
            state is QueueState.UNSCHEDULABLE and not group.has_begun
        )
        if is_ready and uid not in group.ready:
            group.ready[uid] = queued
            group.priorities[queued.info.priority] += 1
        elif not is_ready:
            self._not_ready(queued, group, event)
        if state is QueueState.NOWHERE:
            self._leave(queued, group)
        self.settle(group, event)

    def _leave(self, queued: QueuedPod, group: QueuedGroup) -> None:
        group.members.pop(queued.info.uid, None)
        self._not_ready(queued, group, GROUP_CHANGED)
        queued.group = None
        self.settle(group, GROUP_CHANGED)

    def _not_ready(self, queued: QueuedPod, group: QueuedGroup, event: str) -> None:
        """Take a member out of the ready ones, if it is one."""
        if group.ready.pop(queued.info.uid, None) is None:
            return
        priority = queued.info.priority
        group.priorities[priority] -= 1
        if group.priorities[priority] <= 0:
            del group.priorities[priority]
        if group.state is QueueState.UNSCHEDULABLE and not group.is_settling:
            # It may have been the one that did not fit, or the only watcher.
            self.wake(group, event)

    # --- the entry ----------------------------------------------------------------------------

    def changed(self, key: GroupKey) -> None:
        """Take note that the object or a member of a group has changed."""
        group = self._groups.get(key)
        if group is None:
            return
        rules = self._stands(key).rules
        if rules != group.rules:
            group.rules = rules
            # Other rules, another group: what was refused before says nothing any more.
            group.unschedulable_count = group.consecutive_errors = 0
            group.backoff_until_s = 0.0
            if group.state in (QueueState.UNSCHEDULABLE, QueueState.BACKOFF):
                self.wake(group, GROUP_CHANGED)
        self.settle(group, GROUP_CHANGED)

    def look_again(self, event: str) -> None:
        """Ask again whether those entries may be tried that a plugin keeps out."""
        for group in list(self._kept_out.values()):
            self.settle(group, event)

    def wake(self, group: QueuedGroup, event: str, *, pauses: bool = True) -> None:
        """Bring a refused group back to active or backoff."""
        self._dismiss_watchers(group, event)
        self._moves.try_active(group, event, pauses)

    def settle(self, group: QueuedGroup, event: str) -> None:
        """Bring an entry to the state that its members and its object give it."""
        if group.is_settling or group.state is QueueState.IN_FLIGHT:
            return
        with group.settling():
            self._settle(group, event)

    def _settle(self, group: QueuedGroup, event: str) -> None:
        if not group.members:
            self._withdraw(group, event)
            if self._groups.get(group.key) is group:
                del self._groups[group.key]
            return
        standing = self._stands(group.key)
        if standing.has_begun != group.has_begun:
            group.has_begun = standing.has_begun
            (self._begin if group.has_begun else self._gather_again)(group, event)
        is_short = standing.has_begun and standing.missing > 0
        if is_short != group.is_short:
            group.is_short = is_short
            for queued in list(group.members.values()):
                self._moves.replace(queued, queued.info)
        if group.has_begun or not group.ready:
            self._withdraw(group, event)
            return
        self._follow(group)
        status = self.readiness(group)
        if status.is_success:
            if group.state in _HELD:
                group.timestamp_s, group.sequence = self._moves.new_entry()
                self._moves.replace(group, group.info)
                self._moves.try_active(group, event, True)
        else:
            self._dismiss_watchers(group, event)
            self._moves.shut_out(group, status, event)
        if group.state is QueueState.GATED and group.gated_by != GROUP_GATE:
            self._kept_out[group.key] = group
        else:
            self._kept_out.pop(group.key, None)

    def _withdraw(self, group: QueuedGroup, event: str) -> None:
        """Take an entry out of the queue that stands for nobody."""
        self._kept_out.pop(group.key, None)
        if group.state is not QueueState.NOWHERE:
            self._moves.move(group, QueueState.NOWHERE, event)

    def _begin(self, group: QueuedGroup, event: str) -> None:
        for queued in list(group.ready.values()):
            self._moves.try_active(queued, event, False)

    def _gather_again(self, group: QueuedGroup, event: str) -> None:
        for queued in list(group.members.values()):
            if queued.state in _ALONE:
                self._moves.move(queued, QueueState.GROUPED, event)

    def _follow(self, group: QueuedGroup) -> None:
        """Give an entry the priority of its group."""
        first = next(iter(group.ready.values())).info.pod.spec.scheduler_name
        own = None if group.rules is None else group.rules.priority
        priority = group.lowest_priority if own is None else own
        spec = group.info.pod.spec
        if (spec.scheduler_name, spec.priority) != (first, priority):
            self._moves.replace(group, entry_info(group.key, first, priority))

    def _dismiss_watchers(self, group: QueuedGroup, event: str) -> None:
        if group.state is not QueueState.UNSCHEDULABLE:
            return
        with group.settling():
            for queued in group.ready.values():
                if queued.state is QueueState.UNSCHEDULABLE:
                    self._moves.move(queued, QueueState.GROUPED, event)

    def readiness(self, group: QueuedGroup) -> Status:
        """Return whether a group can be tried, or what it waits for."""
        standing = self._stands(group.key)
        lack = lack_of(group.key, standing, len(group.ready), self._most_members)
        if lack is not None:
            return unresolvable(lack.text).by(GROUP_GATE)
        status = self._moves.pre_enqueue(group.info.pod)
        return SUCCESS if status.is_success else status

    # --- attempts -----------------------------------------------------------------------------

    def take(self, group: QueuedGroup, now_s: float) -> None:
        """Put the ready members of an entry in flight that was popped."""
        group.tried = tuple(group.ready.values())
        group.allowance_s *= 1 + len(group.tried) / MEMBERS_PER_BUDGET
        for queued in group.tried:
            queued.attempts += 1
            queued.popped_s = now_s
            if queued.initial_attempt_s is None:
                queued.initial_attempt_s = group.initial_attempt_s
            self._moves.move(queued, QueueState.IN_FLIGHT, "")

    def watch(self, group: QueuedGroup, refusers: Mapping[str, Refusers], now_s: float) -> None:
        """Let members of a refused group wait for events: the refused ones, and unlike others."""
        everybody = Refusers(
            frozenset().union(*(each.unschedulable for each in refusers.values())),
            frozenset().union(*(each.pending for each in refusers.values())),
        )
        needs: set[tuple[object, ...]] = set()
        refused = [group.ready[uid] for uid in refusers if uid in group.ready]
        others = [queued for uid, queued in group.ready.items() if uid not in refusers]
        for queued in (*refused, *others):
            need = tuple(sorted(queued.info.requests.items()))
            if need in needs and queued.info.uid not in refusers:
                continue
            needs.add(need)
            by = refusers.get(queued.info.uid, everybody)
            queued.unschedulable_plugins, queued.pending_plugins = by.unschedulable, by.pending
            queued.timestamp_s = now_s
            with group.settling():
                self._moves.move(queued, QueueState.UNSCHEDULABLE, "")
            if len(needs) >= MAX_WATCHERS:
                return
