"""What a gang loses when one of its members is evicted.

A gang may lose the members beyond its minimum one by one. One that would be left below its minimum
is evicted whole, wherever its members run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from cache.value import MutableValue, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from cache.columns import Columns
    from cache.objects import Pod
    from cache.pod_group_objects import GroupKey, GroupRules
    from cache.pod_groups import PodGroups
    from cache.pod_info import PodInfo
    from plugins.framework.handle import Preemption

Stakes: TypeAlias = "tuple[tuple[GroupKey, Gang | None], ...]"
"""The groups with members among some pods, each as the gang that it was then."""

_NO_STAKES: Final[Stakes] = ()
_NO_MEMBERS: Final[Mapping[str, PodInfo]] = {}


class Gang(Value, frozen=True):
    """A group whose members are protected, as one search sees it.

    Parameters
    ----------
    rules
        Of the group.
    members
        Those on nodes that stay, by UID: neither terminating nor about to be evicted.
    spare
        How many of them may be evicted while the others remain.
    """

    rules: GroupRules
    members: Mapping[str, PodInfo]
    spare: int

    @property
    def key(self) -> GroupKey:
        """The identity of the group."""
        return self.rules.key

    @property
    def size(self) -> int:
        """The number of members that the gang loses as a whole."""
        return len(self.members)

    def priority_of(self, member: PodInfo) -> int:
        """Return the priority of a member as a victim: its own or the group's, the higher one."""
        priority = self.rules.priority
        return member.priority if priority is None else max(member.priority, priority)

    @property
    def priority(self) -> int:
        """The priority of the gang as a victim: that of its most important member."""
        return max(map(self.priority_of, self.members.values()))

    def is_evictable_below(self, priority: int) -> bool:
        """Return whether all members are less important than a preemptor with a priority."""
        return all(self.priority_of(each) < priority for each in self.members.values())


class GroupMembers:
    """The members of all groups that are on nodes, by group.

    Parameters
    ----------
    key_of
        Returns the group of a pod, or None.

    Notes
    -----
    *Concurrency*: confined to the thread of the columns.

    *Cost*: a fraction of a microsecond for each pod on a node that has changed.
    """

    def __init__(self, key_of: Callable[[Pod], GroupKey | None]) -> None:
        self._group_of = key_of
        self._columns: Columns | None = None
        self._cursor = 0
        self._by_row: dict[int, tuple[tuple[GroupKey, str], ...]] = {}
        self._groups: dict[GroupKey, dict[str, PodInfo]] = {}
        self._key_of: dict[str, GroupKey] = {}
        self.changed: set[GroupKey] = set()
        """The groups that have changed; emptied by the reader."""

    def follow(self, columns: Columns) -> None:
        """Take over the nodes that have changed."""
        if columns is not self._columns:
            self.changed.update(self._groups)
            self._by_row.clear()
            self._groups.clear()
            self._key_of.clear()
            self._columns, self._cursor = columns, 0
        self._cursor, rows = columns.follow(self._cursor)
        rows = tuple(rows)
        for row in rows:
            for key, uid in self._by_row.pop(row, ()):
                self._drop(key, uid)
        for row in rows:
            info = columns.info_at(row)
            if info is not None:
                self._add(row, info.pods.values())

    def of(self, key: GroupKey) -> Mapping[str, PodInfo]:
        """Return the members of a group by UID."""
        return self._groups.get(key, _NO_MEMBERS)

    def key_of(self, uid: str) -> GroupKey | None:
        """Return the group of the pod on a node with a UID; None for a pod without a group."""
        return self._key_of.get(uid)

    def _add(self, row: int, pods: Iterable[PodInfo]) -> None:
        added = []
        for info in pods:
            key = self._group_of(info.pod)
            if key is not None:
                self._groups.setdefault(key, {})[info.uid] = info
                self._key_of[info.uid] = key
                added.append((key, info.uid))
                self.changed.add(key)
        if added:
            self._by_row[row] = tuple(added)

    def _drop(self, key: GroupKey, uid: str) -> None:
        self.changed.add(key)
        self._key_of.pop(uid, None)
        members = self._groups[key]
        members.pop(uid, None)
        if not members:
            del self._groups[key]


class _Known(MutableValue):
    """A gang, or None for a group without protection, and what it was derived from."""

    source: tuple[GroupRules | None, int, frozenset[str]]
    gang: Gang | None


