"""A pod in the queue, with the results of its attempts so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scheduler.queueing.pod_facts import PodFacts
from scheduler.queueing.queue_states import QueueState

if TYPE_CHECKING:
    from collections.abc import Set

    from cache.pod_info import PodInfo
    from scheduler.queueing.queued_group import QueuedGroup


@dataclass(slots=True, eq=False)
class QueuedPod:
    """A pod that waits for an attempt, or is in flight.

    Parameters
    ----------
    info
        The latest version of the pod that the queue received.
    timestamp_s
        When it was last queued: at first, or after its last failed attempt. Pods of one priority
        are ordered by it, so a pod that keeps failing is ordered after the pods that came
        meanwhile. All times are seconds of the queue's clock.
    first_seen_s
        When the queue received it first.
    sequence
        Set together with ``timestamp_s``; unique; decides between equal sort keys.
    sort_key
        Its place among active pods: the smallest goes first.
    attempts
        The number of times it was popped.
    unschedulable_count
        The number of attempts in which plugins rejected the pod.
    consecutive_errors
        Failures of the scheduler itself since the last such rejection.
    unschedulable_plugins, pending_plugins
        The plugins that rejected the pod in the last attempt; ``pending_plugins`` are those that
        will activate it themselves. Both are empty after a failure of the scheduler itself. They
        are replaced, never changed.
    gated_by
        The PreEnqueue plugin that keeps the pod out, or None.
    gate_reasons
        The reasons that this plugin returned.
    backoff_until_s
        No attempt before then, unless no other pod is active.
    waits_out
        Whether there is no attempt before then even if no other pod is active.
    initial_attempt_s
        When the pod first became active, or None: it has always been gated.
    active_since_s
        When it last became active.
    popped_s
        When its current or last attempt started, or None.
    flushed
        The time limit moved the pod, no event did. Set until its next failure.
    budget_s
        The CPU seconds of the scheduling thread that its next attempt may use, when the last one
        was stopped or costly; 0 for the ordinary budget. Only :class:`BudgetAccounts` assigns
        these.
    prepaid_s
        The part of ``budget_s`` that is paid; 0 when nothing has to be paid, or not yet.
    allowance_s
        The budget of its current or last attempt.
    is_held
        Whether it waits for the account of its namespace; only the queue and that account
        assign it.
    heard
        The number of events up to the time when the pod entered its state: older events were
        checked when its attempt ended, or are older than the attempt.
    refused_by
        The plugins that count as having refused it; only :class:`PodsByState` assigns it.
    state
        The state of the pod. Only the queue assigns it.
    group
        The entry of the group that the pod names, or None; only the queue assigns it.

    Notes
    -----
    *Concurrency*: from pop to the end of the attempt it belongs to the caller that popped it, which
    may replace ``info`` by a later version and sets the two sets of plugins; otherwise to the queue
    and its lock.

    *Source*: pkg/scheduler/framework/types.go, QueuedPodInfo (1.36).
    """

    info: PodInfo
    timestamp_s: float
    sequence: int
    sort_key: tuple[float, ...]
    attempts: int = 0
    unschedulable_count: int = 0
    consecutive_errors: int = 0
    unschedulable_plugins: Set[str] = frozenset()
    pending_plugins: Set[str] = frozenset()
    gated_by: str | None = None
    gate_reasons: tuple[str, ...] = ()
    backoff_until_s: float = 0.0
    waits_out: bool = False
    initial_attempt_s: float | None = None
    active_since_s: float = 0.0
    popped_s: float | None = None
    flushed: bool = False
    budget_s: float = 0.0
    prepaid_s: float = 0.0
    allowance_s: float = float("inf")
    is_held: bool = False
    heard: int = 0
    state: QueueState = QueueState.NOWHERE
    refused_by: frozenset[str] = frozenset()
    group: QueuedGroup | None = None
    first_seen_s: float = field(init=False)
    _facts: PodFacts | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Keep the time, which later attempts do not change."""
        self.first_seen_s = self.timestamp_s

    @property
    def facts(self) -> PodFacts:
        """Return the facts that hints have read of the current version."""
        facts = self._facts
        if facts is None or facts.info is not self.info:
            facts = self._facts = PodFacts(self.info)
        return facts

    def forget_facts(self) -> None:
        """Drop the facts that hints have read, after a change of plugins."""
        self._facts = None

    @property
    def was_refused(self) -> bool:
        """Whether plugins said no in the last attempt, as opposed to a failure of our own."""
        return bool(self.unschedulable_plugins or self.pending_plugins)

    @property
    def may_go_early(self) -> bool:
        """Whether its pause may end before its time while no pod is active."""
        return self.was_refused and not self.waits_out

    def longest_pause_s(self, max_s: float) -> float:
        """Return the longest pause after a failure, given that of an ordinary pod."""
        return max_s
