"""The state that the entries of a journal add up to, from which files begin.

Follows the same entries as the files, on the journal's own thread, so that a checkpoint costs the
scheduling thread nothing and belongs to one exact place among the entries.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from cache.node_info import same_for_decisions
from cache.node_tree import NodeTree
from cache.pod_group_objects import group_key
from cache.pod_groups import MemberState, member_of
from cache.pod_states import Effect, PodState, Stimulus, transition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cache.objects import Node, Pod
    from cache.pod_group_objects import GroupKey
    from cache.pod_info import PodInfo
    from scheduler.journal.records import Entry

CLUSTER_NAMESPACE: Final = "kube-system"
"""The namespace whose UID identifies a cluster."""

_STIMULI: Final = {stimulus.value: stimulus for stimulus in Stimulus}
_WAITING: Final = (MemberState.GATED, MemberState.WAITING)
_LAST_COMES_LAST: Final = frozenset(
    {"Service", "DeviceClass", "PersistentVolume", "PersistentVolumeClaim"}
)
"""Types whose objects are listed by the time of their last change."""


class Mirror:
    """The state of the cluster as of the last entry.

    Attributes
    ----------
    cluster_id
        The UID of the namespace ``kube-system``; empty while it is not known.

    Notes
    -----
    *Concurrency*: confined to the journal's thread. *Cost*: one or two microseconds an entry; in
    memory a few hundred bytes an object, which itself is shared.
    """

    def __init__(self) -> None:
        self.cluster_id = ""
        self._nodes: dict[str, Node] = {}
        self._tree = NodeTree()
        self._pods: dict[str, tuple[PodInfo, str, PodState]] = {}
        self._touched: dict[str, None] = {}
        """The names of nodes, the one that changed last at the end."""
        self._nominated: dict[str, tuple[PodInfo, str]] = {}
        self._objects: dict[tuple[str, str, str], Any] = {}
        self._assumed: dict[tuple[str, str, str], Any] = {}
        self._written: dict[tuple[str, str], Any] = {}
        self._in_flight: dict[str, Any] = {}
        self._members: dict[str, tuple[Pod, Pod]] = {}
        """Members of groups as they came into their group, and as they are now."""
        self._decided: dict[GroupKey, dict[str, None]] = {}
        self._evictions: Counter[GroupKey] = Counter()
        self._evicted: dict[GroupKey, dict[str, None]] = {}
        self._metrics: dict[str, Entry] = {}
        self._config: Entry | None = None
        self._takers: dict[str, Callable[[Any, str], None]] = {
            "node": self._node,
            "node_gone": self._node_gone,
            "renew": lambda _, name: self._touch(name),
            "nominate": self._nominate,
            "nominated": self._follow_nominated,
            "not_nominated": lambda _, uid: self._drop_nomination(uid),
            "object": self._object,
            "assumed": self._assume,
            "claim": self._claim,
            "group": self._group,
            "metric": self._metric,
            "config": self._configure,
        }

    def follow(self, entry: Entry) -> None:
        """Follow an entry; one that is not about the state changes nothing."""
        what, subject, more = entry
        stimulus = _STIMULI.get(what)
        if stimulus is not None:
            self._stimulate(stimulus, subject, more)
            return
        take = self._takers.get(what)
        if take is not None:
            take(subject, more)

    # --- nodes and the pods on them -----------------------------------------------------------

    def _stimulate(self, stimulus: Stimulus, info: PodInfo, node_name: str) -> None:
        uid = info.uid
        known = self._pods.get(uid)
        step = transition(PodState.INITIAL if known is None else known[2], stimulus)
        effect = step.effect
        if effect is Effect.ADD_TO_NODE:
            self._pods[uid] = info, node_name, step.next
            self._touch(node_name)
        elif known is None:
            return
        elif effect is Effect.REMOVE_FROM_NODE:
            del self._pods[uid]
            self._touch(known[1])
        elif effect in (Effect.CONFIRM, Effect.REPLACE):
            self._replace(known, info, node_name, step.next)
        else:
            self._pods[uid] = known[0], known[1], step.next

    def _replace(
        self, known: tuple[PodInfo, str, PodState], info: PodInfo, node_name: str, state: PodState
    ) -> None:
        was, old_name, _ = known
        if old_name != node_name or not same_for_decisions(was, info):
            del self._pods[info.uid]  # it is the last pod of its node now
            self._touch(old_name)
            self._touch(node_name)
        self._pods[info.uid] = info, node_name, state

    def _touch(self, name: str) -> None:
        self._touched.pop(name, None)
        self._touched[name] = None

    def _node(self, node: Node, name: str) -> None:
        known = self._nodes.get(name)
        if known is None or known.metadata.labels != node.metadata.labels:
            self._tree.add_node(name, node.metadata.labels)
        self._nodes[name] = node
        self._touch(name)

    def _node_gone(self, _: None, name: str) -> None:
        if self._nodes.pop(name, None) is not None:
            self._tree.remove_node(name)
        self._touch(name)

    def _nominate(self, info: PodInfo, node_name: str) -> None:
        self._nominated.pop(info.uid, None)
        self._nominated[info.uid] = info, node_name

    def _follow_nominated(self, info: PodInfo, node_name: str) -> None:
        self._nominated[info.uid] = info, node_name

    def _drop_nomination(self, uid: str) -> None:
        self._nominated.pop(uid, None)

    # --- all else -----------------------------------------------------------------------------

    def _object(self, subject: Any, _: str) -> None:
        _, _, old, new = subject
        known = new if new is not None else old
        if known is None:
            return
        key = _key(known)
        if key[0] in _LAST_COMES_LAST or new is None:
            self._objects.pop(key, None)
        if new is not None:
            self._objects[key] = new
            if key[0] == "Namespace" and key[2] == CLUSTER_NAMESPACE:
                self.cluster_id = new.metadata.uid

    def _assume(self, subject: Any, _: str) -> None:
        verb, _, _, known = subject
        self._assumed.pop(_key(known), None)
        if verb == "assume":
            self._assumed[_key(known)] = known

    def _claim(self, subject: Any, _: str) -> None:
        verb, _, *arguments = subject
        if verb == "stored":
            metadata = arguments[0].metadata
            self._written[metadata.namespace, metadata.name] = arguments[0]
        elif verb == "restore":
            self._written.pop((arguments[0], arguments[1]), None)
        elif verb == "begin_flight":
            self._in_flight.setdefault(arguments[0].metadata.uid, arguments[0])
        else:
            self._in_flight.pop(arguments[0], None)

    def _group(self, subject: Any, _: str) -> None:
        verb, _, *arguments = subject
        if verb == "pod_changed":
            self._member(*arguments)
            return
        key = arguments[0]
        if verb == "assume":
            self._decided.setdefault(key, {}).update(dict.fromkeys(arguments[1]))
        elif verb == "forget_all":
            for uid in arguments[1]:
                self._decided.get(key, {}).pop(uid, None)
        elif verb == "begin_eviction":
            self._evictions[key] += 1
        else:
            self._evictions[key] -= self._evictions[key] > 0
            self._evicted.setdefault(key, {}).update(dict.fromkeys(arguments[1]))

    def _member(self, old: Pod | None, new: Pod | None) -> None:
        pod = new if new is not None else old
        if pod is None:
            return
        uid = pod.metadata.uid
        first, _ = self._members.pop(uid, (pod, pod))
        if new is None:
            for uids in (*self._decided.values(), *self._evicted.values()):
                uids.pop(uid, None)
            return
        if group_key(first) is None or member_of(new).state in _WAITING:
            first = new
        self._members[uid] = first, new

    def _metric(self, reading: Any, name: str) -> None:
        self._metrics[name] = "metric", reading, name

    def _configure(self, subject: Any, _: str) -> None:
        self._config = "config", subject, ""

    # --- the beginning of a file --------------------------------------------------------------

    def entries(self) -> Iterator[Entry]:
        """Yield entries that lead to the state from nothing."""
        if self._config is not None:
            yield self._config
        yield from self._other_entries()
        for name in self._tree.names():
            yield "node", self._nodes[name], name
        for info, node_name, state in self._pods.values():
            if state is PodState.ADDED:
                yield "add", info, node_name
                continue
            yield "assume", info, node_name
            if state is PodState.BINDING_FINISHED:
                yield "finish_binding", info, ""
        for name in self._touched:
            yield "renew", None, name
        self._touched = {name: None for name in self._touched if name in self._nodes}
        for info, node_name in self._nominated.values():
            yield "nominate", info, node_name
        yield from self._metrics.values()

    def _other_entries(self) -> Iterator[Entry]:
        for known in self._objects.values():
            yield "object", ("", False, None, known), ""
        for key, known in list(self._assumed.items()):
            api = self._objects.get(key)
            if api is None or _version(api) != _version(known):
                del self._assumed[key]
                continue
            part = "volumes" if key[0] == "PersistentVolume" else "claims"
            yield "assumed", ("assume", False, part, known), ""
        for claim_key, claim in list(self._written.items()):
            if ("ResourceClaim", *claim_key) not in self._objects:
                del self._written[claim_key]
                continue
            yield "claim", ("stored", False, claim), ""
        for claim in self._in_flight.values():
            yield "claim", ("begin_flight", False, claim), ""
        for first, latest in self._members.values():
            yield "group", ("pod_changed", False, None, first), ""
            if latest is not first:
                yield "group", ("pod_changed", False, first, latest), ""
        for key_of_group, uids in list(self._decided.items()):
            if not uids:
                del self._decided[key_of_group]
                continue
            yield "group", ("assume", False, key_of_group, list(uids)), ""
        for key_of_group, uids in list(self._evicted.items()):
            if not uids:
                del self._evicted[key_of_group]
                continue
            yield "group", ("begin_eviction", False, key_of_group), ""
            yield "group", ("end_eviction", False, key_of_group, list(uids)), ""
        for key_of_group, count in list(self._evictions.items()):
            if not count:
                del self._evictions[key_of_group]
            for _ in range(count):
                yield "group", ("begin_eviction", False, key_of_group), ""


def _key(known: Any) -> tuple[str, str, str]:
    metadata = known.metadata
    kind = type(known).__name__.removeprefix("Unreadable")
    namespace = ""
    with suppress(AttributeError):
        namespace = metadata.namespace
    return kind, namespace, metadata.name


def _version(known: Any) -> str:
    version: str = known.metadata.resource_version
    return version