@dataclass(slots=True)
class Gangs:
    """The gangs of the cluster, kept between searches.

    A gang that has not changed is the same object in the next search.

    Parameters
    ----------
    pod_groups
        Returns the rules of groups, and the members that have succeeded.
    preemption
        Returns the service that knows which pods are about to be evicted, as far as no watch
        shows it.

    Notes
    -----
    *Concurrency*: confined to the scheduling thread.
    """

    pod_groups: Callable[[], PodGroups]
    preemption: Callable[[], Preemption]
    may_exist: bool = False
    """Whether there is any group; if not, nothing else is asked."""
    _members: GroupMembers = field(init=False)
    _known: dict[GroupKey, _Known] = field(default_factory=dict)
    _current: dict[GroupKey, Gang | None] = field(default_factory=dict)
    """Those that this search has asked for."""
    _leaving: dict[GroupKey, set[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._members = GroupMembers(lambda pod: self.pod_groups().key_of(pod))

    def begin(self, columns: Columns) -> None:
        """Begin a search among some nodes."""
        self._current.clear()
        self._leaving.clear()
        self.may_exist = self.pod_groups().has_any
        if not self.may_exist:
            return
        members = self._members
        members.follow(columns)
        for uid in self.preemption().leaving():
            key = members.key_of(uid)
            if key is not None:
                self._leaving.setdefault(key, set()).add(uid)

    def key_of(self, info: PodInfo) -> GroupKey | None:
        """Return the group of a pod, or None."""
        return self.pod_groups().key_of(info.pod) if self.may_exist else None

    def of(self, info: PodInfo) -> Gang | None:
        """Return the gang that loses a member when a pod on a node is evicted, or None."""
        key = self.key_of(info)
        if key is None:
            return None
        gang = self.get(key)
        return gang if gang is not None and info.uid in gang.members else None

    def get(self, key: GroupKey) -> Gang | None:
        """Return the gang with a key; None for a group without protection."""
        try:
            return self._current[key]
        except KeyError:
            gang = self._current[key] = self._gang(key)
            return gang

    def nodes_of(self, key: GroupKey) -> set[str]:
        """Return the nodes of the members of a group."""
        if not self.may_exist:
            return set()
        return {info.node_name for info in self._members.of(key).values()}

    def stakes(self, pods: Iterable[PodInfo], priority: int) -> Stakes:
        """Return the groups with members among the pods below a priority."""
        if not self.may_exist:
            return _NO_STAKES
        keys = {self.key_of(info) for info in pods if info.priority < priority}
        return tuple((key, self.get(key)) for key in keys if key is not None)

    def are_current(self, stakes: Stakes) -> bool:
        """Return whether all groups are as they were."""
        return self.may_exist and all(self.get(key) is gang for key, gang in stakes)

    def _gang(self, key: GroupKey) -> Gang | None:
        standing = self.pod_groups().standing(key)
        leaving = frozenset(self._leaving.get(key, ()))
        source = (standing.rules, standing.counts.succeeded, leaving)
        known = self._known.get(key)
        is_changed = key in self._members.changed
        if known is not None and known.source == source and not is_changed:
            return known.gang
        self._members.changed.discard(key)
        members = self._members.of(key)
        if not members:
            self._known.pop(key, None)
            return None
        gang = _gang(members, *source)
        if known is not None and known.gang == gang:
            gang = known.gang
        self._known[key] = _Known(source, gang)
        return gang

    # --- victims ------------------------------------------------------------------------------

    def priority_of(self, info: PodInfo) -> int:
        """Return the priority of a pod as a victim."""
        gang = self.of(info)
        return info.priority if gang is None else gang.priority_of(info)

    def with_all_lost(self, pods: Sequence[PodInfo]) -> tuple[PodInfo, ...]:
        """Return pods with all others that their gangs lose when these are evicted."""
        lost = {info.uid: info for info in pods}
        taken: dict[GroupKey, int] = {}
        gangs: dict[GroupKey, Gang] = {}
        for info in lost.values():
            gang = self.of(info)
            if gang is not None:
                gangs[gang.key] = gang
                taken[gang.key] = taken.get(gang.key, 0) + 1
        for key, gang in gangs.items():
            if taken[key] > gang.spare:
                lost.update(gang.members)
        return tuple(lost.values())


def _gang(
    on_nodes: Mapping[str, PodInfo],
    rules: GroupRules | None,
    succeeded: int,
    leaving: frozenset[str],
) -> Gang | None:
    # The members of a group with a minimum of 1 are independent of each other.
    if rules is None or (rules.minimum <= 1 and not rules.is_evicted_whole):
        return None
    # In the order of their UIDs: which of them came first on nodes must not decide between equals.
    members = {
        uid: info
        for uid, info in sorted(on_nodes.items())
        if not info.is_terminating and uid not in leaving
    }
    spare = 0 if rules.is_evicted_whole else len(members) + succeeded - rules.minimum
    return Gang(rules, members, max(spare, 0)) if members else None
