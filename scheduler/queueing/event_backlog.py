"""Events about which not all waiting pods have been asked yet."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cache.objects import Pod
    from plugins.framework.cluster_events import ClusterEvent
    from scheduler.queueing.queue_event import Happening

MAX_BACKLOG: Final = 1024
"""Events that wait at most. Each keeps the object that it is about alive.

# Differs: kube-scheduler asks about each event while it is handled, however long that takes.
"""


@dataclass(frozen=True, slots=True)
class UnjudgedEvent:
    """One event, or many that came faster than anybody could be asked about them.

    Parameters
    ----------
    number
        How many events there had been with this one (with the last of many): it can only be news
        to pods that came to their state before.
    happening
        The event; None for many, about which nobody is asked: each pod that may be concerned
        by one of ``kinds`` is woken.
    pre_check
        Whom the event can concern at all; None for everybody.
    """

    number: int
    happening: Happening | None
    kinds: Sequence[ClusterEvent] = ()
    pre_check: Callable[[Pod], bool] | None = None


class EventBacklog:
    """The events that wait, the oldest first.

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
        """Take in an event. When there are too many, all become one that asks nobody."""
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
        """Count an event about which nobody has to be asked."""
        self.count += 1

    def drop(self, event: UnjudgedEvent) -> None:
        """Take the oldest event out, if it is this one."""
        if self._events and self._events[0] is event:
            self._events.popleft()
