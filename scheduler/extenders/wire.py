"""The bodies of requests to extenders and of their responses.

Keys have the names of the fields of Go's structs. A response may write them in any case, and null
for empty values, because Go's decoder, for which extenders are written, accepts both.

*Source*: k8s.io/kube-scheduler extender/v1/types.go (0.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import msgspec

from cache.value import Value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_EXTENDER_PRIORITY: Final = 10
"""The highest score that an extender should return."""


class MalformedAnswerError(Exception):
    """An extender's response violates the protocol; the message names the bad value."""


class _Nodes(msgspec.Struct, frozen=True):
    items: list[msgspec.Raw]
    # A list in Go is written with its own metadata, empty as it is.
    metadata: dict[str, str] = {}


class _Args(msgspec.Struct, frozen=True, rename="pascal"):
    pod: msgspec.Raw
    nodes: _Nodes | None
    node_names: list[str] | None


class _BindingArgs(msgspec.Struct, frozen=True):
    pod_name: str = msgspec.field(name="PodName")
    pod_namespace: str = msgspec.field(name="PodNamespace")
    pod_uid: str = msgspec.field(name="PodUID")
    node: str = msgspec.field(name="Node")


class FilterResult(Value, frozen=True):
    """The response to a filter request.

    Attributes
    ----------
    nodes, node_names
        The names of the feasible nodes, from the field of that name; None if the response does
        not contain it.
    failed, failed_and_unresolvable
        The reasons by the names of nodes that are not feasible.
    error
        The error of the extender; empty if there was none.
    """

    nodes: list[str] | None
    node_names: list[str] | None
    failed: dict[str, str]
    failed_and_unresolvable: dict[str, str]
    error: str


class _MetaPod(msgspec.Struct, frozen=True):
    uid: str = msgspec.field(name="UID")


class _Victims(msgspec.Struct, frozen=True):
    pods: list[msgspec.Raw | _MetaPod] = msgspec.field(name="Pods")
    num_pdb_violations: int = msgspec.field(name="NumPDBViolations")


class _PreemptionArgs(msgspec.Struct, frozen=True, rename="pascal"):
    pod: msgspec.Raw
    node_name_to_victims: dict[str, _Victims] | None
    node_name_to_meta_victims: dict[str, _Victims] | None


class VictimUids(NamedTuple):
    """The victims on one node, as an extender returned them."""

    uids: tuple[str, ...]
    pdb_violations: int


class HostPriority(msgspec.Struct, frozen=True, rename="pascal"):
    """The score of one node."""

    host: str = ""
    score: Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)] = 0


class _NamedMeta(msgspec.Struct, frozen=True):
    name: str = ""


class _Named(msgspec.Struct, frozen=True):
    metadata: _NamedMeta = _NamedMeta()


_encode: Final = msgspec.json.Encoder().encode
_FIELDS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw] | None)
_PRIORITIES: Final = msgspec.json.Decoder(list[HostPriority | None] | None)
_NODE_ITEMS: Final = msgspec.json.Decoder(list[_Named] | None)
_NAMES: Final = msgspec.json.Decoder(list[str] | None)
_REASONS: Final = msgspec.json.Decoder(dict[str, str] | None)
_BY_NODE: Final = msgspec.json.Decoder(dict[str, msgspec.Raw] | None)
_PODS: Final = msgspec.json.Decoder(list[msgspec.Raw] | None)
_COUNT: Final = msgspec.json.Decoder(int | None)
_TEXT: Final = msgspec.json.Decoder(str | None)


def encode_args(
    pod: msgspec.Raw, *, nodes: list[msgspec.Raw] | None, node_names: list[str] | None
) -> bytes:
    """Return the body of a filter or prioritize request, with either nodes or node names.

    Exactly one of ``nodes`` and ``node_names`` is not None.
    """
    return _encode(_Args(pod, None if nodes is None else _Nodes(nodes), node_names))


def encode_binding(namespace: str, name: str, uid: str, node_name: str) -> bytes:
    """Return the body of a bind request."""
    return _encode(_BindingArgs(name, namespace, uid, node_name))


