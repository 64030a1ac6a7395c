"""Pods that wait for an event, grouped by who has to hear of it."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scheduler.queueing.queued_pod import QueuedPod


class Blockers(NamedTuple):
    """The plugins whose minds an event has to change, and the profile they belong to."""

    profile: str
    unschedulable: frozenset[str]
    pending: frozenset[str]
    gate: str = ""
    """Who keeps the pod out, if somebody does: only events of his are for the pod at all."""

    @classmethod
    def of_refused(cls, queued: QueuedPod) -> Blockers:
        """Return those who said no in the last attempt."""
        return cls(
            queued.info.pod.spec.scheduler_name,
            frozenset(queued.unschedulable_plugins),
            frozenset(queued.pending_plugins),
        )

    @classmethod
    def of_gated(cls, queued: QueuedPod) -> Blockers:
        """Return the plugin that keeps the pod out, and those who said no before that.

        A pod that waits for its own preemption is kept out by it, and what its victims leave
        behind is told to the plugin that refused it for want of that.
        """
        gate = queued.gated_by or ""
        return cls(
            queued.info.pod.spec.scheduler_name,
            frozenset({*queued.unschedulable_plugins, gate}),
            frozenset(queued.pending_plugins),
            gate,
        )


class BlockedPods:
    """Pods by their blockers and by UID.

    Events come by the thousand and most concern few plugins. In groups, the pods of all others
    are passed over without being looked at.

    Notes
    -----
    *Concurrency*: belongs to the queue and its lock. *Cost*: add and remove O(1).
    """

    def __init__(self) -> None:
        self._groups: dict[Blockers, dict[str, QueuedPod]] = {}
        self._pods: OrderedDict[str, tuple[QueuedPod, Blockers]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[QueuedPod]:
        """Iterate over the pods in the order in which they came."""
        return (queued for queued, _ in self._pods.values())

    def add(self, queued: QueuedPod, blockers: Blockers) -> None:
        """Take in a pod that is not in."""
        uid = queued.info.uid
        self._groups.setdefault(blockers, {})[uid] = queued
        self._pods[uid] = queued, blockers

    def remove(self, uid: str) -> bool:
        """Take a pod out; return whether it was in."""
        found = self._pods.pop(uid, None)
        if found is None:
            return False
        blockers = found[1]
        group = self._groups[blockers]
        del group[uid]
        if not group:
            del self._groups[blockers]
        return True

    def groups(self) -> list[Blockers]:
        """Return the blockers of each group."""
        return list(self._groups)

    def pods_of(self, blockers: Blockers) -> list[QueuedPod]:
        """Return the pods of a group."""
        return list(self._groups.get(blockers, {}).values())
