"""The read-only methods of the queue: counts, ages and contents."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from plugins import names
from scheduler.queueing.pending_pods import QueueCounts, WaitingGroup
from scheduler.queueing.queue_states import QueueState
from scheduler.queueing.queued_group import QueuedGroup

if TYPE_CHECKING:
    from collections.abc import Callable

    from cache.pod_group_objects import GroupKey
    from cache.pod_info import PodInfo
    from scheduler.queueing.budget_accounts import BudgetAccounts
    from scheduler.queueing.group_entries import GroupEntries
    from scheduler.queueing.pending_pods import PendingPods
    from scheduler.queueing.pods_by_state import PodsByState
    from scheduler.queueing.queued_pod import QueuedPod
    from scheduler.queueing.reporting_lock import ReportingLock
    from scheduler.queueing.requeue_scan import Judging


class QueueQuestions:
    """The methods of the queue that do not change it.

    Notes
    -----
    *Concurrency*: thread-safe, by the queue's lock.
    """

    _clock: Callable[[], float]
    _lock: ReportingLock
    _pods: PodsByState
    _groups: GroupEntries
    _judging: Judging
    _accounts: BudgetAccounts

    @property
    def costly_s(self) -> float:
        """From how many CPU seconds on an attempt is settled with its namespace."""
        return self._accounts.costly_s

    def state_of(self, uid: str) -> QueueState:
        """Return where a pod is."""
        with self._lock:
            return self._pods.state_of(uid)

    def coming(self, count: int) -> list[PodInfo]:
        """Return pods that are probably tried next, without members of groups that are tried whole.

        *Cost*: some 3 us for three.
        """
        with self._lock:
            coming = self._pods.active.coming(count)
            return [queued.info for queued in coming if not isinstance(queued, QueuedGroup)]

    def gated_by(self, plugin: str) -> list[PodInfo]:
        """Return the pods that a gate keeps out. *Cost*: their number."""
        with self._lock:
            gated = self._pods.gated
            return [
                queued.info
                for blockers in gated.groups()
                if blockers.gate == plugin
                for queued in gated.pods_of(blockers)
            ]

    def counts(self) -> QueueCounts:
        """Return how many pods are in each state."""
        with self._lock:
            counts = self._pods.counts()._asdict()
            for group in self._groups:
                name = group.state.value
                if name in counts:
                    # The entry counts as the members that it stands for.
                    counts[name] += group.grouped - 1
            return QueueCounts(**counts)

    def why_held(self, key: GroupKey) -> tuple[str, list[PodInfo]] | None:
        """Return why a group cannot be tried, with its waiting members; None if it can be.

        None also while victims are evicted for it: its refusal says so already.

        *Cost*: O(members) for a group that is held.
        """
        with self._lock:
            group = self._groups.get(key)
            if group is None or group.state is not QueueState.GATED:
                return None
            if group.gated_by == names.DEFAULT_PREEMPTION:
                return None
            return "; ".join(group.gate_reasons), [each.info for each in group.ready.values()]

    def groups(self) -> list[WaitingGroup]:
        """Return the groups that wait to be tried as a whole. *Cost*: the number of groups."""
        with self._lock:
            waits = (QueueState.NOWHERE, QueueState.IN_FLIGHT)
            return [
                WaitingGroup(group.key, group.state, group.gated_by, group.gate_reasons)
                for group in self._groups
                if group.state not in waits
            ]

    def pending(self) -> PendingPods:
        """Return the current contents of the queue. *Cost*: O(n log n); for debugging."""
        with self._lock:
            return self._pods.pending()

    def waiting(self) -> list[QueuedPod]:
        """Return the pods that wait and are not in flight, in no particular order.

        They belong to the queue, which may change them at any time: for reading single fields.
        *Cost*: a look at each pod, 5 ms for 100 000 pods.
        """
        with self._lock:
            return [each for each in self._pods.all() if not isinstance(each, QueuedGroup)]

    def refusals(self) -> dict[tuple[str, ...], float]:
        """Return the number of waiting pods that plugins rejected, by plugin and profile.

        From a failed attempt to the next one a pod counts for each plugin that refused it.

        *Source*: pkg/scheduler/metrics/metrics.go, UnschedulableReason (1.36).
        """
        with self._lock:
            counts = self._pods.refusals.items()
            return {(plugin, profile): count for (plugin, profile), count in counts}

    def backlog(self) -> int:
        """Return how many events wait to be judged."""
        with self._lock:
            return len(self._judging.backlog)

    def oldest_active_s(self) -> float:
        """Return for how long the active pod that waits longest has been active; 0 for no pod.

        *Cost*: the number of active pods; the lock is held for a small part of it.
        """
        with self._lock:
            active, now_s = list(self._pods.active), self._clock()
        return max((now_s - queued.active_since_s for queued in active), default=0.0)

    def in_flight_events(self) -> dict[str, float]:
        """Return the number of entries for pods in flight by event label; pods have a label too.

        *Source*: pkg/scheduler/metrics/metrics.go, InFlightEvents (1.36).
        """
        with self._lock:
            happenings, pods = self._pods.in_flight.events(), len(self._pods.in_flight)
        return {**Counter(event.label for event in happenings), "PodPopped": pods}
