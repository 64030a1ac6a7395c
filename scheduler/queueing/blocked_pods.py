"""Pods that wait for an event, grouped by who has to hear of it."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple

from scheduler.queueing.equivalent_pods import LikePods

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plugins.framework.queueing_hints import Likeness
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


class _Group:
    """The pods of one set of blockers, and the same pods by what the hints have read of them."""

    __slots__ = ("likes", "pods")

    def __init__(self) -> None:
        self.pods: dict[str, QueuedPod] = {}
        self.likes: dict[Likeness[Any], LikePods] = {}


class BlockedPods:
    """Pods by their blockers and by UID.

    Events come by the thousand and most concern few plugins. In groups, the pods of all others
    are passed over without being looked at. Within a group, pods are found by what a hint reads
    of them as soon as one has asked for it.

    Notes
    -----
    *Concurrency*: belongs to the queue and its lock. *Cost*: add and remove O(likenesses).
    """

    def __init__(self) -> None:
        self._groups: dict[Blockers, _Group] = {}
        self._pods: OrderedDict[str, tuple[QueuedPod, Blockers]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[QueuedPod]:
        """Iterate over the pods in the order in which they came."""
        return (queued for queued, _ in self._pods.values())

    def add(self, queued: QueuedPod, blockers: Blockers) -> None:
        """Take in a pod that is not in."""
        uid = queued.info.uid
        group = self._groups.get(blockers)
        if group is None:
            group = self._groups[blockers] = _Group()
        group.pods[uid] = queued
        for like in group.likes.values():
            like.add(queued)
        self._pods[uid] = queued, blockers

    def remove(self, uid: str) -> bool:
        """Take a pod out; return whether it was in."""
        found = self._pods.pop(uid, None)
        if found is None:
            return False
        blockers = found[1]
        group = self._groups[blockers]
        del group.pods[uid]
        for like in group.likes.values():
            like.remove(uid)
        if not group.pods:
            del self._groups[blockers]
        return True

    def replaced(self, queued: QueuedPod) -> None:
        """Take note that a pod that is in has another version. It keeps its place."""
        uid = queued.info.uid
        for like in self._groups[self._pods[uid][1]].likes.values():
            like.remove(uid)
            like.add(queued)

    def groups(self) -> list[Blockers]:
        """Return the blockers of each group."""
        return list(self._groups)

    def pods_of(self, blockers: Blockers) -> list[QueuedPod]:
        """Return the pods of a group."""
        group = self._groups.get(blockers)
        return [] if group is None else list(group.pods.values())

    def pod_of(self, blockers: Blockers, uid: str) -> QueuedPod | None:
        """Return a pod of a group, or None."""
        group = self._groups.get(blockers)
        return None if group is None else group.pods.get(uid)

    def like(self, blockers: Blockers, likeness: Likeness[Any]) -> LikePods:
        """Return the pods of a group by a likeness. The first time, none of them is indexed."""
        group = self._groups.get(blockers)
        if group is None:
            return LikePods(likeness, ())
        like = group.likes.get(likeness)
        if like is None:
            like = group.likes[likeness] = LikePods(likeness, group.pods.values())
        return like

    def forget_likenesses(self) -> None:
        """Drop every index: the plugins are others."""
        for group in self._groups.values():
            group.likes.clear()
