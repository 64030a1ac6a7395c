"""The contents of the queue at one moment, for debugging and metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cache.value import Value
from scheduler.queueing.queue_states import QueueState

if TYPE_CHECKING:
    from cache.pod_group_objects import GroupKey
    from cache.pod_info import PodInfo
    from scheduler.queueing.queued_pod import QueuedPod


class QueueCounts(NamedTuple):
    """The number of pods in each state."""

    active: int
    backoff: int
    unschedulable: int
    gated: int
    in_flight: int

    def waiting(self) -> dict[str, float]:
        """Return the numbers of pods that are not in flight, by state."""
        return {state: count for state, count in self._asdict().items() if state != "in_flight"}


class WaitingGroup(NamedTuple):
    """A group that waits to be tried as a whole.

    Attributes
    ----------
    gated_by, gate_reasons
        What keeps it out, if it is gated, and why.
    """

    key: GroupKey
    state: QueueState
    gated_by: str | None
    gate_reasons: tuple[str, ...]


class PendingPod(Value, frozen=True):
    """A pod, and the reason for its state.

    Parameters
    ----------
    since_s
        When it was last queued, in seconds of the queue's clock.
    attempts
        The number of its attempts.
    unschedulable_plugins, pending_plugins
        The plugins that rejected it in its last attempt; empty when it failed for another reason.
        Empty for a pod in flight: the thread that popped it may be writing them.
    gated_by, gate_reasons
        The PreEnqueue plugin that gates it, and the reasons which that plugin returned.
    backoff_until_s
        When its pause is over.
    """

    info: PodInfo
    since_s: float
    attempts: int
    unschedulable_plugins: frozenset[str]
    pending_plugins: frozenset[str]
    gated_by: str | None
    gate_reasons: tuple[str, ...]
    backoff_until_s: float

    @classmethod
    def of(cls, queued: QueuedPod, info: PodInfo, *, in_flight: bool = False) -> PendingPod:
        """Return the description of a pod."""
        nobody: frozenset[str] = frozenset()
        entry = queued if queued.state is not QueueState.GROUPED else queued.group or queued
        return cls(
            info,
            entry.timestamp_s,
            queued.attempts,
            nobody if in_flight else frozenset(queued.unschedulable_plugins),
            nobody if in_flight else frozenset(queued.pending_plugins),
            entry.gated_by,
            entry.gate_reasons,
            entry.backoff_until_s,
        )


class PendingPods(Value, frozen=True):
    """All pods of the queue by state.

    Active pods are in the order of their sort keys, pods in backoff in the order in
    which their pauses end, the others in the order in which they came to their state.
    """

    active: tuple[PendingPod, ...]
    backoff: tuple[PendingPod, ...]
    unschedulable: tuple[PendingPod, ...]
    gated: tuple[PendingPod, ...]
    in_flight: tuple[PendingPod, ...]
