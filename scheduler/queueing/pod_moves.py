"""The moves of pods between the states of the queue: who may become active, and who has to wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cache.pod_info import on_node
from plugins import names
from plugins.framework.cluster_events import ASSIGNED_POD_DELETE, BACKOFF_COMPLETE
from scheduler.queueing.queue_event import Happening
from scheduler.queueing.queue_states import INCOMING_QUEUE, QueueState
from scheduler.queueing.queued_group import QueuedGroup

if TYPE_CHECKING:
    from collections.abc import Callable

    from cache.objects import Pod
    from plugins.framework.status import Status
    from scheduler.process.ports import Condition
    from scheduler.queueing.budget_accounts import BudgetAccounts
    from scheduler.queueing.group_entries import GroupEntries
    from scheduler.queueing.nominator import Nominator
    from scheduler.queueing.pods_by_state import PodsByState
    from scheduler.queueing.queued_pod import QueuedPod
    from scheduler.queueing.reporting_lock import ReportingLock
    from scheduler.queueing.requeue_scan import Judging

_ROOM_STAYS: Final = frozenset({names.DEFAULT_PREEMPTION, names.SCHEDULING_GATES})
"""Gates at which a pod keeps its nomination: its victims are about to go, or another program has
nominated it before it may be tried."""


class PodMoves:
    """The methods of the queue that move pods.

    Notes
    -----
    *Concurrency*: the caller holds the queue's lock.
    """

    _clock: Callable[[], float]
    _lock: ReportingLock
    _arrival: Condition
    _poppers: int
    _accounts: BudgetAccounts
    _pods: PodsByState
    _groups: GroupEntries
    _judging: Judging
    _wake_later: Callable[[Callable[[Callable[[], bool]], bool]], None] | None
    _pre_enqueue: Callable[[Pod], Status]
    _place_locked: Callable[[QueuedPod], tuple[float, ...]]
    judge_backlog: Callable[[Callable[[], bool]], bool]
    nominator: Nominator

    def _try_active_locked(
        self, queued: QueuedPod, event: str, *, after_backoff: bool = True
    ) -> bool:
        """Move a pod to active or, during its pause, to backoff; return False if it is gated."""
        status = self._admission_locked(queued)
        if not status.is_success:
            self._shut_out_locked(queued, status, event)
            return False
        queued.gated_by = None
        queued.gate_reasons = ()
        if self._groups.gathers(queued):
            self._groups.gather(queued, event, pauses=after_backoff)
            return True
        if queued.group is not None:
            queued.sort_key = self._place_locked(queued)
        if self._accounts.must_save(queued):
            self._hold_locked(queued, event)
            return True
        pauses = after_backoff and self._clock() < queued.backoff_until_s
        self._move_locked(queued, QueueState.BACKOFF if pauses else QueueState.ACTIVE, event)
        return True

    def _admission_locked(self, queued: QueuedPod) -> Status:
        """Return whether a pod, or a group, may be tried."""
        if isinstance(queued, QueuedGroup):
            return self._groups.readiness(queued)
        return self._pre_enqueue(queued.info.pod)

    def _hold_locked(self, queued: QueuedPod, event: str) -> None:
        """Let a pod wait until the account of its namespace can pay its next attempt."""
        queued.is_held = True
        if queued.state is QueueState.BACKOFF:
            # It was to go early.
            self._pods.backoff.add(queued)
        else:
            self._move_locked(queued, QueueState.BACKOFF, event)

    def _shut_out_locked(self, queued: QueuedPod, status: Status, event: str) -> None:
        queued.gated_by = status.plugin
        queued.gate_reasons = status.reasons
        if queued.state is QueueState.GATED:
            self._pods.reorder(queued)
        else:
            self._move_locked(queued, QueueState.GATED, event)
        self._leave_room_locked(queued)

    def _leave_room_locked(self, queued: QueuedPod) -> None:
        """Take the nomination of a gated pod away, and wake those that it kept out.

        # Differs: kube-scheduler leaves it to a pod that a plugin gates later, such as one whose
        claim is being deleted: it keeps room that it may not use.
        """
        if queued.state is not QueueState.GATED or queued.gated_by in _ROOM_STAYS:
            return
        node_name = self.nominator.node_of(queued.info.uid)
        if node_name is None or isinstance(queued, QueuedGroup):
            return
        self.nominator.delete(queued.info.uid)
        left = Happening(ASSIGNED_POD_DELETE, on_node(queued.info.pod, node_name), None)
        self._pods.in_flight.record(left)
        # Not judged here: an event may be under way, of which this is a consequence.
        self._judging.backlog.add(left, None)
        if self._wake_later is not None:
            self._wake_later(self.judge_backlog)

    def _release_backoffs_locked(self, now_s: float) -> None:
        # The gates were asked on the way into backoff.
        while (queued := self._pods.backoff.pop_over(now_s)) is not None:
            self._move_locked(queued, QueueState.ACTIVE, BACKOFF_COMPLETE.label)

    def _move_locked(self, queued: QueuedPod, target: QueueState, event: str = "") -> None:
        """Move a pod and tell of it: metrics, and a popper that waits."""
        before = INCOMING_QUEUE.get(queued.state)
        if target is QueueState.ACTIVE:
            queued.active_since_s = self._clock()
            if queued.initial_attempt_s is None:
                queued.initial_attempt_s = queued.active_since_s
        elif target in (QueueState.UNSCHEDULABLE, QueueState.GATED):
            queued.heard = self._judging.backlog.count
        self._pods.move(queued, target)
        queue = INCOMING_QUEUE.get(target)
        if queue is not None and queue != before:
            self._lock.report_incoming(queue, event)
        if self._poppers and target in (QueueState.ACTIVE, QueueState.BACKOFF):
            self._arrival.notify()
        if queued.group is not None:
            self._groups.moved(queued, event)
