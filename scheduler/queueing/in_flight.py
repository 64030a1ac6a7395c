"""In-flight pods, and the events that have arrived since each attempt started.

An event that arrives during an attempt cannot be checked yet: it is unknown whether the pod will be
rejected, and by which plugin. The event must not be lost either, or the pod would keep waiting
although the cluster has changed. So one list holds the events for all attempts, and each attempt
records the position in it at which it started. Events older than the oldest attempt are dropped.

*Source*: pkg/scheduler/backend/queue/active_queue.go, inFlightPods and inFlightEvents (1.36).
"""

from __future__ import annotations

from collections import OrderedDict, deque
from itertools import islice
from typing import TYPE_CHECKING, Final

from cache.value import MutableValue
from scheduler.queueing.pod_changes import is_older

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cache.pod_info import PodInfo
    from plugins.framework.cluster_events import ClusterEvent
    from scheduler.queueing.queue_event import Happening
    from scheduler.queueing.queued_pod import QueuedPod

MAX_EVENTS: Final = 8192
"""Events kept at most. A pod that a Permit plugin holds for minutes would keep all of them, and
with them old versions of nodes and pods; an attempt that has lost events is tried again instead.

# Differs: kube-scheduler keeps them all.
"""


class Attempt(MutableValue, eq=False):
    """One pod from its pop to the end of its scheduling or binding cycle.

    Updates of the pod itself are not stored one by one: only the difference between its last
    version and the version that was tried matters.
    """

    queued: QueuedPod
    tried: PodInfo
    """The version that was popped."""
    latest: PodInfo
    """The version that the queue heard of last."""
    since: int
    """How many events there had been when the attempt started."""
    gone: bool = False
    """The pod was deleted meanwhile."""
    unserved: bool = False
    """Its profile was taken away meanwhile, and has not come back."""
    activated: bool = False
    """Whether another attempt was requested meanwhile."""

    def hear(self, info: PodInfo) -> None:
        """Store a version that the watch reported, which also shows that the pod exists."""
        self.gone = False
        if not is_older(info.pod, self.latest.pod):
            self.latest = info

    def outcome(self) -> PodInfo:
        """Return the latest version of the pod.

        The thread that popped it may have read a version that the queue never received, because
        updates of assumed pods bypass it; or the queue has received a later one since.
        """
        looked_up, told = self.queued.info, self.latest
        if told is self.tried or is_older(told.pod, looked_up.pod):
            return looked_up
        return told


class InFlight:
    """Store all attempts that have not ended.

    Notes
    -----
    *Concurrency*: belongs to the queue and its lock.

    *Cost*: O(1) amortised, but :meth:`events_of` is linear in its result. At most
    :data:`MAX_EVENTS` events are kept, and none while nothing is in flight.
    """

    def __init__(self, max_events: int = MAX_EVENTS) -> None:
        self._attempts: OrderedDict[str, Attempt] = OrderedDict()
        self._events: deque[Happening] = deque(maxlen=max_events)
        self._count = 0

    def __len__(self) -> int:
        return len(self._attempts)

    def __iter__(self) -> Iterator[Attempt]:
        """Iterate over the attempts, the oldest first."""
        return iter(self._attempts.values())

    def events(self) -> list[ClusterEvent]:
        """Return the events that are kept, the oldest first."""
        return [happening.event for happening in self._events]

    def get(self, uid: str) -> Attempt | None:
        """Return the attempt of a pod, or None."""
        return self._attempts.get(uid)

    def start(self, queued: QueuedPod) -> None:
        """Start an attempt of a pod that is not in flight."""
        info = queued.info
        self._attempts[info.uid] = Attempt(queued, info, info, self._count)

    def end(self, uid: str) -> None:
        """Forget an attempt and the events that only it still needed."""
        if self._attempts.pop(uid, None) is None:
            return
        if not self._attempts:
            self._events.clear()
            return
        needed = self._count - next(iter(self._attempts.values())).since
        events = self._events
        while len(events) > needed:
            events.popleft()

    def record(self, happening: Happening) -> None:
        """Keep an event for the attempts under way, if there are any."""
        if self._attempts:
            self._events.append(happening)
            self._count += 1

    def has_lost_events(self, attempt: Attempt) -> bool:
        """Return whether not all events since the attempt's start are still there."""
        return self._count - attempt.since > len(self._events)

    def events_of(self, attempt: Attempt) -> Iterator[Happening]:
        """Iterate over the events since the attempt's start, the latest first."""
        return islice(reversed(self._events), self._count - attempt.since)
