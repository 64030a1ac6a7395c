"""A group of pods in the queue: one entry for all members that wait to be tried together."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from cache.objects import Pod, PodMeta, PodSpec
from cache.pod_info import PodInfo
from scheduler.queueing.queue_states import QueueState
from scheduler.queueing.queued_pod import QueuedPod

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cache.pod_group_objects import GroupKey, GroupRules

MAX_PAUSE_S: Final = 60.0
"""The longest pause of a large group."""

PAUSE_PER_MEMBER_S: Final = 0.1
"""By so much the longest pause grows with each member: an attempt costs in proportion to them."""

MEMBERS_PER_BUDGET: Final = 200
"""A group may use the CPU time of one more attempt for each so many members."""


def entry_uid(key: GroupKey) -> str:
    """Return the UID under which a group stands in the queue; no pod can have it."""
    return f"podgroup/{key.source.value}/{key.namespace}/{key.name}"


def entry_info(key: GroupKey, scheduler_name: str, priority: int) -> PodInfo:
    """Return a pod that stands for a group where the queue orders entries and charges accounts."""
    metadata = PodMeta(name=key.name, uid=entry_uid(key), namespace=key.namespace)
    return PodInfo(Pod(metadata, PodSpec(scheduler_name=scheduler_name, priority=priority)))


@dataclass(slots=True, eq=False)
class QueuedGroup(QueuedPod):
    """A group that waits for an attempt, or is in flight.

    Its ``info`` is no pod of the cluster: it has the name, the schedulerName and the priority of
    the group.

    Parameters
    ----------
    key
        The identity of the group.
    members
        The pods of the queue that name the group, by UID, in the order of their arrival: in any
        state, in flight too.
    ready
        Those of them that the next attempt tries: grouped, or unschedulable as watchers.
    priorities
        How many of the ready members have each priority.
    tried
        The members of the attempt in flight.
    rules
        The rules that were known when the group was looked at last.
    has_begun
        Whether members are tried one by one, since another one has a node already.
    is_short
        Whether it has begun and is below its minimum: its members are the first of their priority.
    is_refused
        Whether the last attempt ended with a refusal.
    is_placed
        Whether it was placed, and no member has gone back since.
    is_settling
        Whether the entry is being brought to its state; only :meth:`settling` assigns it.
    """

    key: GroupKey = field(kw_only=True)
    members: dict[str, QueuedPod] = field(default_factory=dict, repr=False)
    ready: dict[str, QueuedPod] = field(default_factory=dict, repr=False)
    priorities: Counter[int] = field(default_factory=Counter)
    tried: tuple[QueuedPod, ...] = field(default=(), repr=False)
    rules: GroupRules | None = None
    has_begun: bool = False
    is_short: bool = False
    is_refused: bool = False
    is_placed: bool = False
    is_settling: bool = False

    @property
    def was_refused(self) -> bool:
        """Whether the group did not fit, as opposed to a failure of our own."""
        return self.is_refused

    @property
    def may_go_early(self) -> bool:
        """Return False: an attempt of a large group is no way to pass the time."""
        return False

    @contextmanager
    def settling(self) -> Iterator[None]:
        """Keep moves of members from bringing the entry to its state before all are made."""
        before, self.is_settling = self.is_settling, True
        try:
            yield
        finally:
            self.is_settling = before

    def longest_pause_s(self, max_s: float) -> float:
        """Return the longest pause, which grows with the group up to :data:`MAX_PAUSE_S`."""
        if max_s <= 0:
            return max_s
        return max(max_s, min(max_s + PAUSE_PER_MEMBER_S * len(self.members), MAX_PAUSE_S))

    @property
    def grouped(self) -> int:
        """The number of ready members that do not watch. *Cost*: O(members)."""
        return sum(queued.state is QueueState.GROUPED for queued in self.ready.values())

    @property
    def lowest_priority(self) -> int:
        """The lowest priority of the ready members; 0 without any."""
        return min(self.priorities, default=0)
