"""All pods of the queue by state, and the moves of pods between states.

:mod:`scheduler.queueing.queue_states` defines the states and the legal moves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scheduler.queueing.backoff_pods import BackoffPods
from scheduler.queueing.blocked_pods import BlockedPods, Blockers
from scheduler.queueing.in_flight import InFlight
from scheduler.queueing.pending_pods import PendingPod, PendingPods, QueueCounts
from scheduler.queueing.queue_states import QueueState, check_move
from scheduler.queueing.queued_group import QueuedGroup

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scheduler.queueing.budget_accounts import BudgetAccounts
    from scheduler.queueing.fair_pods import FairPods
    from scheduler.queueing.pod_heap import PodHeap
    from scheduler.queueing.queued_pod import QueuedPod


_NOBODY: Final[frozenset[str]] = frozenset()


class PodsByState:
    """Store the pods of each state, and the state of each pod.

    Notes
    -----
    *Concurrency*: belongs to the queue and its lock, but for :meth:`is_waiting`.

    *Cost*: :meth:`move` O(log n), all look-ups by UID O(1).
    """

    def __init__(
        self,
        initial_backoff_s: float,
        max_backoff_s: float,
        max_events: int,
        accounts: BudgetAccounts,
        active: PodHeap | FairPods,
    ) -> None:
        self._pods: dict[str, QueuedPod] = {}
        """Every pod that waits and is not in flight."""
        self.active = active
        self.backoff = BackoffPods(initial_backoff_s, max_backoff_s, accounts)
        self.unschedulable = BlockedPods()
        self.gated = BlockedPods()
        self._waiting: dict[QueueState, PodHeap | FairPods | BackoffPods | BlockedPods] = {
            QueueState.ACTIVE: self.active,
            QueueState.BACKOFF: self.backoff,
            QueueState.UNSCHEDULABLE: self.unschedulable,
            QueueState.GATED: self.gated,
        }
        self.in_flight = InFlight(max_events)
        self.refusals: dict[tuple[str, str], int] = {}
        """Pods that wait and were refused, by plugin and profile: one counts for each of both."""

    def all(self) -> list[QueuedPod]:
        """Return every pod that waits and is not in flight."""
        return list(self._pods.values())

    def get(self, uid: str) -> QueuedPod | None:
        """Return a pod that waits and is not in flight, or None."""
        return self._pods.get(uid)

    def state_of(self, uid: str) -> QueueState:
        """Return where a pod is."""
        queued = self._pods.get(uid)
        if queued is not None:
            return queued.state
        return QueueState.NOWHERE if self.in_flight.get(uid) is None else QueueState.IN_FLIGHT

    def is_waiting(self, uid: str) -> bool:
        """Return whether a pod is known and was not deleted.

        *Concurrency*: from any thread, without the lock: a pod that moves is for a moment in both
        places and never in neither.
        """
        if uid in self._pods:
            return True
        attempt = self.in_flight.get(uid)
        return attempt is not None and not attempt.gone

    def move(self, queued: QueuedPod, target: QueueState) -> None:
        """Move a pod from its state to another: the only place that assigns ``state``.

        A pod that was taken from the top of its heap may have left it already.

        Raises
        ------
        IllegalMoveError
            When the table has no such move. Nothing has happened then.
        """
        uid = queued.info.uid
        origin = queued.state
        check_move(origin, target)
        waited_in = self._waiting.get(origin)
        if waited_in is not None:
            waited_in.remove(uid)
        queued.state = target
        if target is QueueState.IN_FLIGHT:
            self.in_flight.start(queued)
            del self._pods[uid]
            self._count_refusals(queued, _NOBODY)
            return
        if target is QueueState.NOWHERE:
            self._pods.pop(uid, None)
            self._count_refusals(queued, _NOBODY)
        else:
            self._pods[uid] = queued
            self._count_refusals(queued, _refused_by(queued))
            self._enter(queued, target)
        if origin is QueueState.IN_FLIGHT:
            self.in_flight.end(uid)

    def _enter(self, queued: QueuedPod, target: QueueState) -> None:
        if target is QueueState.ACTIVE:
            self.active.push(queued, queued.sort_key)
        elif target is QueueState.BACKOFF:
            self.backoff.add(queued)
        elif target is QueueState.UNSCHEDULABLE:
            self.unschedulable.add(queued, Blockers.of_refused(queued))
        elif target is QueueState.GATED:
            self.gated.add(queued, Blockers.of_gated(queued))

    def reorder(self, queued: QueuedPod) -> None:
        """Bring a pod to its place after its sort key or its gate has changed."""
        if queued.state is QueueState.ACTIVE:
            self.active.push(queued, queued.sort_key)
        elif queued.state is QueueState.BACKOFF:
            self.backoff.reorder(queued)
        elif queued.state is QueueState.GATED:
            self.gated.remove(queued.info.uid)
            self.gated.add(queued, Blockers.of_gated(queued))
            self._count_refusals(queued, _refused_by(queued))

    def _count_refusals(self, queued: QueuedPod, plugins: frozenset[str]) -> None:
        """Count a pod for the plugins that rejected it, and no longer for others."""
        before = queued.refused_by
        if plugins == before:
            return
        queued.refused_by = plugins
        profile, refusals = queued.info.pod.spec.scheduler_name, self.refusals
        for plugin in before - plugins:
            left = refusals[plugin, profile] - 1
            if left:
                refusals[plugin, profile] = left
            else:  # profiles come and go, and each would leave its plugins behind
                del refusals[plugin, profile]
        for plugin in plugins - before:
            refusals[plugin, profile] = refusals.get((plugin, profile), 0) + 1

    def replaced(self, queued: QueuedPod) -> None:
        """Take note that a pod has another version, for the hints that have read it."""
        if queued.state is QueueState.UNSCHEDULABLE:
            self.unschedulable.replaced(queued)
        elif queued.state is QueueState.GATED:
            self.gated.replaced(queued)

    def forget_likenesses(self) -> None:
        """Drop the facts that hints have read of the pods, after a change of plugins."""
        self.unschedulable.forget_likenesses()
        self.gated.forget_likenesses()
        for queued in self._pods.values():
            queued.forget_facts()
        for attempt in self.in_flight:
            attempt.queued.forget_facts()

    def late_pods(self, before_s: float) -> list[QueuedPod]:
        """Return the unschedulable pods whose last attempt failed before some time.

        *Cost*: the number of these pods.
        """
        late = []
        # They stand in the order of their timestamps: both are set when an attempt fails.
        for queued in self.unschedulable:
            if queued.timestamp_s >= before_s:
                break
            late.append(queued)
        return late

    def counts(self) -> QueueCounts:
        """Return how many pods are in each state."""
        return QueueCounts(
            len(self.active),
            len(self.backoff),
            len(self.unschedulable),
            len(self.gated),
            len(self.in_flight),
        )

    def pending(self) -> PendingPods:
        """Return the pods in each state. *Cost*: O(n log n)."""
        active = sorted(self.active, key=lambda queued: (queued.sort_key, queued.sequence))
        backoff = sorted(
            self.backoff,
            key=lambda queued: (queued.backoff_until_s, queued.sort_key, queued.sequence),
        )
        return PendingPods(
            active=_described(active),
            backoff=_described(backoff),
            unschedulable=_described(self.unschedulable),
            gated=_described(self.gated),
            in_flight=tuple(
                PendingPod.of(attempt.queued, attempt.latest, in_flight=True)
                for attempt in self.in_flight
                if not isinstance(attempt.queued, QueuedGroup)
            ),
        )


def _refused_by(queued: QueuedPod) -> frozenset[str]:
    if queued.was_refused or queued.gated_by:
        gate = (queued.gated_by,) if queued.gated_by else ()
        return frozenset((*queued.unschedulable_plugins, *queued.pending_plugins, *gate))
    return _NOBODY


def _described(entries: Iterable[QueuedPod]) -> tuple[PendingPod, ...]:
    """Describe pods, and in place of the entry of a group the members that it stands for."""
    return tuple(
        PendingPod.of(queued, queued.info) for entry in entries for queued in _stood_for(entry)
    )


def _stood_for(entry: QueuedPod) -> Iterable[QueuedPod]:
    if not isinstance(entry, QueuedGroup):
        return (entry,)
    return [each for each in entry.ready.values() if each.state is QueueState.GROUPED]
