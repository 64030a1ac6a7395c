"""A pod in the queue, with what its attempts so far have left behind."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scheduler.queueing.pod_facts import PodFacts
from scheduler.queueing.queue_states import QueueState

if TYPE_CHECKING:
    from collections.abc import Set

    from cache.pod_info import PodInfo


@dataclass(slots=True, eq=False)
class QueuedPod:
    """A pod that waits for us, or is being tried.

    Parameters
    ----------
    info
        The pod, in the latest version that the queue was told of.
    timestamp_s
        When it was last queued: at first, or after its last failed attempt. Pods of one priority
        are ordered by it, so one that keeps failing stands behind those that came meanwhile. All
        times are seconds of the queue's clock.
    sequence
        Set together with ``timestamp_s``; unique; decides between equal sort keys.
    sort_key
        Its place among active pods: the smallest goes first.
    attempts
        How often it was popped.
    unschedulable_count
        Attempts that ended with a "no" about the pod.
    consecutive_errors
        Failures of the scheduler's own since the last such "no".
    unschedulable_plugins, pending_plugins
        Who said no in the last attempt; ``pending_plugins`` are those that will say when it is
        time to try again. Both are empty after a failure of our own. They are replaced, never
        changed.
    gated_by
        The PreEnqueue plugin that keeps the pod out, or None.
    gate_reasons
        What that plugin said.
    backoff_until_s
        No attempt before then, unless no other pod is active.
    initial_attempt_s
        When the pod first became active, or None: gated ever since it came.
    active_since_s
        When it last became active.
    popped_s
        When its current or last attempt started, or None.
    flushed
        The time limit moved the pod, no event did. Set until its next failure.
    budget_s
        What its next attempt may use of the thread, in CPU seconds, when the last one was broken
        off or costly; 0 for what everybody may. Only :class:`BudgetAccounts` assigns these.
    prepaid_s
        How much of that has been paid for; 0 when nothing needs to be, or not yet.
    allowance_s
        What its current or last attempt might use.
    is_held
        Whether it waits for the account of its namespace; only the queue and that account
        assign it.
    heard
        How many events there had been when the pod came to the state in which it waits: what is
        older was judged when its attempt ended, or is older than the attempt.
    refused_by
        The plugins that count as having refused it; only :class:`PodsByState` assigns it.
    state
        Where it is. Only the queue assigns it.

    Notes
    -----
    *Concurrency*: from pop to the end of the attempt it belongs to whoever popped it, who may
    replace ``info`` by a later version and sets the two sets of plugins; otherwise to the queue
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
    _facts: PodFacts | None = field(default=None, repr=False)

    @property
    def facts(self) -> PodFacts:
        """What hints have read of the version at hand."""
        facts = self._facts
        if facts is None or facts.info is not self.info:
            facts = self._facts = PodFacts(self.info)
        return facts

    def forget_facts(self) -> None:
        """Drop what hints have read: the plugins are others."""
        self._facts = None

    @property
    def was_refused(self) -> bool:
        """Whether plugins said no in the last attempt, as opposed to a failure of our own."""
        return bool(self.unschedulable_plugins or self.pending_plugins)
