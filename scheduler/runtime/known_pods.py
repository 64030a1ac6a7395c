"""The location of every pod that the scheduler knows: cache, queue or waiting pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cache.pod_groups import PodGroups
from cache.value import Value

if TYPE_CHECKING:
    from cache.scheduler_cache import SchedulerCache
    from scheduler.queueing import SchedulingQueue
    from scheduler.runtime.waiting_pods import WaitingPods


class KnownPods(Value, frozen=True):
    """The location of every pod: on a node, in the queue, or held between the two.

    Attributes
    ----------
    cache
        The pods that have a node, including assumed pods.
    queue
        The pods that wait for a node, or are in flight.
    waiting
        The pods that Permit plugins hold.
    groups
        The groups of pods, with what is decided about their members.

    Notes
    -----
    *Concurrency*: immutable; each part is thread-safe.
    """

    cache: SchedulerCache
    queue: SchedulingQueue
    waiting: WaitingPods
    groups: PodGroups = msgspec.field(default_factory=PodGroups)
