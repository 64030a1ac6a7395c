"""Nominated pods: preemption makes space for them on a node.

*Source*: pkg/scheduler/backend/queue/nominator.go (1.36).
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cache.locks import MakeLock
    from cache.objects import Pod
    from cache.observer import Observer
    from cache.pod_info import PodInfo


class Nominations:
    """Nominated pods by node, and their nominated nodes by UID.

    Notes
    -----
    *Concurrency*: confined to its owner.

    *Cost*: O(1), but :meth:`nominated_pods_for_node` is linear in its result.
    """

    def __init__(self) -> None:
        self._pods: dict[str, dict[str, PodInfo]] = {}
        self._node_of: dict[str, str] = {}
        self._changed: set[str] = set()
        self._priorities: dict[int, int] = {}
        """How many pods of each priority are nominated."""

    def __len__(self) -> int:
        return len(self._node_of)

    def node_of(self, uid: str) -> str | None:
        """Return the node that a pod is nominated for, or None."""
        return self._node_of.get(uid)

    def node_names(self) -> list[str]:
        """Return the nodes that pods are nominated for."""
        return list(self._pods)

    def nominated_pods_for_node(self, node_name: str) -> list[PodInfo]:
        """Return the pods that are nominated for a node, the first nominated first."""
        return list(self._pods.get(node_name, {}).values())

    def level(self, priority: int) -> int | None:
        """Return the lowest priority of nominated pods that is not below one; None if all are.

        Pods with one level have to mind the same nominated pods.
        """
        return min((each for each in self._priorities if each >= priority), default=None)

    def take_changes(self) -> set[str]:
        """Return the nodes whose nominations may have changed since the last call. One caller."""
        changed = self._changed
        if changed:
            self._changed = set()
        return changed

    @property
    def is_changed(self) -> bool:
        """Whether there is anything to take."""
        return bool(self._changed)

    def put(self, info: PodInfo, node_name: str) -> None:
        """Add a pod that is not nominated, or replace one by its newer version in its place."""
        pods = self._pods.setdefault(node_name, {})
        known = pods.get(info.uid)
        if known is not None:
            self._count(known, -1)
        pods[info.uid] = info
        self._node_of[info.uid] = node_name
        self._count(info, 1)
        self._changed.add(node_name)

    def drop(self, uid: str) -> bool:
        """Take a nomination away; return whether there was one."""
        node_name = self._node_of.pop(uid, None)
        if node_name is None:
            return False
        pods = self._pods[node_name]
        self._count(pods.pop(uid), -1)
        self._changed.add(node_name)
        if not pods:
            del self._pods[node_name]
        return True

    def _count(self, info: PodInfo, by: int) -> None:
        count = self._priorities.get(info.priority, 0) + by
        if count:
            self._priorities[info.priority] = count
        else:
            del self._priorities[info.priority]


class FrozenNominations(Nominations):
    """The nominations as they were when the attempt under way began.

    Other threads end nominations at any time. An attempt that asks several times gets one answer.

    Notes
    -----
    *Concurrency*: scheduling thread only.
    """

    def follow(self, changed: Mapping[str, Sequence[PodInfo]]) -> None:
        """Take over the nominated pods of the nodes where they may have changed."""
        for node_name in changed:
            for uid in list(self._pods.get(node_name, ())):
                self.drop(uid)
        for node_name, pods in changed.items():
            for info in pods:
                self.put(info, node_name)


class Nominator:
    """Nominate pods, and tell of it.

    A nomination by the scheduler counts at once, before it is written to the API server. A
    nomination does not outlive its pod: it ends when the pod is deleted, when its attempt ends with
    a binding, and it cannot begin afterwards.

    Parameters
    ----------
    is_waiting
        Returns whether the pod with this UID is in the queue or in flight; called under this
        object's lock, so it must not take the queue's.
    make_lock
        Creates that lock.

    Attributes
    ----------
    latest
        The nominations now; read by others only where there is no other thread.
    frozen
        The nominations as of the last :meth:`freeze`.
    observer
        Gets every change in its order.

    Notes
    -----
    *Concurrency*: thread-safe by a lock of its own, which may be acquired while the queue's lock is
    held, and never in the other order.
    """

    def __init__(
        self, is_waiting: Callable[[str], bool], make_lock: MakeLock = threading.Lock
    ) -> None:
        self.latest = Nominations()
        self.frozen = FrozenNominations()
        self.observer: Observer | None = None
        self._is_waiting = is_waiting
        self._lock = make_lock()

    def __len__(self) -> int:
        return len(self.latest)

    def freeze(self) -> None:
        """Bring :attr:`frozen` up to date.

        *Concurrency*: scheduling thread only. *Cost*: O(pods nominated for changed nodes).
        """
        # A change that comes during this look is one of the next attempt's.
        if self.latest.is_changed:
            with self._lock:
                latest = self.latest
                pods_for = latest.nominated_pods_for_node
                changed = {name: pods_for(name) for name in sorted(latest.take_changes())}
            self.frozen.follow(changed)

    def add(self, info: PodInfo, node_name: str) -> bool:
        """Nominate a pod for a node, in place of any other; return whether it now is.

        Nothing is nominated for a pod that no longer waits. The empty name takes a nomination
        away.
        """
        with self._lock:
            self._delete_locked(info.uid)
            if not node_name or not self._is_waiting(info.uid):
                return False
            self.latest.put(info, node_name)
            if self.observer is not None:
                self.observer("nominate", info, node_name)
            return True

    def update(self, old: Pod | None, info: PodInfo) -> None:
        """Follow an update of a pod.

        When the API's nomination changed, it is taken over; otherwise the one at hand stays and
        only gets the pod's new version: it may be ahead of the API.

        # Differs: kube-scheduler takes over what the API says also when that did not change, so
        that any update brings back a nomination that was given up here a moment ago.
        """
        known = "" if old is None else old.status.nominated_node_name
        told = info.pod.status.nominated_node_name
        if told != known:
            self.add(info, told)
            return
        with self._lock:
            node_name = self.latest.node_of(info.uid)
            if node_name is not None:
                self.latest.put(info, node_name)
                if self.observer is not None:
                    self.observer("nominated", info, node_name)

    def delete(self, uid: str) -> None:
        """Take a nomination away, if there is one."""
        # Without a look before the lock: an add that is under way would be missed.
        with self._lock:
            self._delete_locked(uid)

    def node_of(self, uid: str) -> str | None:
        """Return the node that a pod is nominated for, or None."""
        return self.latest.node_of(uid)

    def nominated_pods_for_node(self, node_name: str) -> list[PodInfo]:
        """Return the pods that are nominated for a node, the first nominated first."""
        if not len(self.latest):
            return []
        with self._lock:
            return self.latest.nominated_pods_for_node(node_name)

    def _delete_locked(self, uid: str) -> None:
        if self.latest.drop(uid) and self.observer is not None:
            self.observer("not_nominated", None, uid)
