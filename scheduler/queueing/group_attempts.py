"""The attempts of groups in the queue: how they end, for the group and for its members."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plugins.framework.cluster_events import SCHEDULE_ATTEMPT_FAILURE, UNSCHEDULED_POD_UPDATE
from scheduler.queueing.group_entries import GROUP_CHANGED
from scheduler.queueing.pod_moves import PodMoves
from scheduler.queueing.queue_states import PAUSING_OR_ACTIVE, QueueState
from scheduler.queueing.queued_group import entry_uid
from scheduler.queueing.requeue_check import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cache.pod_group_objects import GroupKey
    from cache.pod_info import PodInfo
    from scheduler.queueing.group_entries import Refusers
    from scheduler.queueing.in_flight import Attempt
    from scheduler.queueing.queued_group import QueuedGroup
    from scheduler.queueing.queued_pod import QueuedPod
    from scheduler.queueing.requeue_check import WakeUps


class GroupAttempts(PodMoves):
    """The methods of the queue about groups.

    Notes
    -----
    *Concurrency*: thread-safe, by the queue's lock.

    *Cost*: O(members) for the end of an attempt.
    """

    _wake_ups: WakeUps
    _judge_anew_locked: Callable[[QueuedPod], None]
    _replace_locked: Callable[[QueuedPod, PodInfo], None]
    _count_failure_locked: Callable[[QueuedPod, Attempt], None]

    def _regroup_locked(self, queued: QueuedPod) -> None:
        """Bring a pod to its place that has joined a group or left one."""
        if queued.state in PAUSING_OR_ACTIVE and not self._groups.gathers(queued):
            self._judge_anew_locked(queued)  # it stays, unless a gate keeps it out now
        else:
            self._try_active_locked(queued, UNSCHEDULED_POD_UPDATE.label)

    def group_changed(self, key: GroupKey) -> None:
        """Take note that the object of a group, or any of its members, has changed."""
        with self._lock:
            attempt = self._pods.in_flight.get(entry_uid(key))
            if attempt is not None:
                attempt.activated = True
            self._groups.changed(key)

    def group_placed(self, group: QueuedGroup) -> None:
        """End the attempt of a group of which at least one member was assumed.

        The attempts of its members go on: each of them ends by :meth:`done` or
        :meth:`add_unschedulable`.
        """
        with self._lock:
            attempt = self._pods.in_flight.get(group.info.uid)
            if attempt is not None and attempt.queued is group:
                group.unschedulable_count = 0
                group.is_placed = True
                self._move_locked(group, QueueState.NOWHERE)
                self._groups.settle(group, GROUP_CHANGED)

    def group_undone(self, key: GroupKey) -> None:
        """Take note that a member of a group goes back though it was placed: the group pauses.

        Once for each time that the group was placed, however many members go back. Where bindings
        fail for ever, the pauses grow until one succeeds.
        """
        with self._lock:
            group = self._groups.get(key)
            if group is None or not group.is_placed:
                return
            group.is_placed = False
            group.consecutive_errors += 1
            group.timestamp_s = self._clock()
            group.backoff_until_s = self._pods.backoff.end_s(group)

    def group_refused(
        self, group: QueuedGroup, refusers: Mapping[str, Refusers], *, is_error: bool = False
    ) -> None:
        """End the attempt of a group that was refused or failed, and those of its members.

        Parameters
        ----------
        refusers
            The plugins that rejected members, by the UID of the member.
        is_error
            Whether nothing is known of what would help: it is tried again after its pause.
        """
        with self._lock:
            attempt = self._pods.in_flight.get(group.info.uid)
            if attempt is None or attempt.queued is not group:
                return
            verdict = Verdict.AFTER_BACKOFF if is_error or attempt.activated else Verdict.STAY
            for queued in group.tried:
                refuser = refusers.get(queued.info.uid)
                verdict = max(verdict, self._end_member_locked(queued, refuser))
            group.is_refused = not is_error
            self._count_failure_locked(group, attempt)
            label = SCHEDULE_ATTEMPT_FAILURE.label
            if attempt.unserved:
                self._move_locked(group, QueueState.NOWHERE)
            elif verdict is Verdict.STAY:
                self._move_locked(group, QueueState.UNSCHEDULABLE, label)
                self._groups.watch(group, refusers, self._clock())
            else:
                pauses = verdict is not Verdict.AT_ONCE
                self._try_active_locked(group, label, after_backoff=pauses)
            self._groups.settle(group, label)

    def _end_member_locked(self, queued: QueuedPod, refuser: Refusers | None) -> Verdict:
        """Return a member to its group, and tell what the events of its attempt mean for that."""
        attempt = self._pods.in_flight.get(queued.info.uid)
        if attempt is None or attempt.queued is not queued:
            return Verdict.STAY
        verdict = Verdict.STAY
        if refuser is not None:
            queued.unschedulable_plugins, queued.pending_plugins = refuser
            verdict = self._wake_ups.after_attempt(queued, attempt, self._pods.in_flight)
        queued.unschedulable_plugins = queued.pending_plugins = frozenset()
        if attempt.gone or attempt.unserved:
            self._move_locked(queued, QueueState.NOWHERE)
            return verdict
        latest, queued.info = attempt.outcome(), attempt.tried
        self._replace_locked(queued, latest)
        if self._groups.join(queued) or not self._groups.gathers(queued):
            self._try_active_locked(queued, SCHEDULE_ATTEMPT_FAILURE.label)
        else:
            self._move_locked(queued, QueueState.GROUPED)
        return verdict
