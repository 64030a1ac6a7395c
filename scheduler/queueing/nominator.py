"""Nominated pods: preemption makes space for them on a node.

*Source*: pkg/scheduler/backend/queue/nominator.go (1.36).
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from cache.locks import MakeLock
    from cache.objects import Pod
    from cache.observer import Observer
    from cache.pod_info import PodInfo


class Nominator:
    """Store nominated pods by node, and their nominated nodes by UID.

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

    Notes
    -----
    *Concurrency*: thread-safe by a lock of its own, which may be acquired while the queue's lock is
    held, and never in the other order.

    *Cost*: O(1), but :meth:`nominated_pods_for_node` is linear in its result.
    """

    def __init__(
        self, is_waiting: Callable[[str], bool], make_lock: MakeLock = threading.Lock
    ) -> None:
        self._is_waiting = is_waiting
        self._lock = make_lock()
        self._pods: dict[str, dict[str, PodInfo]] = {}
        self._node_of: dict[str, str] = {}
        self._changed: set[str] = set()
        self._priorities: dict[int, int] = {}
        """How many pods of each priority are nominated."""
        self.observer: Observer | None = None
        """Gets every change in its order."""

    def __len__(self) -> int:
        return len(self._node_of)

    def add(self, info: PodInfo, node_name: str) -> bool:
        """Nominate a pod for a node, in place of any other; return whether it now is.

        Nothing is nominated for a pod that no longer waits. The empty name takes a nomination
        away.
        """
        with self._lock:
            self._delete_locked(info.uid)
            if not node_name or not self._is_waiting(info.uid):
                return False
            self._node_of[info.uid] = node_name
            self._pods.setdefault(node_name, {})[info.uid] = info
            self._count_locked(info, 1)
            self._changed.add(node_name)
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
            node_name = self._node_of.get(info.uid)
            if node_name is not None:
                pods = self._pods[node_name]
                self._count_locked(pods[info.uid], -1)
                self._count_locked(info, 1)
                pods[info.uid] = info
                self._changed.add(node_name)
                if self.observer is not None:
                    self.observer("nominated", info, node_name)

    def delete(self, uid: str) -> None:
        """Take a nomination away, if there is one."""
        # Without a look before the lock: an add that is under way would be missed.
        with self._lock:
            self._delete_locked(uid)

    def node_of(self, uid: str) -> str | None:
        """Return the node that a pod is nominated for, or None."""
        return self._node_of.get(uid)

    def node_names(self) -> list[str]:
        """Return the nodes that pods are nominated for."""
        with self._lock:
            return list(self._pods)

    def nominated_pods_for_node(self, node_name: str) -> list[PodInfo]:
        """Return the pods that are nominated for a node, the first nominated first."""
        if not self._pods:
            return []
        with self._lock:
            return list(self._pods.get(node_name, {}).values())

    def level(self, priority: int) -> int | None:
        """Return the lowest priority of nominated pods that is not below one; None if all are.

        Pods with one level have to mind the same nominated pods.
        """
        with self._lock:
            return min((each for each in self._priorities if each >= priority), default=None)

    def take_changes(self) -> set[str]:
        """Return the nodes whose nominations may have changed since the last call. One caller."""
        if not self._changed:
            return set()
        with self._lock:
            changed, self._changed = self._changed, set()
            return changed

    def _delete_locked(self, uid: str) -> None:
        node_name = self._node_of.pop(uid, None)
        if node_name is None:
            return
        pods = self._pods[node_name]
        self._count_locked(pods.pop(uid), -1)
        self._changed.add(node_name)
        if not pods:
            del self._pods[node_name]
        if self.observer is not None:
            self.observer("not_nominated", None, uid)

    def _count_locked(self, info: PodInfo, by: int) -> None:
        count = self._priorities.get(info.priority, 0) + by
        if count:
            self._priorities[info.priority] = count
        else:
            del self._priorities[info.priority]
