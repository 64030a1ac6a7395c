"""The cache of nodes and of the pods on them, the scheduler's own decisions included.

The state machine of a pod is in :mod:`cache.pod_states`; this module carries out its
effects. Nodes are in a doubly linked list, the most recently changed first, so that an update of
a snapshot visits only the nodes that changed since the last one.

*Source*: pkg/scheduler/backend/cache/cache.go (1.36); the time limit of assumed pods is that of
versions up to 1.35.
"""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING, NamedTuple

from cache.expiry import Expiry
from cache.image_states import ImageStates
from cache.node_info import NodeInfo
from cache.node_tree import NodeTree
from cache.node_usage import usage_for
from cache.pod_states import Effect, PodState, Stimulus, transition
from cache.value import MutableValue, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cache.locks import MakeLock
    from cache.node_usage import NodeUsage
    from cache.objects import Node, Pod
    from cache.observer import Observer
    from cache.pod_info import PodInfo
    from cache.snapshot import Snapshot

DEFAULT_TTL_S = 30.0
"""kube-scheduler's durationToExpireAssumedPod until it was set to 0 in 1.23."""

_generations = itertools.count(1)
"""One counter for all nodes: a node that was deleted and made again can never repeat one."""


class CacheConflictError(Exception):
    """A stimulus that the pod's state does not allow; the message names both."""


class PlacedPod(NamedTuple):
    """A pod and the node that the cache has for it."""

    info: PodInfo
    node_name: str


class _CachedPod(MutableValue):
    info: PodInfo
    node_name: str
    state: PodState


class _NodeItem:
    """An item of the linked list of nodes."""

    __slots__ = ("info", "newer", "older")

    def __init__(self, info: NodeInfo) -> None:
        self.info = info
        self.newer: _NodeItem | None = None
        self.older: _NodeItem | None = None


class SnapshotUpdate(Value, frozen=True):
    """The result of an update of the snapshot."""

    changed: int
    """Nodes taken over, new ones included."""
    removed: int
    """Nodes dropped."""


class CacheDump(Value, frozen=True):
    """A consistent copy of the cache, for debugging and for the comparer."""

    nodes: dict[str, NodeInfo]
    """Clones by name, imaginary nodes included."""
    assumed: dict[str, str]
    """Node name by UID, of pods that are assumed and not yet confirmed by the API."""
    states: dict[str, PodState]
    """State by UID."""


class CacheMark(Value, frozen=True):
    """The position of the cache's generations at one moment."""

    generation: int
    """That of the node that had changed last."""
    names: frozenset[str]
    """Of all nodes, imaginary ones included."""
    assumed: dict[str, str]
    """As in a dump."""


class CacheCounts(Value, frozen=True):
    """Sizes, for metrics."""

    nodes: int
    pods: int
    assumed_pods: int


