"""Where every pod is, as far as the scheduler knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cache.scheduler_cache import SchedulerCache
    from scheduler.queueing import SchedulingQueue
    from scheduler.runtime.waiting_pods import WaitingPods


@dataclass(frozen=True, slots=True)
class KnownPods:
    """Where every pod is: on a node, in the queue, or held between the two.

    Attributes
    ----------
    cache
        Those that have a node, assumed ones included.
    queue
        Those that wait for a node, or are being tried.
    waiting
        Those that Permit plugins hold.

    Notes
    -----
    *Concurrency*: immutable; each part is thread-safe.
    """

    cache: SchedulerCache
    queue: SchedulingQueue
    waiting: WaitingPods
