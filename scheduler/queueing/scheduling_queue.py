"""The scheduling queue: the pods without a node, and which of them is tried next.

    add, update, delete   the watch reports a pod of one of our profiles
    pop                   the scheduling thread takes the first one; it is in flight from here on
    done                  ... until it is bound or abandoned,
    add_unschedulable     ... or its attempt failed, and it returns to the queue
    move_all              an event in the cluster may make rejected pods schedulable
    activate, flush_*     a plugin, or a timer, requests another attempt

Each pod is in exactly one state of :mod:`scheduler.queueing.queue_states`, and moves by the table
there.

*Source*: pkg/scheduler/backend/queue/scheduling_queue.go (1.36), with queueing hints and
SchedulerPopFromBackoffQ on, as they are by default.
"""

from __future__ import annotations

from threading import TIMEOUT_MAX
from typing import TYPE_CHECKING, Final

from plugins.framework.cluster_events import (
    ASSIGNED_POD_DELETE,
    FORCE_ACTIVATE,
    POLICY_CHANGE,
    SCHEDULE_ATTEMPT_FAILURE,
    UNSCHEDULABLE_TIMEOUT,
    UNSCHEDULED_POD_ADD,
    UNSCHEDULED_POD_UPDATE,
)
from scheduler.process.thread_executor import THREAD_LOCKS
from scheduler.queueing.attempt_costs import AttemptCosts
from scheduler.queueing.budget_accounts import BudgetAccounts
from scheduler.queueing.fair_pods import FairPods
from scheduler.queueing.group_attempts import GroupAttempts
from scheduler.queueing.group_entries import GroupEntries, Moves
from scheduler.queueing.nominator import Nominator
from scheduler.queueing.pod_changes import is_older, is_same_version, pod_changes
from scheduler.queueing.pod_heap import PodHeap
from scheduler.queueing.pods_by_state import PodsByState
from scheduler.queueing.queue_event import Happening
from scheduler.queueing.queue_queries import QueueQuestions
from scheduler.queueing.queue_settings import QueueLimits, QueueListeners
from scheduler.queueing.queue_states import PAUSING_OR_ACTIVE, QueueState
from scheduler.queueing.queued_group import QueuedGroup
from scheduler.queueing.queued_pod import QueuedPod
from scheduler.queueing.reporting_lock import ReportingLock
from scheduler.queueing.requeue_check import Verdict, WakeUps
from scheduler.queueing.requeue_scan import Judging

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cache.objects import Pod
    from cache.pod_info import PodInfo
    from plugins.framework.cluster_events import ClusterEvent
    from scheduler.process.ports import Locks
    from scheduler.queueing.in_flight import Attempt
    from scheduler.queueing.queue_settings import QueueRules
    from scheduler.queueing.requeue_scan import WokenPod

GATED_FLUSH_PERIOD_S: Final = 30.0
"""How often the time limit is looked up for gated pods: kube-scheduler's period for all pods.
Unschedulable ones stand in the order of their time, so for them every call may look."""

_POP_FROM_BACKOFF: Final = "PopFromBackoffQ"
_BUDGET_PAUSE: Final = "AttemptBudgetPause"

_LIMITS: Final = QueueLimits()
_NOBODY: Final = QueueListeners()