class SchedulerCache:
    """The thread-safe cache.

    Parameters
    ----------
    ttl_s
        How long an assumed pod may wait for its confirmation once its binding has finished;
        0 or less means for ever.
    make_lock
        Creates the lock.

    Notes
    -----
    *Concurrency*: every public method is thread-safe by one plain lock, which is never held
    across a log line, a callback or a wait. Names ending in ``_locked`` need it held.

    Promises: no pod is assumed twice. A pod may be added without having been assumed. What was
    never added is neither updated nor removed. A pod that the API shows on another node than
    the assumed one is moved. Before its binding has finished, an assumed pod never expires.
    Pods are known by UID, never by name.
    """

    def __init__(
        self, *, ttl_s: float = DEFAULT_TTL_S, make_lock: MakeLock = threading.Lock
    ) -> None:
        self._lock = make_lock()
        self._nodes: dict[str, _NodeItem] = {}
        self._head: _NodeItem | None = None
        self._pods: dict[str, _CachedPod] = {}
        self._assumed: set[str] = set()
        self._expiry = Expiry(ttl_s)
        self._tree = NodeTree()
        self._tree_version = 0
        self._images = ImageStates()
        self.observer: Observer | None = None
        """Gets every change in its order, and every update of a snapshot among them."""

    # --- pods ---------------------------------------------------------------------------------

    def assume_pod(self, info: PodInfo, node_name: str) -> None:
        """Count a pod on a node although the API does not know of it yet.

        Raises
        ------
        CacheConflictError
            When the pod is assumed or added already.
        """
        with self._lock:
            self._stimulate_locked(Stimulus.ASSUME, info, node_name)

    def assume_pods(self, placed: Sequence[PlacedPod]) -> None:
        """Assume all of several pods, or none of them.

        Raises
        ------
        CacheConflictError
            When one of them is assumed or added already; nothing has changed then.
        """
        with self._lock:
            for info, _ in placed:
                step = transition(self._state_locked(info.uid), Stimulus.ASSUME)
                if step.effect is Effect.REJECT:
                    raise CacheConflictError(f"{info!r}: {step.why}")
            for info, node_name in placed:
                self._stimulate_locked(Stimulus.ASSUME, info, node_name)

    def finish_binding(self, info: PodInfo, now_s: float) -> None:
        """Record that the API server has accepted the binding: the time limit starts now.

        No change for a pod that the watch has confirmed meanwhile or that is gone.
        """
        with self._lock:
            self._stimulate_locked(Stimulus.FINISH_BINDING, info, "", now_s)

    def forget_pod(self, info: PodInfo) -> bool:
        """Undo the assumption of a pod.

        Returns
        -------
        Whether resources were freed; False for a pod that was confirmed meanwhile or is gone.
        """
        with self._lock:
            return self._stimulate_locked(Stimulus.FORGET, info, "") is Effect.REMOVE_FROM_NODE

    def add_pod(self, info: PodInfo) -> None:
        """Store a pod that the API shows as assigned; this confirms an assumption.

        A pod that is known already is brought up to date, and moved if its node is another one.
        """
        with self._lock:
            self._stimulate_locked(Stimulus.ADD, info, info.node_name)

    def update_pod(self, info: PodInfo) -> bool:
        """Update an assigned pod.

        Returns
        -------
        Whether the pod was known; what was never added is not updated.
        """
        with self._lock:
            effect = self._stimulate_locked(Stimulus.UPDATE, info, info.node_name)
            return effect is not Effect.REJECT

    def remove_pod(self, info: PodInfo) -> bool:
        """Remove a pod that the API has deleted or that has ended.

        Returns
        -------
        Whether the pod was known.
        """
        return self.remove_uid(info.uid) is not None

    def remove_uid(self, uid: str) -> PlacedPod | None:
        """Remove the pod with that UID in any state; its object need not be readable any more.

        Returns
        -------
        What was known of the pod, and so what leaves its node; None for one that was not known.
        """
        with self._lock:
            known = self._pods.get(uid)
            if known is None:
                return None
            self._stimulate_locked(Stimulus.REMOVE, known.info, "")
            return PlacedPod(known.info, known.node_name)

    def overdue(self, now_s: float) -> list[tuple[PodInfo, str]]:
        """Return the assumed pods past their time limit, each with its node. Changes nothing."""
        with self._lock:
            uids = self._expiry.overdue(now_s)
            return [(self._pods[uid].info, self._pods[uid].node_name) for uid in uids]

    def expire_assumed(self, now_s: float, *, only: frozenset[str] | None = None) -> list[PodInfo]:
        """Free the resources of overdue assumed pods, and return these pods.

        Safe use asks the API first and passes the UIDs that turned out unbound as ``only``.
        A late :meth:`add_pod` restores a pod.
        """
        with self._lock:
            expired = []
            for uid in self._expiry.overdue(now_s):
                if only is None or uid in only:
                    cached = self._pods[uid]
                    self._stimulate_locked(Stimulus.EXPIRE, cached.info, "")
                    expired.append(cached.info)
            return expired

    def get_pod(self, uid: str) -> PodInfo | None:
        """Return a pod that is assumed or added, or None."""
        with self._lock:
            cached = self._pods.get(uid)
            return None if cached is None else cached.info

    def pod_state(self, uid: str) -> PodState:
        """Return a pod's state; ``INITIAL`` for a pod that is not stored."""
        with self._lock:
            return self._state_locked(uid)

    def is_assumed_pod(self, uid: str) -> bool:
        """Return whether a pod is assumed and not confirmed."""
        with self._lock:
            return uid in self._assumed

    def is_placed_pod(self, uid: str) -> bool:
        """Return whether a pod has a node, assumed or confirmed."""
        with self._lock:
            return uid in self._pods

    def assumed_node(self, uid: str) -> str | None:
        """Return the node that a pod is assumed on; None when it is not assumed."""
        with self._lock:
            return self._pods[uid].node_name if uid in self._assumed else None

    def assumed_nodes(self) -> dict[str, str]:
        """Return the nodes of all assumed pods by UID. *Cost*: the number of assumed pods."""
        with self._lock:
            return {uid: self._pods[uid].node_name for uid in self._assumed}

    def usage_around(self, uid: str) -> NodeUsage | None:
        """Return the newest usage of the node of a pod; None for one that is not stored.

        The pod itself counts, and so do all assumed pods. *Cost*: 2 us.
        """
        with self._lock:
            cached = self._pods.get(uid)
            if cached is None:
                return None
            node_info = self._nodes[cached.node_name].info
            return usage_for(cached.info, node_info, is_assumed=uid in self._assumed)

    def generation_around(self, uid: str) -> int | None:
        """Return what changes with each change of a pod's node and of the pods on it.

        None for a pod that is not stored. No two nodes ever have the same.
        """
        with self._lock:
            cached = self._pods.get(uid)
            return None if cached is None else self._nodes[cached.node_name].info.generation

    def list_pods(self) -> list[PodInfo]:
        """Return all pods, assumed ones included."""
        with self._lock:
            return [cached.info for cached in self._pods.values()]

    def filtered_list(self, accepts: Callable[[Pod], bool]) -> list[PodInfo]:
        """Return the pods for which ``accepts`` returns true. It is called without the lock."""
        return [info for info in self.list_pods() if accepts(info.pod)]

    def _state_locked(self, uid: str) -> PodState:
        cached = self._pods.get(uid)
        return PodState.INITIAL if cached is None else cached.state

    def _stimulate_locked(
        self, stimulus: Stimulus, info: PodInfo, node_name: str, now_s: float = 0.0
    ) -> Effect:
        """Carry out the effect from the table of pod states, and return it."""
        uid = info.uid
        known = self._pods.get(uid)
        step = transition(PodState.INITIAL if known is None else known.state, stimulus)
        effect = step.effect
        if effect is Effect.REJECT and stimulus is Stimulus.ASSUME:
            raise CacheConflictError(f"{info!r}: {step.why}")
        if effect is Effect.ADD_TO_NODE:
            self._node_locked(node_name).info.add_pod(info)
            known = self._pods[uid] = _CachedPod(info, node_name, step.next)
            self._touch_locked(node_name)
        elif effect is Effect.SET_DEADLINE:
            self._expiry.start(uid, now_s)
        elif effect is Effect.REMOVE_FROM_NODE:
            self._drop_pod_locked(uid)
            known = None
        elif effect in (Effect.CONFIRM, Effect.REPLACE):
            self._replace_pod_locked(info, node_name)
        if known is not None:
            known.state = step.next
            if step.next is PodState.ASSUMED or step.next is PodState.BINDING_FINISHED:
                self._assumed.add(uid)
            elif uid in self._assumed:
                self._assumed.discard(uid)
                self._expiry.stop(uid)
        if self.observer is not None:
            self.observer(stimulus.value, info, node_name)
        return effect

    def _drop_pod_locked(self, uid: str) -> None:
        cached = self._pods.pop(uid)
        self._assumed.discard(uid)
        self._expiry.stop(uid)
        self._nodes[cached.node_name].info.remove_pod(uid)
        self._touch_locked(cached.node_name)

    def _replace_pod_locked(self, info: PodInfo, node_name: str) -> None:
        cached = self._pods[info.uid]
        old_name = cached.node_name
        cached.info = info
        if old_name == node_name:
            if self._nodes[node_name].info.replace_pod(info):
                self._touch_locked(node_name)
            return
        cached.node_name = node_name
        self._nodes[old_name].info.remove_pod(info.uid)
        self._touch_locked(old_name)
        self._node_locked(node_name).info.add_pod(info)
        self._touch_locked(node_name)

    # --- nodes --------------------------------------------------------------------------------

    def add_node(self, node: Node) -> None:
        """Store a new or changed node. Pods that arrived before it are on it already.

        Raises
        ------
        MalformedObjectError
            When a quantity cannot be read; what was known of the node stays.
        """
        name = node.metadata.name
        with self._lock:
            known = self._nodes.get(name)
            item = known or _NodeItem(NodeInfo(name))
            had_node = item.info.node is not None
            old_labels = item.info.labels
            item.info.set_node(node)
            if known is None:
                self._nodes[name] = item
            if not had_node:
                self._tree.add_node(name, node.metadata.labels)
                self._tree_version += 1
            elif old_labels != node.metadata.labels:
                self._tree.update_node(name, node.metadata.labels)
                self._tree_version += 1
            self._images.add_node(name, node.status.images)
            item.info.image_states = self._images.node_images(name)
            self._touch_locked(name)
            if self.observer is not None:
                self.observer("node", node, name)

    def update_node(self, node: Node) -> None:
        """Update a node: the same as :meth:`add_node`, which is idempotent."""
        self.add_node(node)

    def remove_node(self, name: str) -> bool:
        """Remove a node. While pods are left on it, it stays as an imaginary node.

        Returns
        -------
        Whether the node was known.
        """
        with self._lock:
            item = self._nodes.get(name)
            if item is None or item.info.node is None:
                return False
            self._tree.remove_node(name)
            self._tree_version += 1
            self._images.remove_node(name)
            item.info.remove_node()
            self._touch_locked(name)
            if self.observer is not None:
                self.observer("node_gone", None, name)
            return True

    def node_names(self) -> list[str]:
        """Return the names of all real nodes, round robin over their zones."""
        with self._lock:
            return self._tree.names()

    def counts(self) -> CacheCounts:
        """Return the sizes of the cache."""
        with self._lock:
            return CacheCounts(self._tree.num_nodes, len(self._pods), len(self._assumed))

    def _node_locked(self, name: str) -> _NodeItem:
        item = self._nodes.get(name)
        if item is None:
            item = _NodeItem(NodeInfo(name))
            self._nodes[name] = item
        return item

    def _touch_locked(self, name: str) -> None:
        """Give a node a new generation and put it at the list's head; drop an empty node."""
        item = self._nodes[name]
        self._unlink_locked(item)
        if item.info.node is None and not item.info.pods:
            del self._nodes[name]
            return
        item.info.generation = next(_generations)
        item.older = self._head
        if self._head is not None:
            self._head.newer = item
        self._head = item

    def _unlink_locked(self, item: _NodeItem) -> None:
        if item.newer is not None:
            item.newer.older = item.older
        if item.older is not None:
            item.older.newer = item.newer
        if self._head is item:
            self._head = item.older
        item.newer = item.older = None

    # --- snapshots ----------------------------------------------------------------------------

    def renew(self, names: Iterable[str]) -> None:
        """Have the next update of any snapshot copy these nodes, whether they changed or not."""
        with self._lock:
            for name in names:
                if name in self._nodes:
                    self._touch_locked(name)
                    if self.observer is not None:
                        self.observer("renew", None, name)

    def update_snapshot(self, snapshot: Snapshot) -> SnapshotUpdate:
        """Update a snapshot.

        *Cost*: proportional to the nodes changed since the last update of this snapshot, plus
        once all nodes when one was deleted. Under the lock changed nodes are copied, no more.
        """
        gone: list[str] = []
        order: list[str] | None = None
        with self._lock:
            item = self._head
            newest = item.info.generation if item is not None else 0
            fresh: list[NodeInfo] = []
            while item is not None and item.info.generation > snapshot.generation:
                if item.info.node is not None:
                    fresh.append(item.info.clone())
                item = item.older
            added = sum(info.name not in snapshot for info in fresh)
            if len(snapshot) + added > self._tree.num_nodes:
                known = (info.name for info in snapshot.columns.node_infos)
                gone = [name for name in known if not self._is_real_locked(name)]
            tree_version = self._tree_version
            if snapshot.tree_version != tree_version:
                order = self._tree.names()
            if self.observer is not None:
                self.observer("snapshot", None, "")
        snapshot.put_all(fresh)
        for name in gone:
            snapshot.remove(name)
        snapshot.generation = max(snapshot.generation, newest)
        if order is not None:
            snapshot.set_order(order, tree_version)
        return SnapshotUpdate(len(fresh), len(gone))

    def _is_real_locked(self, name: str) -> bool:
        item = self._nodes.get(name)
        return item is not None and item.info.node is not None

    def mark(self) -> CacheMark:
        """Return the current position of the cache. *Cost*: 0.1 ms with 5 000 nodes."""
        with self._lock:
            return CacheMark(
                generation=0 if self._head is None else self._head.info.generation,
                names=frozenset(self._nodes),
                assumed={uid: self._pods[uid].node_name for uid in self._assumed},
            )

    def node_at(self, name: str, mark: CacheMark) -> NodeInfo | None:
        """Return a copy of a node as it was at `mark`; None when it has changed since then.

        A node that was unknown then, and is now, comes without anything.
        """
        with self._lock:
            item = self._nodes.get(name)
            if item is None:
                return None if name in mark.names else NodeInfo(name)
            return None if item.info.generation > mark.generation else item.info.clone()

    def node_info(self, name: str) -> NodeInfo | None:
        """Return a copy of a node as it is now; None for one that is unknown."""
        with self._lock:
            item = self._nodes.get(name)
            return None if item is None else item.info.clone()

    def dump(self) -> CacheDump:
        """Return a consistent copy of everything. *Cost*: proportional to nodes and pods."""
        with self._lock:
            return CacheDump(
                nodes={name: item.info.clone() for name, item in self._nodes.items()},
                assumed={uid: self._pods[uid].node_name for uid in self._assumed},
                states={uid: cached.state for uid, cached in self._pods.items()},
            )
