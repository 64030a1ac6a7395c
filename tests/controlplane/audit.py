"""What the API server itself says about binds: its audit log, read and judged.

The audit log is the one witness that shares no code with the scheduler. Each bind POST is logged
with its body, each other request with its metadata.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

# The API server's talk with itself and the renewals of leases would be most of the log.
POLICY: Final[Mapping[str, Any]] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "users": ["system:apiserver"]},
        {
            "level": "None",
            "resources": [{"group": "coordination.k8s.io", "resources": ["leases"]}],
            "verbs": ["get", "update", "patch", "watch"],
        },
        {
            "level": "Request",
            "verbs": ["create"],
            "resources": [{"group": "", "resources": ["pods/binding", "bindings"]}],
        },
        {"level": "Metadata"},
    ],
}


@dataclasses.dataclass(frozen=True, slots=True)
class BindRecord:
    """One bind POST as the API server saw it.

    Attributes
    ----------
    uid
        The pod's UID as the client gave it; empty when it gave none.
    node
        Where the client sent the pod; empty when the server refused before it read the body
        (throttled, forbidden), so that nothing is known of UID and node.
    code
        HTTP status of the answer; 201 is an accepted bind.
    time
        When the request arrived, in UTC.
    """

    uid: str
    namespace: str
    name: str
    node: str
    user: str
    code: int
    time: dt.datetime
    audit_id: str

    @property
    def accepted(self) -> bool:
        """Whether the API server bound the pod."""
        return 200 <= self.code < 300


@dataclasses.dataclass(frozen=True, slots=True)
class DeleteRecord:
    """A DELETE of one object that the API server accepted."""

    resource: str
    namespace: str
    name: str
    user: str
    time: dt.datetime


@dataclasses.dataclass(frozen=True, slots=True)
class ForbiddenRequest:
    """A request that RBAC refused."""

    user: str
    verb: str
    path: str
    time: dt.datetime


def read_events(log_file: Path) -> Iterator[dict[str, Any]]:
    """Yield the events of one log file; of a missing file none.

    A last line without its end is still being written, or is what a kill left: it is passed
    over. Any other line that is not an event raises, for lost evidence must not look clean.

    Raises
    ------
    msgspec.DecodeError
        A complete line is not a JSON object.
    """
    if not log_file.exists():
        return
    with log_file.open("rb") as lines:
        for line in lines:
            if not line.endswith(b"\n"):
                return
            yield msgspec.json.decode(line, type=dict[str, Any])


def bind_records(events: Iterable[Mapping[str, Any]]) -> Iterator[BindRecord]:
    """Yield the bind POSTs among `events`, refused ones too, dry runs not."""
    for event in events:
        target = event.get("objectRef") or {}
        if event.get("verb") != "create" or event.get("stage") == "RequestReceived":
            continue
        if (target.get("resource"), target.get("subresource")) not in _BINDING_RESOURCES:
            continue
        if "dryRun=" in event.get("requestURI", ""):
            continue
        body = event.get("requestObject") or {}
        metadata = body.get("metadata") or {}
        yield BindRecord(
            uid=metadata.get("uid", ""),
            namespace=target.get("namespace", ""),
            name=target.get("name") or metadata.get("name", ""),
            node=(body.get("target") or {}).get("name", ""),
            user=_user(event),
            code=_code(event),
            time=_time(event),
            audit_id=event.get("auditID", ""),
        )


def accepted_binds(events: Iterable[Mapping[str, Any]]) -> dict[str, list[BindRecord]]:
    """Return the accepted binds by pod UID; where a client gave none, by ``namespace/name``."""
    accepted: defaultdict[str, list[BindRecord]] = defaultdict(list)
    for record in bind_records(events):
        if record.accepted:
            accepted[_key(record)].append(record)
    return dict(accepted)


def check_binds(
    events: Iterable[Mapping[str, Any]],
    *,
    user: str,
    pods: Iterable[Mapping[str, Any]] = (),
) -> list[str]:
    """Return a sentence for each violation; an empty list is a clean log.

    Whoever bound it, a UID has at most one accepted bind. `user` names the pod's UID in every
    bind and never sends a pod to a second node, accepted or not. Each of `pods` (as the API
    has them now) that the log saw bound is on the node that the log says.
    """
    records = [record for record in bind_records(events) if record.node or record.accepted]
    violations = []
    by_key: defaultdict[str, list[BindRecord]] = defaultdict(list)
    for record in records:
        by_key[_key(record)].append(record)
        if record.user == user and not record.uid:
            violations.append(f"{record.namespace}/{record.name}: bound without its UID")
    for key, of_pod in by_key.items():
        pod = f"{of_pod[0].namespace}/{of_pod[0].name} ({key})"
        accepted = [record.node for record in of_pod if record.accepted]
        if len(accepted) > 1:
            violations.append(f"{pod}: {len(accepted)} accepted binds, to {', '.join(accepted)}")
        targets = sorted({record.node for record in of_pod if record.user == user})
        if len(targets) > 1:
            violations.append(f"{pod}: sent by {user} to {len(targets)} nodes, {targets}")
    for found in pods:
        metadata = found["metadata"]
        node = found.get("spec", {}).get("nodeName", "")
        pod = f"{metadata['namespace']}/{metadata['name']}"
        violations.extend(
            f"{pod}: the log bound it to {record.node}, the API has it on {node or 'no node'}"
            for record in by_key.get(metadata["uid"], ())
            if record.accepted and record.node != node
        )
    return violations


def accepted_deletes(
    events: Iterable[Mapping[str, Any]], *, user: str | None = None
) -> list[DeleteRecord]:
    """Return the DELETEs of single objects (of `user`, if given) that were accepted."""
    return [
        DeleteRecord(
            resource=target.get("resource", ""),
            namespace=target.get("namespace", ""),
            name=target["name"],
            user=_user(event),
            time=_time(event),
        )
        for event in events
        if event.get("verb") == "delete"
        and (target := event.get("objectRef") or {}).get("name")
        and 200 <= _code(event) < 300
        and user in (None, _user(event))
    ]


def forbidden_requests(
    events: Iterable[Mapping[str, Any]], *, user: str | None = None
) -> list[ForbiddenRequest]:
    """Return the requests (of `user`, if given) that were answered with 403."""
    return [
        ForbiddenRequest(
            user=_user(event),
            verb=event.get("verb", ""),
            path=event.get("requestURI", ""),
            time=_time(event),
        )
        for event in events
        if _code(event) == 403 and user in (None, _user(event))
    ]


# The legacy collection POST /namespaces/{ns}/bindings binds as well.
_BINDING_RESOURCES: Final = {("pods", "binding"), ("bindings", None), ("bindings", "")}


def _key(record: BindRecord) -> str:
    return record.uid or f"{record.namespace}/{record.name}"


def _user(event: Mapping[str, Any]) -> str:
    name = (event.get("user") or {}).get("username", "")
    assert isinstance(name, str)
    return name


def _code(event: Mapping[str, Any]) -> int:
    return int((event.get("responseStatus") or {}).get("code", 0))


def _time(event: Mapping[str, Any]) -> dt.datetime:
    return dt.datetime.fromisoformat(event["requestReceivedTimestamp"])