class SchedulingQueue(QueueQuestions, AttemptCosts, GroupAttempts):
    """Store all pods that wait for one of our profiles, or are in flight.

    Parameters
    ----------
    rules
        The functions of the profiles for queued pods.
    clock
        Seconds of a monotonic clock.
    limits
        Durations, and limits of memory and work.
    accounts
        The CPU time that attempts may use on the scheduling thread, which calls :meth:`pop`.
    listeners
        The functions that the queue calls when pods or events are added.
    locks
        Creates the lock, and the condition on which :meth:`pop` waits.

    Attributes
    ----------
    nominator
        The nominated pods among those of the queue.

    Notes
    -----
    *Concurrency*: thread-safe by one lock, which is held over none of its callbacks but those
    named above. Only :meth:`pop` waits.

    *Cost*: O(log n) for each method about one pod; see :meth:`move_all` for events.
    """

    def __init__(
        self,
        rules: QueueRules,
        clock: Callable[[], float],
        *,
        limits: QueueLimits = _LIMITS,
        accounts: BudgetAccounts | None = None,
        listeners: QueueListeners = _NOBODY,
        locks: Locks = THREAD_LOCKS,
    ) -> None:
        self._clock = clock
        self._sort_key = rules.sort_key
        self._pre_enqueue = rules.pre_enqueue
        self._max_in_unschedulable_s = limits.max_in_unschedulable_s
        self._lock = ReportingLock(listeners.on_incoming, locks.lock)
        self._arrival = locks.condition(self._lock.lock)
        self._poppers = 0
        self._closed = False
        self._sequence = 0
        self._next_gated_flush_s = float("-inf")
        self._accounts = BudgetAccounts() if accounts is None else accounts
        self._shared = None if rules.account is None else FairPods(rules.account)
        self._pods = PodsByState(
            limits.initial_backoff_s,
            limits.max_backoff_s,
            limits.max_in_flight_events,
            self._accounts,
            PodHeap() if self._shared is None else self._shared,
        )
        moves = Moves(
            self._move_locked,
            lambda queued, event, pauses: self._try_active_locked(
                queued, event, after_backoff=pauses
            ),
            self._shut_out_locked,
            rules.pre_enqueue,
            self._replace_locked,
            self._new_entry_locked,
        )
        self._groups = GroupEntries(rules.standing, moves, limits.max_group_members)
        self._wake_later = listeners.wake_later
        self._wake_ups = WakeUps(rules.registrations, self._lock.report_failed_hint)
        blocked = (self._pods.unschedulable, self._pods.gated)
        pieces = None if listeners.wake_later is None else limits.pieces_at_once
        self._judging = Judging(self._wake_ups, blocked, self._wake_locked, pieces)
        self.nominator = Nominator(self._pods.is_waiting, locks.lock)

    # --- what the watch tells -----------------------------------------------------------------

    def add(self, info: PodInfo) -> None:
        """Add a pod that waits for one of our profiles: active, or gated.

        A pod that the queue knows already is updated instead.
        """
        with self._lock:
            self._add_locked(info, UNSCHEDULED_POD_ADD.label)

    def update(self, old: Pod | None, info: PodInfo) -> None:
        """Store a new version of a pod in any state; add the pod if it is not known.

        A gated pod's gates are asked again, a refused pod is woken if one of those who refused it
        wants to hear of what changed. An update of the status alone wakes nobody. In flight, the
        update is kept for the end of the attempt.

        Parameters
        ----------
        old
            The version before, if the caller knows one. It only serves to notice that nothing
            changed: what an update means is judged against the version that the queue knows.
        """
        if old is not None and is_same_version(old, info.pod):
            # Told twice. A pod that has just left the queue must not come back by that.
            return
        with self._lock:
            self._add_locked(info, UNSCHEDULED_POD_UPDATE.label)

    def delete(self, uid: str) -> None:
        """Forget a pod and its nomination. If it is in flight, its attempt's end forgets it."""
        with self._lock:
            queued = self._pods.get(uid)
            if queued is not None:
                self._move_locked(queued, QueueState.NOWHERE)
            else:
                attempt = self._pods.in_flight.get(uid)
                if attempt is not None:
                    attempt.gone = True
            self.nominator.delete(uid)

    def take_out(self, uid: str) -> bool:
        """Forget a pod and its nomination, unless it is in flight, gated or tried with a group.

        Returns
        -------
        Whether the queue knew the pod, and does not any more.
        """
        with self._lock:
            queued = self._pods.get(uid)
            if queued is None or queued.state in (QueueState.GATED, QueueState.GROUPED):
                return False
            self._move_locked(queued, QueueState.NOWHERE)
            self.nominator.delete(uid)
            return True

    def _add_locked(self, info: PodInfo, event: str) -> None:
        known = self._pods.get(info.uid)
        if known is not None:
            self._update_locked(known, info)
            return
        attempt = self._pods.in_flight.get(info.uid)
        if attempt is not None:
            attempt.hear(info)
            return
        now_s, sequence = self._new_entry_locked()
        queued = QueuedPod(info, now_s, sequence, self._sort_key(info.pod, now_s))
        self._groups.join(queued)
        self._try_active_locked(queued, event, after_backoff=False)
        if info.pod.status.nominated_node_name:
            self.nominator.update(None, info)
            self._leave_room_locked(queued)

    def _new_entry_locked(self) -> tuple[float, int]:
        self._sequence += 1
        return self._clock(), self._sequence

    def _update_locked(self, queued: QueuedPod, info: PodInfo) -> None:
        before = queued.info
        if is_older(info.pod, before.pod):
            return
        self._replace_locked(queued, info)
        if self._groups.join(queued) or (
            queued.state is QueueState.GROUPED and pod_changes(before, info)
        ):
            self._regroup_locked(queued)
        elif queued.state in (QueueState.UNSCHEDULABLE, QueueState.GATED):
            verdict, label = self._wake_ups.after_update(queued, before)
            if verdict is not Verdict.STAY:
                self._try_active_locked(queued, label, after_backoff=verdict is not Verdict.AT_ONCE)
            elif queued.state is QueueState.GATED and pod_changes(before, info):
                # Differs: a gate is asked even if it did not register the change. It can only
                # let in who may go in, and its reasons are of the pod as it is now.
                self._try_active_locked(queued, UNSCHEDULED_POD_UPDATE.label)

    def _replace_locked(self, queued: QueuedPod, info: PodInfo) -> None:
        """Put a new version of a pod in place of the one at hand, and bring it to its place."""
        if info is not queued.info:
            self.nominator.update(queued.info.pod, info)
            queued.info = info
            self._pods.replaced(queued)
            self._leave_room_locked(queued)
        sort_key = self._place_locked(queued)
        if sort_key != queued.sort_key:
            queued.sort_key = sort_key
            if queued.state in PAUSING_OR_ACTIVE:
                self._pods.reorder(queued)

    def _place_locked(self, queued: QueuedPod) -> tuple[float, ...]:
        """Return the sort key of a pod; one that a partial gang needs is the first of its kind."""
        is_missed = self._groups.is_missed(queued)
        return self._sort_key(queued.info.pod, 0.0 if is_missed else queued.timestamp_s)

    # --- attempts -----------------------------------------------------------------------------

    def pop(self, timeout_s: float | None = None) -> QueuedPod | None:
        """Take the first active pod, or wait for one; it is in flight from here on.

        While no pod is active, the refused pod whose pause ends first goes early.

        Parameters
        ----------
        timeout_s
            The longest time to wait; None waits without limit, 0 does not wait.

        Returns
        -------
        queued
            The pod, for exactly one :meth:`done` or :meth:`add_unschedulable`; None when time is
            up, or at once when the queue is closed.
        """
        deadline_s = None if timeout_s is None else self._clock() + timeout_s
        with self._lock:
            while not self._closed:
                now_s = self._clock()
                self._accounts.look()
                self._release_backoffs_locked(now_s)
                queued = self._pods.active.pop()
                if queued is None:
                    queued = self._pods.backoff.pop_early()
                    if queued is not None:
                        self._lock.report_incoming("active", _POP_FROM_BACKOFF)
                if queued is not None:
                    if not self._accounts.admit(queued, now_s):
                        self._hold_locked(queued, _BUDGET_PAUSE)
                        continue
                    queued.attempts += 1
                    queued.popped_s = now_s
                    self._move_locked(queued, QueueState.IN_FLIGHT)
                    if isinstance(queued, QueuedGroup):
                        self._groups.take(queued, now_s)
                    return queued
                if deadline_s is not None and now_s >= deadline_s:
                    return None
                self._wait_locked(now_s, deadline_s)
        return None

    def _wait_locked(self, now_s: float, deadline_s: float | None) -> None:
        """Wait for a pod, the end of a pause, or the deadline."""
        ends = [end for end in (deadline_s, self._pods.backoff.next_end_s()) if end is not None]
        timeout_s = min(min(ends) - now_s, TIMEOUT_MAX) if ends else None
        self._poppers += 1
        try:
            self._arrival.wait(timeout_s)
        finally:
            self._poppers -= 1
            self._accounts.idle(self._clock() - now_s)

    def done(self, uid: str) -> None:
        """End the attempt of a pod that was bound or given up; its nomination ends with it.

        Nothing happens when no attempt of the pod is under way: the first end counts.
        """
        with self._lock:
            attempt = self._pods.in_flight.get(uid)
            if attempt is not None:
                if attempt.queued.group is not None:
                    attempt.queued.group.consecutive_errors = 0
                self._move_locked(attempt.queued, QueueState.NOWHERE)
                self.nominator.delete(uid)

    def add_unschedulable(self, queued: QueuedPod) -> None:
        """End the attempt of a pod that was rejected, or failed with an internal error.

        The caller has set ``unschedulable_plugins`` and ``pending_plugins``, both empty for an
        error. What happened since the attempt started is judged now. The pod goes

        * nowhere, if it was deleted meanwhile, its profile is not served any more, or the attempt
          has ended before;
        * to backoff after an error, or when something happened that may help;
        * to active when that was awaited by a Pending plugin, or its pause is over already;
        * among the gated instead, if a gate keeps it out of these two;
        * among the unschedulable otherwise.
        """
        uid = queued.info.uid
        with self._lock:
            attempt = self._pods.in_flight.get(uid)
            if attempt is None or attempt.queued is not queued:
                return
            if attempt.gone or attempt.unserved:
                self._move_locked(queued, QueueState.NOWHERE)
                return
            self._count_failure_locked(queued, attempt)
            verdict = self._wake_ups.after_attempt(queued, attempt, self._pods.in_flight)
            if self._groups.join(queued) or self._groups.gathers(queued):
                verdict = Verdict.AFTER_BACKOFF
            if verdict is Verdict.STAY:
                self._move_locked(queued, QueueState.UNSCHEDULABLE, SCHEDULE_ATTEMPT_FAILURE.label)
            else:
                self._try_active_locked(
                    queued,
                    SCHEDULE_ATTEMPT_FAILURE.label,
                    after_backoff=verdict is not Verdict.AT_ONCE,
                )

    def _count_failure_locked(self, queued: QueuedPod, attempt: Attempt) -> None:
        if queued.was_refused:
            queued.unschedulable_count += 1
            queued.consecutive_errors = 0
        else:
            queued.consecutive_errors += 1
        self._sequence += 1
        queued.sequence = self._sequence
        queued.timestamp_s = self._clock()
        queued.backoff_until_s = self._pods.backoff.end_s(queued)
        queued.flushed = queued.waits_out = False
        latest, queued.info = attempt.outcome(), attempt.tried
        self._replace_locked(queued, latest)

    # --- what happens in the cluster ----------------------------------------------------------

    def move_all(
        self,
        event: ClusterEvent,
        old: object | None,
        new: object | None,
        pre_check: Callable[[Pod], bool] | None = None,
    ) -> int:
        """Process an event: wake the pods that it may help, keep it for those in flight.

        A refused pod is woken when one of the plugins that refused it registered the event and
        its hint, if it has one, says Queue; it goes to active or, if its pause is not over, to
        backoff. A gated pod is looked at when its gate's plugin registered the event, and its
        gate is asked again when a hint of those who refused it says Queue. A wildcard event wakes
        every refused pod, or only one if ``new`` is that pod.

        Parameters
        ----------
        old, new
            The object that the event is about, as the plugins' hints expect it.
        pre_check
            Whom the event can concern at all; None for everybody. Pods in flight are not asked.

        Returns
        -------
        moved
            How many pods became active or went to backoff at once. With ``wake_later`` the rest
            follows in :meth:`judge_backlog`.

        Notes
        -----
        *Cost*: see :mod:`scheduler.queueing.requeue_scan`. Gated pods cost nothing, but to events
        that their gate wants to hear of (SchedulingGates: none that come this way). With
        ``wake_later``, O(1): at most ``pieces_at_once``.
        """
        happening = Happening(event, old, new)
        with self._lock:
            self._pods.in_flight.record(happening)
            moved = self._judging.take_in(happening, pre_check)
            if event is ASSIGNED_POD_DELETE:
                self._groups.look_again(event.label)
            is_left = bool(self._judging.backlog)
        if self._wake_later is not None and is_left:
            self._wake_later(self.judge_backlog)
        return moved

    def judge_backlog(self, is_over: Callable[[], bool]) -> bool:
        """Wake pods for the events that wait in the backlog, until ``is_over`` returns true.

        Parameters
        ----------
        is_over
            Asked after each piece of work, of some microseconds.

        Returns
        -------
        is_left
            Whether there are still events in the backlog.
        """
        with self._lock:
            self._judging.run(is_over)
            return bool(self._judging.backlog)

    def _wake_locked(self, woken: WokenPod) -> bool:
        pauses = woken.verdict is not Verdict.AT_ONCE
        return self._try_active_locked(woken.queued, woken.event.label, after_backoff=pauses)

    def policy_changed(self, changed: frozenset[str], served: frozenset[str]) -> None:
        """Take note that the profiles are others.

        Registrations are asked for anew. Pods of a changed profile have their gates asked again,
        and refused ones are woken; those in flight are tried again if they are refused. Pods of a
        profile that is not served any more leave the queue. *Cost*: the number of pods.

        Parameters
        ----------
        changed, served
            schedulerNames: whose profile is another one, and all that there are.
        """
        with self._lock:
            self._wake_ups.forget()
            self._pods.forget_likenesses()
            self._judging.restart()
            self._pods.in_flight.record(Happening(POLICY_CHANGE, None, None))
            for queued in self._pods.all():
                name = queued.info.pod.spec.scheduler_name
                if name not in served:
                    self._move_locked(queued, QueueState.NOWHERE)
                    self.nominator.delete(queued.info.uid)
                elif name in changed:
                    self._judge_anew_locked(queued)
            for attempt in self._pods.in_flight:
                attempt.unserved = attempt.latest.pod.spec.scheduler_name not in served
                if attempt.unserved:
                    self.nominator.delete(attempt.latest.uid)

    def _judge_anew_locked(self, queued: QueuedPod) -> None:
        if queued.state in (QueueState.UNSCHEDULABLE, QueueState.GATED):
            self._try_active_locked(queued, POLICY_CHANGE.label)
        elif not (status := self._admission_locked(queued)).is_success:
            self._shut_out_locked(queued, status, POLICY_CHANGE.label)

    def activate(self, uids: Iterable[str], *, after_backoff: bool = False) -> None:
        """Make pods active without a pause, or after all of it, unless a gate keeps them out.

        A pod in flight is tried again if it is refused. Unknown pods are passed over.
        """
        with self._lock:
            for uid in uids:
                queued = self._pods.get(uid)
                if queued is None:
                    attempt = self._pods.in_flight.get(uid)
                    if attempt is not None:
                        attempt.activated = True
                elif queued.state is QueueState.BACKOFF:
                    if not queued.is_held and not after_backoff:
                        self._move_locked(queued, QueueState.ACTIVE, FORCE_ACTIVATE.label)
                elif queued.state is not QueueState.ACTIVE:
                    queued.waits_out = after_backoff
                    self._try_active_locked(
                        queued, FORCE_ACTIVATE.label, after_backoff=after_backoff
                    )

    def flush_backoff(self) -> None:
        """Make the pods active whose pauses are over."""
        with self._lock:
            self._release_backoffs_locked(self._clock())

    def flush_unschedulable_leftover(self) -> None:
        """Wake the rejected pods that no event has woken for too long, and mark them.

        Gated ones only if their gate registered every event. *Cost*: the pods that are woken.
        """
        with self._lock:
            now_s = self._clock()
            before_s = now_s - self._max_in_unschedulable_s
            late = self._pods.late_pods(before_s)
            if now_s >= self._next_gated_flush_s:
                self._next_gated_flush_s = now_s + GATED_FLUSH_PERIOD_S
                late += self._late_gated_locked(before_s)
            for queued in late:
                queued.flushed = True
                self._try_active_locked(queued, UNSCHEDULABLE_TIMEOUT.label)

    def _late_gated_locked(self, before_s: float) -> list[QueuedPod]:
        gated = self._pods.gated
        return [
            queued
            for blockers in gated.groups()
            if self._wake_ups.askers(blockers, UNSCHEDULABLE_TIMEOUT)
            for queued in gated.pods_of(blockers)
            if queued.timestamp_s < before_s
        ]

    def close(self) -> None:
        """Let every waiting and future :meth:`pop` return None. Attempts in flight may end."""
        with self._lock:
            self._closed = True
            self._arrival.notify_all()

    @property
    def is_closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._closed