def encode_preemption(
    pod: msgspec.Raw,
    victims: Mapping[str, tuple[Sequence[str], int]],
    whole: Mapping[str, msgspec.Raw] | None,
) -> bytes:
    """Return the body of a preempt request.

    Parameters
    ----------
    victims
        By node, the UIDs of the victims and the number of PodDisruptionBudget violations.
    whole
        The whole victims by UID; None to send only their UIDs.
    """
    sent = {
        node: _Victims([_MetaPod(uid) if whole is None else whole[uid] for uid in uids], violations)
        for node, (uids, violations) in victims.items()
    }
    return _encode(
        _PreemptionArgs(pod, None, sent) if whole is None else _PreemptionArgs(pod, sent, None)
    )


def decode_preemption_result(body: bytes) -> dict[str, VictimUids | None]:
    """Return the response to a preempt request: victims by node, None for a null.

    Raises
    ------
    MalformedAnswerError
        When the body is not such a response.
    """
    path = "NodeNameToMetaVictims"
    raw = _fields(body, "").get(path.lower())
    found = None if raw is None else _decode(_BY_NODE, raw, path)
    result: dict[str, VictimUids | None] = {}
    for node, each in (found or {}).items():
        where = f"{path}.{node}"
        if bytes(each) == b"null":
            result[node] = None
            continue
        fields = _fields(each, where)
        pods = _field(_PODS, fields, "Pods") or []
        uids = [_field(_TEXT, _fields(one, f"{where}.Pods"), "UID") or "" for one in pods]
        violations = _field(_COUNT, fields, "NumPDBViolations") or 0
        result[node] = VictimUids(tuple(uids), violations)
    return result


def decode_filter_result(body: bytes) -> FilterResult:
    """Return the response to a filter request.

    Raises
    ------
    MalformedAnswerError
        When the body is not such a response.
    """
    fields = _fields(body, "")
    nodes: list[str] | None = None
    if (raw := fields.get("nodes")) is not None:
        items = _fields(raw, "Nodes").get("items", msgspec.Raw(b"null"))
        found = _decode(_NODE_ITEMS, items, "Nodes.items") or []
        nodes = [each.metadata.name for each in found]
    return FilterResult(
        nodes=nodes,
        node_names=_field(_NAMES, fields, "NodeNames"),
        failed=_field(_REASONS, fields, "FailedNodes") or {},
        failed_and_unresolvable=_field(_REASONS, fields, "FailedAndUnresolvableNodes") or {},
        error=_field(_TEXT, fields, "Error") or "",
    )


def decode_priorities(body: bytes) -> list[HostPriority]:
    """Return the response to a prioritize request; raise like :func:`decode_filter_result`."""
    try:
        found = _PRIORITIES.decode(body) or []
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedAnswerError(str(error)) from error
    if all(each is not None and each.host for each in found):
        return [each for each in found if each is not None]
    # Unknown keys are dropped: this one may have spelt them otherwise.
    entries = msgspec.json.decode(body)
    return [_priority(entry, index) for index, entry in enumerate(entries)]


def decode_binding_error(body: bytes) -> str:
    """Return why a pod was not bound, empty if it was; raise like :func:`decode_filter_result`."""
    return _field(_TEXT, _fields(body, ""), "Error") or ""


def _priority(entry: Mapping[str, Any] | None, index: int) -> HostPriority:
    folded = {key.lower(): value for key, value in (entry or {}).items() if value is not None}
    named = {"Host": folded.get("host", ""), "Score": folded.get("score", 0)}
    try:
        return msgspec.convert(named, HostPriority)
    except msgspec.ValidationError as error:
        raise MalformedAnswerError(f"[{index}]: {error}") from error


def _fields(body: bytes | msgspec.Raw, path: str) -> dict[str, msgspec.Raw]:
    found = _decode(_FIELDS, body, path) or {}
    return {key.lower(): value for key, value in found.items()}


def _field(decoder: msgspec.json.Decoder[Any], fields: dict[str, msgspec.Raw], name: str) -> Any:
    raw = fields.get(name.lower())
    return None if raw is None else _decode(decoder, raw, name)


def _decode(decoder: msgspec.json.Decoder[Any], raw: bytes | msgspec.Raw, path: str) -> Any:
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedAnswerError(f"{path}: {error}" if path else str(error)) from error
