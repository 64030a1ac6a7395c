"""API objects from a file, a pipe or lists, as the informers would have delivered them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from cache.known import Known
from cache.pod_info import PodInfo, is_terminal
from cache.resources import MalformedObjectError
from cache.snapshot import Snapshot
from scheduler.client.codec import Decoder, identity_of
from scheduler.kinds import NODES, PODS, WATCHED
from scheduler.queueing.nominator import Nominator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from cache.objects import Node, Pod

_DECODERS: Final = {kind.kind: Decoder(kind.struct) for kind in WATCHED}


class ClusterObjectError(ValueError):
    """An object that cannot be read; the message names it and the path of the bad value."""


class _Kind(msgspec.Struct, frozen=True):
    kind: msgspec.Raw = msgspec.Raw(b'""')


_KIND: Final = msgspec.json.Decoder(_Kind)
_TEXT: Final = msgspec.json.Decoder(str)


def kind_of(raw: msgspec.Raw) -> str:
    """Return an object's ``kind``, the empty string where it has none or is no object."""
    try:
        return _TEXT.decode(_KIND.decode(raw).kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""


class DumpError(ValueError):
    """A dump that cannot be read; the message is one sentence."""


class _Document(msgspec.Struct, frozen=True):
    kind: str = ""
    items: tuple[msgspec.Raw, ...] | None = None


_DOCUMENT: Final = msgspec.json.Decoder(_Document)


def read_dump(text: bytes, source: str) -> Iterator[tuple[msgspec.Raw, str]]:
    """Yield the objects of a list, or the one object that there is, with their presumed kinds.

    The items of a ``PodList`` do not say that they are pods; those of kubectl's ``List`` do.

    Parameters
    ----------
    text
        JSON.
    source
        What it was read from, for messages.

    Raises
    ------
    DumpError
        When it is no JSON object.
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
        All that plugins look at.
    cache
        Nodes, and the pods that use them: a part of it.
    nominator
        Waiting pods that have a node in view.
    nodes
        Every node by name.
    pods
        Every pod by ``namespace/name``, those that wait or have ended included.

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
            kind.kind: partial(kind.goes_to(known), None)
            for kind in WATCHED
            if kind.goes_to is not None
        }
        self._takers[PODS.kind] = self.add_pod
        self._takers[NODES.kind] = self.add_node

    def add(self, raw: msgspec.Raw, kind: str = "") -> None:
        """Take in one object as JSON; ``kind`` is what it is when it does not say so itself.

        Raises
        ------
        ClusterObjectError
            When it cannot be read; the cluster is then as if it were not there.
        """
        kind = kind_of(raw) or kind
        take = self._takers.get(kind)
        if take is None:
            return  # of a kind that no plugin reads
        try:
            take(_DECODERS[kind].decode(raw))
        except MalformedObjectError as error:
            raise ClusterObjectError(_sentence(kind, raw, error)) from error

    def add_node(self, node: Node) -> None:
        """Take in a node.

        Raises
        ------
        MalformedObjectError
            When a quantity cannot be read.
        """
        self.cache.add_node(node)
        self.nodes[node.metadata.name] = node

    def add_pod(self, pod: Pod) -> None:
        """Take in a pod.

        One that runs, or is about to, uses its node; one that waits may have a node in view.

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
        """Take in objects and their presumed kinds; return what could not be read."""
        unreadable = []
        for raw, kind in raws:
            try:
                self.add(raw, kind)
            except ClusterObjectError as error:
                unreadable.append(error)
        return unreadable

    def snapshot(self) -> Snapshot:
        """Return what a cycle would see now."""
        snapshot = Snapshot()
        self.cache.update_snapshot(snapshot)
        return snapshot


def read_pod(raw: msgspec.Raw) -> PodInfo:
    """Decode the pod that is asked about.

    Raises
    ------
    ClusterObjectError
        When it cannot be read.
    """
    try:
        return PodInfo(_DECODERS[PODS.kind].decode(raw))
    except MalformedObjectError as error:
        raise ClusterObjectError(_sentence(PODS.kind, raw, error)) from error


def _sentence(kind: str, raw: msgspec.Raw, error: MalformedObjectError) -> str:
    text = str(error)
    name = str(identity_of(bytes(raw)))
    return f"{kind} {text}" if text.startswith(name) else f"{kind} {name}: {text}"
