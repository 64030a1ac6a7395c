"""The groups of pods: their rules, and their members by state.

A group is known by its object, by its members, or by both; which of them comes first does not
matter. What has no object and no member any more is forgotten.
"""

from __future__ import annotations

import threading
from collections import Counter
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from cache.pod_group_objects import (
    GroupRules,
    group_key,
    rules_of_pod_group,
    rules_of_x_pod_group,
)
from cache.value import MutableValue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cache.locks import MakeLock
    from cache.objects import Pod
    from cache.pod_group_objects import GroupKey, PodGroup, XPodGroup

RUNNING = "Running"
SUCCEEDED = "Succeeded"
FAILED = "Failed"

_MAX_OWNERS: Final = 16
"""Owners of a member that are kept. A pod has one or two; the API has no limit."""


class MemberState(Enum):
    """The state of a member, as the API shows it."""

    GATED = "gated"
    """It has scheduling gates, and does not count."""
    WAITING = "waiting"
    """It has no node."""
    ASSIGNED = "assigned"
    """It has a node."""
    SUCCEEDED = "succeeded"
    """It has ended well, and counts as satisfied."""
    FAILED = "failed"
    """It has ended otherwise, and does not count."""


class Member(NamedTuple):
    """A pod of a group.

    Attributes
    ----------
    node_name
        Empty for a member without a node.
    is_terminating
        Whether it is being deleted.
    is_running
        Whether its phase is ``Running``.
    """

    uid: str
    name: str
    state: MemberState
    scheduler_name: str
    node_name: str
    priority: int
    is_terminating: bool
    is_running: bool = False

    @property
    def has_ended(self) -> bool:
        """Whether it runs no more."""
        return self.state in (MemberState.SUCCEEDED, MemberState.FAILED)

    @property
    def stays(self) -> bool:
        """Whether it has a node, and is not being deleted."""
        return self.state is MemberState.ASSIGNED and not self.is_terminating


class GroupCounts(NamedTuple):
    """The members of a group by state."""

    gated: int = 0
    waiting: int = 0
    assumed: int = 0
    """Those of the waiting ones that are decided, and that the API does not show with a node."""
    assigned: int = 0
    succeeded: int = 0
    failed: int = 0
    running: int = 0
    """Those whose phase is ``Running``; they count among the others as well."""
    leaving: int = 0
    """Those of the assigned ones that are being deleted."""

    @property
    def members(self) -> int:
        """All members in any state."""
        return self.gated + self.waiting + self.assigned + self.succeeded + self.failed

    @property
    def known(self) -> int:
        """The members that count for the minimum: all but gated and failed ones."""
        return self.waiting + self.assigned + self.succeeded

    @property
    def satisfied(self) -> int:
        """The members that need no decision any more, but for those that are being deleted."""
        return self.assumed + self.assigned - self.leaving + self.succeeded


class GroupStanding(NamedTuple):
    """A group at one moment.

    Attributes
    ----------
    rules
        None while no object describes the group.
    scheduler_names
        Of the members that have not ended, in order.
    is_evicted
        Whether all of its members are being evicted.
    """

    rules: GroupRules | None
    counts: GroupCounts
    scheduler_names: tuple[str, ...]
    is_evicted: bool = False

    @property
    def has_begun(self) -> bool:
        """Whether a member has, or had, a node: the members left are placed one by one.

        A group that has begun was decided as a whole once, whoever decided it, so that nothing has
        to be remembered about it. One that loses all of its members begins anew.
        """
        return self.satisfied > 0

    @property
    def satisfied(self) -> int:
        """The members that need no decision and stay."""
        return 0 if self.is_evicted else self.counts.satisfied

    @property
    def missing(self) -> int:
        """How many more members the minimum needs; 0 for a group without rules."""
        return 0 if self.rules is None else max(self.rules.minimum - self.satisfied, 0)


_NOTHING_KNOWN: Final = GroupStanding(None, GroupCounts(), ())


