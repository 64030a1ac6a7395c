"""Requests to the fake API server as values: parsing them, and what their selectors select."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from tests.fakes.api_objects import RESOURCES, ApiProblemError, Change, JsonObject, watch_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aiohttp import web


@dataclass(slots=True)
class RequestRecord:
    """A request that arrived, in the order of arrival.

    Attributes
    ----------
    verb
        As in :mod:`tests.fakes.api_faults`.
    body
        Decoded JSON; None without a body.
    status
        None until it is answered, and when the answer was lost.
    """

    verb: str
    resource: str
    namespace: str
    name: str
    query: Mapping[str, str]
    body: Any
    content_type: str
    status: int | None = None


def read_request(request: web.BaseRequest, raw_body: bytes) -> RequestRecord:
    """Parse a request; raises ApiProblemError 404 for a path that is not served."""
    parts = request.path.strip("/").split("/")
    depth = 2 if parts[0] == "api" else 3
    prefix, rest = "/" + "/".join(parts[:depth]), parts[depth:]
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2 and rest[2] in RESOURCES:
        namespace, rest = rest[1], rest[2:]
    resource = rest[0] if rest else ""
    if resource not in RESOURCES or RESOURCES[resource].prefix != prefix or len(rest) > 3:
        raise ApiProblemError(404, "NotFound", "the server could not find the requested resource")
    name = rest[1] if len(rest) > 1 else ""
    query = dict(request.query)
    return RequestRecord(
        verb=_verb(request.method, name, rest[2] if len(rest) > 2 else "", query),
        resource=resource,
        namespace=namespace,
        name=name,
        query=query,
        body=msgspec.json.decode(raw_body) if raw_body else None,
        content_type=request.headers.get("Content-Type", ""),
    )


def _verb(method: str, name: str, subresource: str, query: Mapping[str, str]) -> str:
    if method == "GET" and not name:
        if query.get("watch") in ("true", "1"):
            return "watchlist" if query.get("sendInitialEvents") == "true" else "watch"
        return "continue" if "continue" in query else "list"
    if subresource:
        return {"binding": "bind", "status": "status"}.get(subresource, subresource)
    verbs = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
    return verbs.get(method, method.lower())


def line_for(record: RequestRecord, change: Change) -> bytes | None:
    """Return the event as this watch sees it: crossing its selector is coming or going."""
    was = change.old is not None and selects(record, change.old)
    if change.type == "DELETED":
        return change.line() if was else None
    if selects(record, change.obj):
        if was == (change.type == "MODIFIED"):
            return change.line()
        return watch_line("ADDED", change.obj)
    if not was or change.old is None:
        return None
    gone = copy.deepcopy(change.old)
    gone["metadata"]["resourceVersion"] = str(change.version)
    return watch_line("DELETED", gone)


def selects(record: RequestRecord, obj: JsonObject) -> bool:
    """Say whether the namespace and the selectors of a list or watch take `obj` in."""
    if record.namespace and obj["metadata"].get("namespace", "") != record.namespace:
        return False
    query = record.query
    return _matches(query.get("fieldSelector", ""), lambda path: _field(obj, path)) and _matches(
        query.get("labelSelector", ""), lambda label: obj["metadata"].get("labels", {}).get(label)
    )


def _matches(selector: str, value_of: Callable[[str], str | None]) -> bool:
    """Evaluate ``a=x,b!=y,c,!d``."""
    for term in filter(None, selector.split(",")):
        if "!=" in term:
            name, _, value = term.partition("!=")
            ok = (value_of(name) or "") != value
        elif "=" in term:
            name, _, value = term.replace("==", "=").partition("=")
            ok = (value_of(name) or "") == value
        elif term.startswith("!"):
            ok = value_of(term[1:]) is None
        else:
            ok = value_of(term) is not None
        if not ok:
            return False
    return True


def _field(obj: JsonObject, path: str) -> str | None:
    value: Any = obj
    for part in path.split("."):
        if not isinstance(value, dict) or part not in value:
            return None
        value = value[part]
    return str(value)
