"""A cache filled with API objects of a file, a pipe or lists, as the informers would fill it."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from cache.known import Known
from cache.pod_info import PodInfo, is_terminal
from cache.quantity import QuantityError
from cache.resources import MalformedObjectError
from cache.snapshot import Snapshot
from scheduler.client.codec import Decoder, identity_of
from scheduler.kinds import NODES, PODS, WATCHED
from scheduler.queueing.nominator import Nominator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from cache.label_selectors import Selector
    from cache.objects import Node, Pod
    from scheduler.kinds import WatchedKind

_DECODERS: Final = {kind.name: Decoder(kind.struct) for kind in WATCHED}


class ClusterObjectError(ValueError):
    """An object cannot be decoded; the message names the object and the path of the bad value."""


class _TypeMeta(msgspec.Struct, frozen=True, rename="camel"):
    kind: msgspec.Raw = msgspec.Raw(b'""')
    api_version: msgspec.Raw = msgspec.Raw(b'""')


_TYPE_META: Final = msgspec.json.Decoder(_TypeMeta)
_TEXT: Final = msgspec.json.Decoder(str)


def kind_of(raw: msgspec.Raw) -> str:
    """Return an object's ``kind`` with its API group: ``Pod``, ``PodGroup.scheduling.k8s.io``.

    The empty string if it has none or is not an object.
    """
    try:
        told = _TYPE_META.decode(raw)
        return qualified_kind(_TEXT.decode(told.kind), _TEXT.decode(told.api_version))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""


def qualified_kind(kind: str, api_version: str) -> str:
    """Return a kind with its API group: two kinds of different groups may share their name."""
    group = api_version.rpartition("/")[0]
    return f"{kind}.{group}" if kind and group else kind


def _by_kind() -> Mapping[str, WatchedKind[Any]]:
    """Return all kinds by what objects call themselves, and by the bare name where one has it."""
    by_name = Counter(kind.kind for kind in WATCHED)
    bare = {kind.kind: kind for kind in WATCHED if by_name[kind.kind] == 1}
    return bare | {qualified_kind(kind.kind, kind.group_version): kind for kind in WATCHED}


_KINDS: Final = _by_kind()


LIMIT_RANGE: Final = "LimitRange"
RESOURCE_QUOTA: Final = "ResourceQuota"
LIMITS: Final = frozenset({LIMIT_RANGE, RESOURCE_QUOTA})
"""Kinds that no cycle reads, but that decide whether the API server takes a new pod."""


class DumpError(ValueError):
    """A dump cannot be decoded; the message is one sentence."""


class _Document(msgspec.Struct, frozen=True, rename="camel"):
    kind: str = ""
    api_version: str = ""
    items: tuple[msgspec.Raw, ...] | None = None


_DOCUMENT: Final = msgspec.json.Decoder(_Document)


def read_dump(text: bytes, source: str) -> Iterator[tuple[msgspec.Raw, str]]:
    """Yield the objects of a list, or a single object, with their presumed kinds.

    The items of a ``PodList`` have no ``kind`` themselves; those of kubectl's ``List`` have one.

    Parameters
    ----------
    text
        JSON.
    source
        The name of the input, for messages.

    Raises
    ------
    DumpError
        When the text is not a JSON object.
    """
    try:
        document = _DOCUMENT.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        why = f"{source} is not what kubectl get -o json prints: {error}"
        raise DumpError(why) from error
    if document.items is None:
        yield msgspec.Raw(text), qualified_kind(document.kind, document.api_version)
        return
    kind = "" if document.kind == "List" else document.kind.removesuffix("List")
    kind = qualified_kind(kind, document.api_version)
    for raw in document.items:
        yield raw, kind


class Cluster:
    """A cache filled with the objects of a cluster.

    Attributes
    ----------
    known
        The observed state that plugins read.
    cache
        The nodes and their pods: a part of ``known``.
    nominator
        The pending pods that have a nominated node.
    nodes
        Every node by name.
    pods
        Every pod by ``namespace/name``, including pending and finished pods.
    limits
        The objects of the kinds of ``LIMITS`` as they came, by kind. A kind that is not there is
        not known; one without objects was listed and has none.

    Notes
    -----
    *Concurrency*: confined to its owner.
    """

    def __init__(self) -> None:
        known = self.known = Known.nothing()
        self.cache = known.cache
        self.nominator = Nominator(lambda uid: True)
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.limits: dict[str, list[msgspec.Raw]] = {}
        self._takers: dict[str, Callable[[Any], object]] = {
            kind.name: partial(_take, kind, kind.goes_to(known))
            for kind in WATCHED
            if kind.goes_to is not None
        }
        self._takers[PODS.name] = self.add_pod
        self._takers[NODES.name] = self.add_node

    def add(self, raw: msgspec.Raw, kind: str = "") -> None:
        """Add one object as JSON; ``kind`` applies if the object itself has no kind.

        With its API group: :func:`qualified_kind`.

        Raises
        ------
        ClusterObjectError
            When the object cannot be decoded; the cluster is then unchanged.
        """
        kind = kind_of(raw) or kind
        known = _KINDS.get(kind)
        if known is None:
            if (bare := kind.removesuffix("List")) in LIMITS:
                held = self.limits.setdefault(bare, [])
                held += (raw,) if bare == kind else ()
            return  # of a kind that no cycle reads
        try:
            self._takers[known.name](_DECODERS[known.name].decode(raw))
        except (MalformedObjectError, QuantityError) as error:
            raise ClusterObjectError(_sentence(known.kind, raw, error)) from error

    def add_node(self, node: Node) -> None:
        """Add a node.

        Raises
        ------
        MalformedObjectError
            When a quantity cannot be read.
        """
        self.cache.add_node(node)
        self.nodes[node.metadata.name] = node

    def keep_nodes(self, selector: Selector) -> None:
        """Remove the nodes that a label selector does not select."""
        for name, node in list(self.nodes.items()):
            if not selector.matches(node.metadata.labels):
                self.cache.remove_node(name)
                del self.nodes[name]

    def add_pod(self, pod: Pod) -> None:
        """Add a pod.

        An assigned pod uses resources of its node; a pending pod may have a nominated node.

        Raises
        ------
        MalformedObjectError
            When a quantity cannot be read.
        """
        if pod.spec.node_name and not is_terminal(pod):
            self.cache.add_pod(PodInfo(pod))
        elif pod.status.nominated_node_name and not is_terminal(pod):
            self.nominator.add(PodInfo(pod), pod.status.nominated_node_name)
        self.known.pod_groups.pod_changed(None, pod)
        self.pods[f"{pod.metadata.namespace}/{pod.metadata.name}"] = pod

    def add_all(self, raws: Iterable[tuple[msgspec.Raw, str]]) -> list[ClusterObjectError]:
        """Add objects with their presumed kinds; return an error for each undecodable object."""
        unreadable = []
        for raw, kind in raws:
            try:
                self.add(raw, kind)
            except ClusterObjectError as error:
                unreadable.append(error)
        return unreadable

    def snapshot(self) -> Snapshot:
        """Return the snapshot that a cycle would use now."""
        snapshot = Snapshot()
        self.cache.update_snapshot(snapshot)
        return snapshot


def read_pod(raw: msgspec.Raw) -> PodInfo:
    """Decode the pod to explain.

    Raises
    ------
    ClusterObjectError
        When the pod cannot be decoded.
    """
    try:
        return PodInfo(_DECODERS[PODS.name].decode(raw))
    except MalformedObjectError as error:
        raise ClusterObjectError(_sentence(PODS.kind, raw, error)) from error


def _take(kind: WatchedKind[Any], take: Callable[..., object], added: Any) -> None:
    kind.check_amounts(added)
    take(None, added)


def _sentence(kind: str, raw: msgspec.Raw, error: Exception) -> str:
    text = str(error)
    name = str(identity_of(bytes(raw)))
    return f"{kind} {text}" if text.startswith(name) else f"{kind} {name}: {text}"
