"""Rejected pods that wait for an event, grouped by the plugins that rejected them."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple

from scheduler.queueing.equivalent_pods import LikePods

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plugins.framework.queueing_hints import Likeness
    from scheduler.queueing.queued_pod import QueuedPod


class Blockers(NamedTuple):
    """The plugins that rejected a pod, and the profile to which they belong."""

    profile: str
    unschedulable: frozenset[str]
    pending: frozenset[str]
    gate: str = ""
    """The plugin that gates the pod, if any: then only events of this plugin concern the pod."""

    @classmethod
    def of_refused(cls, queued: QueuedPod) -> Blockers:
        """Return the plugins that rejected the pod in the last attempt."""
        return cls(
            queued.info.pod.spec.scheduler_name,
            frozenset(queued.unschedulable_plugins),
            frozenset(queued.pending_plugins),
        )

    @classmethod
    def of_gated(cls, queued: QueuedPod) -> Blockers:
        """Return the plugin that gates the pod, and the plugins that rejected it before.

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
    """The pods of one set of blockers, also indexed by the facts that queueing hints read."""

    __slots__ = ("likes", "pods")

    def __init__(self) -> None:
        self.pods: dict[str, QueuedPod] = {}
        self.likes: dict[Likeness[Any], LikePods] = {}


class BlockedPods:
    """Store pods by their blockers and by UID.

    There are thousands of events, and most of them concern few plugins. The groups of all other
    plugins are skipped without a look at their pods. Within a group, pods are indexed by the facts
    that a hint reads, as soon as a hint has requested them.

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
        """Add a pod that is not stored yet."""
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
