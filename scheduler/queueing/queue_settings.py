"""What the scheduling queue is given: rules, limits, and whoever is told of what happens in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from scheduler.queueing.in_flight import MAX_EVENTS
from scheduler.queueing.requeue_scan import PIECES_AT_ONCE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cache.objects import Pod
    from plugins.framework.cluster_events import EventRegistration
    from plugins.framework.status import Status

DEFAULT_INITIAL_BACKOFF_S: Final = 1.0
"""kube-scheduler's podInitialBackoffSeconds."""

DEFAULT_MAX_BACKOFF_S: Final = 10.0
"""kube-scheduler's podMaxBackoffSeconds."""

DEFAULT_MAX_IN_UNSCHEDULABLE_S: Final = 300.0
"""kube-scheduler's podMaxInUnschedulablePodsDuration: the net below the events."""


@dataclass(frozen=True, slots=True)
class QueueRules:
    """What the profiles say of pods that wait. Called under the queue's lock.

    They must be quick, and must not call the queue.

    Attributes
    ----------
    sort_key
        Gives a pod's place from the pod and the time when it was last queued: the smallest key is
        popped first, and of equal ones the one that was queued first. Must not raise.
    pre_enqueue
        Tells whether a pod may become active; the status of a refusal names the plugin. Must not
        raise.
    registrations
        Gives, for a profile's (scheduler's) name, what each plugin wants to hear of. Their hints
        may raise.
    account
        Returns who is charged with a pod's attempts, and by which weight, as
        :meth:`plugins.framework.interfaces.QueueSortPlugin.account`. None if nobody is.
    """

    sort_key: Callable[[Pod, float], tuple[float, ...]]
    pre_enqueue: Callable[[Pod], Status]
    registrations: Callable[[str], Mapping[str, Sequence[EventRegistration]]]
    account: Callable[[Pod], tuple[str, float] | None] | None = None


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """Times, and bounds of what is kept or done at once.

    Attributes
    ----------
    initial_backoff_s, max_backoff_s
        The pause after a first failure, doubled with each further one up to the maximum; 0 as
        the maximum switches pauses off.
    max_in_unschedulable_s
        After so long a refused pod is tried again without any event.
    max_in_flight_events
        Bounds what is remembered for the pods in flight.
    pieces_at_once
        How much of an event is judged when it comes, if somebody judges the rest later.
    """

    initial_backoff_s: float = DEFAULT_INITIAL_BACKOFF_S
    max_backoff_s: float = DEFAULT_MAX_BACKOFF_S
    max_in_unschedulable_s: float = DEFAULT_MAX_IN_UNSCHEDULABLE_S
    max_in_flight_events: int = MAX_EVENTS
    pieces_at_once: int = PIECES_AT_ONCE


@dataclass(frozen=True, slots=True)
class QueueListeners:
    """Whoever the queue calls when something happens in it.

    Attributes
    ----------
    on_incoming
        Is told of each pod that changes its state: the queue's name in metrics and the event.
    wake_later
        Is called when events wait in the backlog, with what has to be called soon, as
        :meth:`scheduler.queueing.SchedulingQueue.judge_backlog`. Any thread. None: each event is
        judged to the end when it comes.
    """

    on_incoming: Callable[[str, str], None] | None = None
    wake_later: Callable[[Callable[[Callable[[], bool]], bool]], None] | None = None
