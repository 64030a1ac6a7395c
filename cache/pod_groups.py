"""The groups of pods: their rules, and their members by state.

A group is known by its object, by its members, or by both; which of them comes first does not
matter. What has no object and no member any more is forgotten.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from cache.pod_group_objects import (
    GroupRules,
    group_key,
    rules_of_pod_group,
    rules_of_x_pod_group,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cache.locks import MakeLock
    from cache.objects import Pod
    from cache.pod_group_objects import GroupKey, PodGroup, XPodGroup

SUCCEEDED = "Succeeded"
FAILED = "Failed"


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
    """

    uid: str
    name: str
    state: MemberState
    scheduler_name: str
    node_name: str
    priority: int
    is_terminating: bool


class GroupCounts(NamedTuple):
    """The members of a group by state; those that are being deleted count until they are gone."""

    gated: int
    waiting: int
    assigned: int
    succeeded: int
    failed: int

    @property
    def known(self) -> int:
        """The members that count for the minimum: all but gated and failed ones."""
        return self.waiting + self.assigned + self.succeeded

    @property
    def satisfied(self) -> int:
        """The members that need no decision any more."""
        return self.assigned + self.succeeded


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
    )


@dataclass(slots=True)
class _Group:
    rules: GroupRules | None = None
    members: dict[str, Member] = field(default_factory=dict)


class PodGroups:
    """All groups of the cluster.

    Notes
    -----
    *Concurrency*: thread-safe; written from the I/O loop, read from any thread. Listeners are
    called without the lock, on the thread that made the change.

    *Cost*: a change O(1); the methods that return members or counts O(members).
    """

    def __init__(self, make_lock: MakeLock = threading.Lock) -> None:
        self._lock = make_lock()
        self._groups: dict[GroupKey, _Group] = {}
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

    def counts(self, key: GroupKey) -> GroupCounts:
        """Return how many members of a group there are in each state."""
        members = self.members(key).values()
        states = [member.state for member in members]
        return GroupCounts(*(states.count(state) for state in MemberState))

    def keys(self) -> tuple[GroupKey, ...]:
        """Return all groups that have an object or a member."""
        with self._lock:
            return tuple(self._groups)

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
        )

    def x_pod_group_changed(self, old: XPodGroup | None, new: XPodGroup | None) -> None:
        """Store a PodGroup of ``scheduling.x-k8s.io``; ``new`` is None for a deleted one."""
        self._rules_changed(
            None if old is None else rules_of_x_pod_group(old),
            None if new is None else rules_of_x_pod_group(new),
        )

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Store a pod in any state as a member of its group; ``new`` is None for a deleted one."""
        was = None if old is None else group_key(old)
        now = None if new is None else group_key(new)
        changed: list[GroupKey] = []
        with self._lock:
            if old is not None and was is not None and was != now:
                self._leave_locked(was, old.metadata.uid)
                changed.append(was)
            if new is not None and now is not None:
                group = self._groups.setdefault(now, _Group())
                member = member_of(new)
                if group.members.get(member.uid) != member:
                    group.members[member.uid] = member
                    changed.append(now)
        self._tell(changed)

    def _leave_locked(self, key: GroupKey, uid: str) -> None:
        group = self._groups.get(key)
        if group is not None:
            group.members.pop(uid, None)
            self._forget_empty_locked(key, group)

    def _rules_changed(self, old: GroupRules | None, new: GroupRules | None) -> None:
        subject = new if new is not None else old
        if subject is None:
            return
        key = subject.key
        with self._lock:
            group = self._groups.setdefault(key, _Group())
            is_same = group.rules == new
            group.rules = new
            self._forget_empty_locked(key, group)
        if not is_same:
            self._tell([key])

    def _forget_empty_locked(self, key: GroupKey, group: _Group) -> None:
        if group.rules is None and not group.members:
            del self._groups[key]

    def _tell(self, keys: list[GroupKey]) -> None:
        for key in keys:
            for listener in self._listeners:
                listener(key)