class GroupReport(NamedTuple):
    """A group with what its status is derived from.

    Attributes
    ----------
    described_by
        The latest version of its object; None while there is none.
    all_scheduler_names
        Of the members, those that have ended included.
    owners
        Of the last member that came or changed and has any: ``namespace/name`` of each, sorted,
        with commas between them.
    """

    standing: GroupStanding
    described_by: PodGroup | XPodGroup | None
    all_scheduler_names: frozenset[str]
    owners: str


def member_of(pod: Pod) -> Member:
    """Return a pod as a member of its group."""
    spec = pod.spec
    if pod.status.phase == SUCCEEDED:
        state = MemberState.SUCCEEDED
    elif pod.status.phase == FAILED:
        state = MemberState.FAILED
    elif spec.node_name:
        state = MemberState.ASSIGNED
    else:
        state = MemberState.GATED if spec.scheduling_gates else MemberState.WAITING
    metadata = pod.metadata
    return Member(
        metadata.uid,
        metadata.name,
        state,
        spec.scheduler_name,
        spec.node_name,
        spec.priority or 0,
        metadata.deletion_timestamp is not None,
        pod.status.phase == RUNNING,
    )


def _is_waiting(member: Member) -> bool:
    """Return whether the API shows a member without a node, and not ended."""
    return member.state in (MemberState.GATED, MemberState.WAITING)


def _owners(pod: Pod) -> str:
    """Return the owners of a pod as a group's status names them; cut to `_MAX_OWNERS`."""
    namespace = pod.metadata.namespace
    names = sorted(owner.name for owner in pod.metadata.owner_references)
    return ",".join(f"{namespace}/{name}" for name in names[:_MAX_OWNERS])


class _Group(MutableValue):
    rules: GroupRules | None = None
    described_by: PodGroup | XPodGroup | None = None
    members: dict[str, Member] = msgspec.field(default_factory=dict)
    assumed: set[str] = msgspec.field(default_factory=set)
    """By UID; never one that the API shows with a node or as ended."""
    states: Counter[MemberState] = msgspec.field(default_factory=Counter)
    running: int = 0
    leaving: int = 0
    evictions: int = 0
    """How many are under way; each concerns all members."""
    evicted: frozenset[str] = frozenset()
    """By UID: members whose deletion was accepted, and that the API does not show to leave yet."""
    scheduler_names: Counter[tuple[str, bool]] = msgspec.field(default_factory=Counter)
    """With whether the members that name it have ended."""
    owners: str = ""

    def put(self, member: Member) -> bool:
        """Store a member; return whether anything is different now."""
        known = self.members.get(member.uid)
        if known == member:
            return False
        self._count(known, -1)
        self.members[member.uid] = member
        self._count(member, 1)
        if not _is_waiting(member):
            self.assumed.discard(member.uid)
        if not member.stays:
            self.evicted -= {member.uid}
        return True

    def drop(self, uid: str) -> None:
        self._count(self.members.pop(uid, None), -1)
        self.assumed.discard(uid)
        self.evicted -= {uid}

    def end_eviction(self, leaving: Iterable[str]) -> None:
        self.evictions = max(self.evictions - 1, 0)
        members = self.members
        self.evicted |= {uid for uid in leaving if uid in members and members[uid].stays}

    @property
    def is_evicted(self) -> bool:
        return self.evictions > 0 or bool(self.evicted)

    def _count(self, member: Member | None, step: int) -> None:
        if member is None:
            return
        self.states[member.state] += step
        if member.is_running:
            self.running += step
        if member.state is MemberState.ASSIGNED and member.is_terminating:
            self.leaving += step
        name = (member.scheduler_name, member.has_ended)
        self.scheduler_names[name] += step
        if not self.scheduler_names[name]:
            del self.scheduler_names[name]

    @property
    def is_partial(self) -> bool:
        """Whether some of the minimum have a node, others have none, and nobody has succeeded."""
        states = self.states
        if self.rules is None or states[MemberState.SUCCEEDED]:
            return False
        return 0 < len(self.assumed) + states[MemberState.ASSIGNED] < self.rules.minimum

    def standing(self) -> GroupStanding:
        states = self.states
        counts = GroupCounts(
            states[MemberState.GATED],
            states[MemberState.WAITING],
            len(self.assumed),
            states[MemberState.ASSIGNED],
            states[MemberState.SUCCEEDED],
            states[MemberState.FAILED],
            self.running,
            self.leaving,
        )
        names = sorted(name for name, has_ended in self.scheduler_names if not has_ended)
        return GroupStanding(self.rules, counts, tuple(names), self.is_evicted)


