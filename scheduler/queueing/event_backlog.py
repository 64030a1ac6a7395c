"""The backlog: cluster events that have not been checked against all queued pods yet."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from cache.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cache.objects import Pod
    from plugins.framework.cluster_events import ClusterEvent
    from scheduler.queueing.queue_event import Happening

MAX_BACKLOG: Final = 1024
"""Events that wait at most. Each keeps the object that it is about alive.

# Differs: kube-scheduler asks about each event while it is handled, however long that takes.
"""


class UnjudgedEvent(Value, frozen=True):
    """One event, or a sequence of events that arrived faster than they could be checked.

    Parameters
    ----------
    number
        The number of events up to this one (up to the last one of a sequence). The event concerns
        only pods that entered their state before it.
    happening
        The event; None for a sequence, for which no hint is called: each pod that one of ``kinds``
        may concern is woken.
    pre_check
        Returns whether the event can concern a pod at all; None if it can concern every pod.
    """

    number: int
    happening: Happening | None
    kinds: Sequence[ClusterEvent] = ()
    pre_check: Callable[[Pod], bool] | None = None


class EventBacklog:
    """Store the events that wait to be checked, the oldest first.

    Notes
    -----
    *Concurrency*: belongs to the queue and its lock.

    *Cost*: O(1) amortised.
    """

    def __init__(self) -> None:
        self._events: deque[UnjudgedEvent] = deque()
        self.count = 0
        """How many events there have been."""

    def __len__(self) -> int:
        return len(self._events)

    def first(self) -> UnjudgedEvent | None:
        """Return the oldest event, or None."""
        return self._events[0] if self._events else None

    def add(self, happening: Happening, pre_check: Callable[[Pod], bool] | None) -> None:
        """Add an event. Too many events are merged into one for which no hint is called."""
        self.count += 1
        if len(self._events) < MAX_BACKLOG:
            self._events.append(UnjudgedEvent(self.count, happening, (), pre_check))
            return
        kinds: dict[ClusterEvent, None] = {happening.event: None}
        for event in self._events:
            kinds.update(dict.fromkeys(event.kinds))
            if event.happening is not None:
                kinds[event.happening.event] = None
        self._events.clear()
        self._events.append(UnjudgedEvent(self.count, None, tuple(kinds)))

    def skip(self) -> None:
        """Count an event for which no pod has to be checked."""
        self.count += 1

    def drop(self, event: UnjudgedEvent) -> None:
        """Take the oldest event out, if it is this one."""
        if self._events and self._events[0] is event:
            self._events.popleft()
