"""The worker's copy of the cluster: filled with objects, and changed as these change."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import structlog

from cache.pod_info import is_terminal, on_node, readable_info
from cache.quantity import QuantityError
from cache.snapshot import Snapshot
from scheduler.explain.pod_report import as_if_pending
from scheduler.insight.messages import KINDS, changed_objects
from scheduler.kinds import NODES, PODS
from scheduler.offline.cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cache.objects import Node, Pod
    from cache.pod_info import PodInfo
    from scheduler.insight.messages import Objects

log = structlog.get_logger(__name__)


class ClusterCopy:
    """An offline cluster that follows another one.

    Attributes
    ----------
    cluster
        All objects, and the pods that the scheduler has assumed on their nodes.

    Notes
    -----
    *Concurrency*: confined to its owner.
    """

    def __init__(self) -> None:
        self.cluster = Cluster()
        self._objects: dict[str, dict[str, Any]] = {name: {} for name in KINDS}
        self._takers = {
            kind.name: kind.goes_to(self.cluster.known)
            for kind in KINDS.values()
            if kind.goes_to is not None
        }
        self._assumed: Mapping[str, str] = {}
        self._snapshot = Snapshot()
        self.version = 0
        """Grows with each change."""

    def change(self, message: Objects) -> None:
        """Apply changes of objects; one that cannot be read counts as gone."""
        self.version += 1
        known = self._objects[message.kind]
        for uid in message.gone:
            self._apply(message.kind, known.pop(uid, None), None)
        for new in changed_objects(message):
            uid = new.metadata.uid
            old = known.pop(uid, None)
            if self._apply(message.kind, old, new):
                known[uid] = new

    def assume(self, nodes: Mapping[str, str]) -> None:
        """Put assumed pods on their nodes, by UID, in place of those that were assumed before."""
        if nodes == self._assumed:
            return
        self.version += 1
        before, self._assumed = self._assumed, nodes
        pods = self._objects[PODS.name]
        for uid in {*before, *nodes}:
            pod = pods.get(uid)
            if pod is not None and before.get(uid) != nodes.get(uid):
                self._unplace(pod)
                self._place(pod)

    @contextmanager
    def as_pending(self, pod: Pod) -> Iterator[PodInfo]:
        """Take a pod off its node within the context, and put it back; yield it without a node.

        Raises
        ------
        UnreadablePodError
            A quantity of the pod cannot be read.
        """
        info = as_if_pending(self.cluster, pod)
        is_assumed = pod.metadata.uid in self._assumed
        if is_assumed:
            self.cluster.cache.remove_uid(pod.metadata.uid)
        try:
            yield info
        finally:
            if is_assumed or pod.spec.node_name:
                self._place(pod)

    def snapshot(self) -> Snapshot:
        """Return all nodes as they are now. The same object each time, brought up to date."""
        self.cluster.cache.update_snapshot(self._snapshot)
        return self._snapshot

    def _apply(self, kind: str, old: Any, new: Any) -> bool:
        """Apply one change; return whether the new version is in."""
        if old is None and new is None:
            return False
        try:
            if new is not None:
                KINDS[kind].check_amounts(new)
        except QuantityError:
            new = None
        try:
            if kind == PODS.name:
                self._change_pod(old, new)
            elif kind == NODES.name:
                self._change_node(old, new)
            elif old is not None or new is not None:
                self._takers[kind](old, new)
        except Exception:
            # One object must not take all others away; the informers contain it in the same way.
            log.exception("an object is left out", kind=kind)
            return False
        return new is not None

    def _change_node(self, old: Node | None, new: Node | None) -> None:
        cluster = self.cluster
        if new is not None:
            cluster.add_node(new)
        elif old is not None and cluster.nodes.get(old.metadata.name) is old:
            cluster.cache.remove_node(old.metadata.name)
            del cluster.nodes[old.metadata.name]

    def _change_pod(self, old: Pod | None, new: Pod | None) -> None:
        cluster = self.cluster
        if old is not None:
            self._unplace(old)
            key = f"{old.metadata.namespace}/{old.metadata.name}"
            if cluster.pods.get(key) is old:
                del cluster.pods[key]
        if new is not None:
            self._place(new)
            cluster.pods[f"{new.metadata.namespace}/{new.metadata.name}"] = new
        cluster.known.pod_groups.pod_changed(old, new)

    def _unplace(self, pod: Pod) -> None:
        self.cluster.cache.remove_uid(pod.metadata.uid)
        self.cluster.nominator.delete(pod.metadata.uid)

    def _place(self, pod: Pod) -> None:
        """Let a pod use its node, as the scheduler's cache does."""
        if is_terminal(pod):
            return
        assumed = self._assumed.get(pod.metadata.uid, "")
        if pod.spec.node_name:
            self.cluster.cache.add_pod(readable_info(pod))
        elif assumed:
            self.cluster.cache.add_pod(readable_info(on_node(pod, assumed)))
        elif pod.status.nominated_node_name:
            self.cluster.nominator.add(readable_info(pod), pod.status.nominated_node_name)