class PodGroups:
    """All groups of the cluster.

    Notes
    -----
    *Concurrency*: thread-safe; written from the I/O loop, read from any thread. Listeners are
    called without the lock, on the thread that made the change.

    *Cost*: a change and :meth:`standing` O(1), :meth:`members` O(members). A change of a pod that
    names no group takes 0.3 us, and no lock.
    """

    def __init__(self, make_lock: MakeLock = threading.Lock) -> None:
        self._lock = make_lock()
        self._groups: dict[GroupKey, _Group] = {}
        self._partial: dict[GroupKey, None] = {}
        self._stayed: dict[str, GroupKey | None] = {}
        """By UID: the groups of pods with a node that have named others since they have it."""
        self._listeners: tuple[Callable[[GroupKey], object], ...] = ()

    # --- reading ------------------------------------------------------------------------------

    def rules(self, key: GroupKey) -> GroupRules | None:
        """Return the rules of a group, or None while its object is not known."""
        with self._lock:
            group = self._groups.get(key)
            return None if group is None else group.rules

    def members(self, key: GroupKey) -> Mapping[str, Member]:
        """Return the members of a group by UID as they are now."""
        with self._lock:
            group = self._groups.get(key)
            return {} if group is None else dict(group.members)

    def standing(self, key: GroupKey) -> GroupStanding:
        """Return a group as it is now; one that is not known has neither rules nor members."""
        with self._lock:
            group = self._groups.get(key)
            return _NOTHING_KNOWN if group is None else group.standing()

    def report(self, key: GroupKey) -> GroupReport | None:
        """Return what a group's status is derived from, or None for a group that is not known."""
        with self._lock:
            group = self._groups.get(key)
            if group is None:
                return None
            names = frozenset(name for name, _ in group.scheduler_names)
            return GroupReport(group.standing(), group.described_by, names, group.owners)

    def partial(self) -> tuple[GroupKey, ...]:
        """Return the groups that have begun, are below their minimum, and have no success yet.

        *Cost*: O(partial groups).
        """
        with self._lock:
            return tuple(self._partial)

    def is_partial(self, key: GroupKey) -> bool:
        """Tell whether a group is one of :meth:`partial`."""
        with self._lock:
            return key in self._partial

    def key_of(self, pod: Pod) -> GroupKey | None:
        """Return the group of a known pod: the one that it names, or named when it got its node."""
        return self._stayed.get(pod.metadata.uid, group_key(pod))

    def keys(self) -> tuple[GroupKey, ...]:
        """Return all groups that have an object or a member."""
        with self._lock:
            return tuple(self._groups)

    @property
    def has_any(self) -> bool:
        """Whether any group has an object or a member."""
        return bool(self._groups)

    def subscribe(self, listener: Callable[[GroupKey], object]) -> None:
        """Call ``listener`` with the key of each group whose rules or members have changed."""
        with self._lock:
            self._listeners = (*self._listeners, listener)

    # --- what the watches report --------------------------------------------------------------

    def pod_group_changed(self, old: PodGroup | None, new: PodGroup | None) -> None:
        """Store a PodGroup of ``scheduling.k8s.io``; ``new`` is None for a deleted one."""
        self._rules_changed(
            None if old is None else rules_of_pod_group(old),
            None if new is None else rules_of_pod_group(new),
            new,
        )

    def x_pod_group_changed(self, old: XPodGroup | None, new: XPodGroup | None) -> None:
        """Store a PodGroup of ``scheduling.x-k8s.io``; ``new`` is None for a deleted one."""
        self._rules_changed(
            None if old is None else rules_of_x_pod_group(old),
            None if new is None else rules_of_x_pod_group(new),
            new,
        )

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Store a pod in any state as a member of its group; ``new`` is None for a deleted one.

        A waiting pod that changes its label leaves one group and joins the other. A pod with a
        node stays where it was: else a label on a bound pod could make a group partial, or let
        one begin that has not been decided. A new process knows the label only.
        """
        was = None if old is None else group_key(old)
        now = None if new is None else group_key(new)
        if was is None and now is None and not self._stayed:
            return
        changed: list[GroupKey] = []
        with self._lock:
            if old is not None:
                uid = old.metadata.uid
                was = self._stayed.pop(uid, was)
                if new is not None and was != now and not _is_waiting(member_of(old)):
                    now = self._stayed[uid] = was
                if was is not None and was != now:
                    self._leave_locked(was, uid)
                    changed.append(was)
            if new is not None and now is not None:
                group = self._group_locked(now)
                if group.put(member_of(new)):
                    group.owners = _owners(new) or group.owners
                    self._note_locked(now, group)
                    changed.append(now)
        self._tell(changed)

    # --- what is decided ----------------------------------------------------------------------

    def assume(self, key: GroupKey, uids: Iterable[str]) -> None:
        """Count waiting members as satisfied, since they are decided. Nobody is told."""
        with self._lock:
            group = self._groups.get(key)
            if group is not None:
                members = group.members
                group.assumed.update(
                    uid for uid in uids if uid in members and _is_waiting(members[uid])
                )
                self._note_locked(key, group)

    def begin_eviction(self, key: GroupKey) -> None:
        """Take note that all members of a group are being evicted.

        No member is placed meanwhile because others have nodes: they are about to lose them.
        """
        with self._lock:
            group = self._groups.get(key)
            if group is None:
                return
            group.evictions += 1
        self._tell([key])

    def end_eviction(self, key: GroupKey, leaving: Iterable[str]) -> None:
        """Take note that the eviction of a group has ended.

        Parameters
        ----------
        leaving
            The UIDs of the members that leave. Until the API shows that of all of them, the group
            is evicted still: replacements would be placed beside members that are gone.
        """
        with self._lock:
            group = self._groups.get(key)
            if group is None:
                return
            group.end_eviction(leaving)
        self._tell([key])

    def forget(self, key: GroupKey, uid: str) -> None:
        """Take back that a member is decided, if it has no node yet."""
        self.forget_all(key, (uid,))

    def forget_all(self, key: GroupKey, uids: Iterable[str]) -> None:
        """Take back that members are decided, all at once."""
        with self._lock:
            group = self._groups.get(key)
            was_assumed = False
            if group is not None:
                before = len(group.assumed)
                group.assumed.difference_update(uids)
                was_assumed = len(group.assumed) < before
                self._note_locked(key, group)
        if was_assumed:
            self._tell([key])

    def _group_locked(self, key: GroupKey) -> _Group:
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group()
        return group

    def _leave_locked(self, key: GroupKey, uid: str) -> None:
        group = self._groups.get(key)
        if group is not None:
            group.drop(uid)
            self._note_locked(key, group)

    def _rules_changed(
        self,
        old: GroupRules | None,
        new: GroupRules | None,
        described_by: PodGroup | XPodGroup | None,
    ) -> None:
        subject = new if new is not None else old
        if subject is None:
            return
        key = subject.key
        with self._lock:
            group = self._group_locked(key)
            is_same = group.rules == new
            group.rules, group.described_by = new, described_by
            self._note_locked(key, group)
        if not is_same:
            self._tell([key])

    def _note_locked(self, key: GroupKey, group: _Group) -> None:
        """Note whether a group that has changed is partial, and forget it if nothing is left."""
        if group.is_partial:
            self._partial[key] = None
        else:
            self._partial.pop(key, None)
        if group.rules is None and not group.members:
            del self._groups[key]

    def _tell(self, keys: list[GroupKey]) -> None:
        for key in keys:
            for listener in self._listeners:
                listener(key)
