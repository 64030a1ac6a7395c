"""The settings of the scheduling queue: rules of the profiles, limits and callbacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cache.pod_group_objects import MAX_MEMBERS
from cache.value import Value
from scheduler.queueing.in_flight import MAX_EVENTS
from scheduler.queueing.requeue_scan import PIECES_AT_ONCE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cache.objects import Pod
    from cache.pod_group_objects import GroupKey
    from cache.pod_groups import GroupStanding
    from plugins.framework.cluster_events import EventRegistration
    from plugins.framework.status import Status

DEFAULT_INITIAL_BACKOFF_S: Final = 1.0
"""kube-scheduler's podInitialBackoffSeconds."""

DEFAULT_MAX_BACKOFF_S: Final = 10.0
"""kube-scheduler's podMaxBackoffSeconds."""

DEFAULT_MAX_IN_UNSCHEDULABLE_S: Final = 300.0
"""kube-scheduler's podMaxInUnschedulablePodsDuration: the net below the events."""


class QueueRules(Value, frozen=True):
    """The functions of the profiles that the queue calls while it holds its lock.

    They must return quickly, and must not call the queue.

    Attributes
    ----------
    sort_key
        Returns a pod's sort key from the pod and the time when it was last queued: the pod with the
        smallest key is popped first, and of equal keys the pod that was queued first. Must not
        raise.
    pre_enqueue
        Returns whether a pod may become active; the status of a rejection names the plugin. Must
        not raise.
    registrations
        Returns, for the name of a profile (scheduler), the events for which each plugin has
        registered. Their hints may raise.
    account
        Returns the account that pays for a pod's attempts, and its weight, as
        :meth:`plugins.framework.interfaces.QueueSortPlugin.account`. None if attempts are not
        shared.
    standing
        Returns what is known of a group of pods. None to try members as all other pods.
    """

    sort_key: Callable[[Pod, float], tuple[float, ...]]
    pre_enqueue: Callable[[Pod], Status]
    registrations: Callable[[str], Mapping[str, Sequence[EventRegistration]]]
    account: Callable[[Pod], tuple[str, float] | None] | None = None
    standing: Callable[[GroupKey], GroupStanding] | None = None


class QueueLimits(Value, frozen=True):
    """Durations, and limits of the queue's memory and work.

    Attributes
    ----------
    initial_backoff_s, max_backoff_s
        The pause after a first failure, doubled with each further one up to the maximum; 0 as
        the maximum switches pauses off.
    max_in_unschedulable_s
        The time after which a rejected pod is tried again without any event.
    max_in_flight_events
        The number of events that the queue keeps for the pods in flight.
    pieces_at_once
        The part of an event that is checked on arrival, if the rest can be checked later.
    max_group_members
        A group with more members is not tried.
    """

    initial_backoff_s: float = DEFAULT_INITIAL_BACKOFF_S
    max_backoff_s: float = DEFAULT_MAX_BACKOFF_S
    max_in_unschedulable_s: float = DEFAULT_MAX_IN_UNSCHEDULABLE_S
    max_in_flight_events: int = MAX_EVENTS
    pieces_at_once: int = PIECES_AT_ONCE
    max_group_members: int = MAX_MEMBERS


class QueueListeners(Value, frozen=True):
    """The functions that the queue calls when pods or events are added.

    Attributes
    ----------
    on_incoming
        Called for each pod that changes its state, with the queue's name in metrics and the event.
    wake_later
        Called when events wait in the backlog, with the function that has to be called soon, as
        :meth:`scheduler.queueing.SchedulingQueue.judge_backlog`. Any thread. None: each event is
        checked completely on arrival.
    """

    on_incoming: Callable[[str, str], None] | None = None
    wake_later: Callable[[Callable[[Callable[[], bool]], bool]], None] | None = None
