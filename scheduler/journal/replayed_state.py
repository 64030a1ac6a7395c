"""What was known at one place of a journal, made again out of its records."""

from __future__ import annotations

from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from cache.assume_cache import AssumeError
from cache.node_info import NodeInfo
from cache.objects import Node, NodeMeta
from cache.pod_group_objects import GroupKey, GroupSource
from cache.pod_info import readable_info
from cache.scheduler_cache import CacheConflictError
from cache.snapshot import Snapshot
from plugins.framework.node_metrics import MetricReading
from scheduler.journal.records import RecordDecoder
from scheduler.kinds import NODES, PODS, WATCHED
from scheduler.offline.cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cache.objects import Pod
    from cache.pod_info import PodInfo

_KIND_OF: Final = {kind.struct: kind for kind in WATCHED if kind not in (NODES, PODS)}


class ReplayedState:
    """A cluster that follows the records of one file.

    Attributes
    ----------
    cluster
        What is known.
    snapshot
        The nodes as the next decision sees them.
    decoder
        Finds the objects that records name.
    metrics
        The readings of node metrics by name.

    Notes
    -----
    *Concurrency*: confined to its owner.
    """

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.snapshot = Snapshot()
        self.decoder = RecordDecoder()
        self.metrics: dict[str, MetricReading | None] = {}
        self._versions = 0
        self._infos: dict[str, PodInfo] = {}
        known, cache = self.cluster.known, self.cluster.cache
        self._goes_to: dict[type, Callable[..., object]] = {
            struct: kind.goes_to(known)
            for struct, kind in _KIND_OF.items()
            if kind.goes_to is not None
        }
        self._appliers: dict[str, Callable[..., object]] = {
            "assume": lambda pod, node: cache.assume_pod(self.info(pod), node),
            "add": self._add_pod,
            "update": lambda pod, _: cache.update_pod(self.info(pod)),
            "finish_binding": self._finish_binding,
            "forget": self._forget,
            "remove": self._remove,
            "expire": self._remove,
            "node": self._node,
            "node_gone": lambda _, name: cache.remove_node(name),
            "renew": lambda _, name: cache.renew((name,)),
            "snapshot": lambda *_: cache.update_snapshot(self.snapshot),
            "nominate": self._nominate,
            "nominated": self._nominate_newer,
            "not_nominated": lambda _, uid: self.cluster.nominator.delete(uid),
            "object": self._object,
            "assumed": self._assumed,
            "claim": self._claim,
            "group": self._group,
            "metric": self._metric,
            "cut": self._cut,
        }

    def info(self, number: int) -> PodInfo:
        """Return a pod by its number."""
        return self.info_of(self.decoder.pod(number))

    def info_of(self, pod: Pod) -> PodInfo:
        """Return a pod with its derived data, which are made once for each version of it."""
        uid = pod.metadata.uid
        known = self._infos.get(uid)
        if known is None or known.pod is not pod:
            known = self._infos[uid] = readable_info(pod)
        return known

    def apply(self, record: Sequence[Any]) -> None:
        """Apply a record about the state; others change nothing.

        What the scheduler's own parts refused is refused here as well.
        """
        apply = self._appliers.get(record[0])
        if apply is not None:
            with suppress(CacheConflictError, AssumeError):
                apply(*record[1:])

    # --- nodes and pods -----------------------------------------------------------------------

    def _add_pod(self, number: int, _: str) -> None:
        self.cluster.cache.add_pod(self.info(number))

    def _finish_binding(self, uid: str) -> None:
        info = self.cluster.cache.get_pod(uid)
        if info is not None:
            self.cluster.cache.finish_binding(info, 0.0)

    def _forget(self, uid: str) -> None:
        info = self.cluster.cache.get_pod(uid)
        if info is not None:
            self.cluster.cache.forget_pod(info)

    def _remove(self, uid: str) -> None:
        self.cluster.cache.remove_uid(uid)
        self._infos.pop(uid, None)

    def _node(self, number: int) -> None:
        node = self.decoder.object(number)
        self.cluster.cache.add_node(node)
        self.cluster.nodes[node.metadata.name] = node

    def _nominate(self, number: int, node_name: str) -> None:
        self.cluster.nominator.add(self.info(number), node_name)

    def _nominate_newer(self, number: int, node_name: str) -> None:
        info, nominator = self.info(number), self.cluster.nominator
        if nominator.node_of(info.uid) == node_name:
            nominator.update(info.pod, info)

    def _cut(self, names: Sequence[str], _: str) -> None:
        """Begin with the order that nodes had in the snapshot."""
        for name in names:
            info = self.cluster.cache.node_info(name)
            if info is None or info.node is None:
                # It has gone since, and only holds its place until the next update.
                info = NodeInfo(name)
                info.set_node(Node(NodeMeta(name)))
            self.snapshot.put(info)

    # --- all else -----------------------------------------------------------------------------

    def _object(self, verb: str, _: bool, old: int | None, new: int | None) -> None:
        before, after = self.decoder.object(old), self.decoder.object(new)
        subject = after if after is not None else before
        if subject is None:
            return
        take = self._goes_to.get(type(subject)) or self._goes_to[type(subject).__mro__[1]]
        if verb == "restored":
            take(before, after, restored=True)
        else:
            take(before, after)

    def _assumed(self, verb: str, _: bool, part: str, number: int) -> None:
        getattr(getattr(self.cluster.known.storage, part), verb)(self.decoder.object(number))

    def _claim(self, verb: str, _: bool, *arguments: Any) -> None:
        claims = self.cluster.known.devices.claims
        if verb in ("stored", "begin_flight"):
            arguments = (self.decoder.object(arguments[0]),)
        getattr(claims, verb)(*arguments)

    def _group(self, verb: str, _: bool, *arguments: Any) -> None:
        groups = self.cluster.known.pod_groups
        if verb == "pod_changed":
            groups.pod_changed(*map(self.decoder.object, arguments))
            return
        getattr(groups, verb)(group_key_of(arguments[0]), *arguments[1:])

    def _metric(self, by_node: dict[str, float] | None, name: str) -> None:
        self._versions += 1
        reading = None
        if by_node is not None:
            reading = MetricReading(MappingProxyType(by_node), self._versions)
        self.metrics[name] = reading


def group_key_of(told: Sequence[str]) -> GroupKey:
    """Return the key of a group as it stands in a record."""
    namespace, name, source = told
    return GroupKey(namespace, name, GroupSource(source))
