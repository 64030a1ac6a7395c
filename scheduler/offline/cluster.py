"""A cache filled with API objects of a file, a pipe or lists, as the informers would fill it."""

from __future__ import annotations

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
    from collections.abc import Callable, Iterable, Iterator

    from cache.objects import Node, Pod
    from scheduler.kinds import WatchedKind

_DECODERS: Final = {kind.kind: Decoder(kind.struct) for kind in WATCHED}


class ClusterObjectError(ValueError):
    """An object cannot be decoded; the message names the object and the path of the bad value."""


class _Kind(msgspec.Struct, frozen=True):
    kind: msgspec.Raw = msgspec.Raw(b'""')


_KIND: Final = msgspec.json.Decoder(_Kind)
_TEXT: Final = msgspec.json.Decoder(str)


def kind_of(raw: msgspec.Raw) -> str:
    """Return an object's ``kind``; the empty string if it has none or is not an object."""
    try:
        return _TEXT.decode(_KIND.decode(raw).kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""


class DumpError(ValueError):
    """A dump cannot be decoded; the message is one sentence."""


class _Document(msgspec.Struct, frozen=True):
    kind: str = ""
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
        yield msgspec.Raw(text), document.kind
        return
    kind = "" if document.kind == "List" else document.kind.removesuffix("List")
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
        self._takers: dict[str, Callable[[Any], object]] = {
            kind.kind: partial(_take, kind, kind.goes_to(known))
            for kind in WATCHED
            if kind.goes_to is not None
        }
        self._takers[PODS.kind] = self.add_pod
        self._takers[NODES.kind] = self.add_node

    def add(self, raw: msgspec.Raw, kind: str = "") -> None:
        """Add one object as JSON; ``kind`` applies if the object itself has no kind.

        Raises
        ------
        ClusterObjectError
            When the object cannot be decoded; the cluster is then unchanged.
        """
        kind = kind_of(raw) or kind
        take = self._takers.get(kind)
        if take is None:
            return  # of a kind that no plugin reads
        try:
            take(_DECODERS[kind].decode(raw))
        except (MalformedObjectError, QuantityError) as error:
            raise ClusterObjectError(_sentence(kind, raw, error)) from error

    def add_node(self, node: Node) -> None:
        """Add a node.

        Raises
        ------
        MalformedObjectError
            When a quantity cannot be read.
        """
        self.cache.add_node(node)
        self.nodes[node.metadata.name] = node

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
        return PodInfo(_DECODERS[PODS.kind].decode(raw))
    except MalformedObjectError as error:
        raise ClusterObjectError(_sentence(PODS.kind, raw, error)) from error


def _take(kind: WatchedKind[Any], take: Callable[..., object], added: Any) -> None:
    kind.check_amounts(added)
    take(None, added)


def _sentence(kind: str, raw: msgspec.Raw, error: Exception) -> str:
    text = str(error)
    name = str(identity_of(bytes(raw)))
    return f"{kind} {text}" if text.startswith(name) else f"{kind} {name}: {text}"
