"""Requests as they arrive at a simulated API server, and its answers as bytes."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, unquote

import msgspec

from tests.fakes.api_objects import ApiProblemError
from tests.storm.etcd import ALL

if TYPE_CHECKING:
    from collections.abc import Mapping

READS: Final = frozenset({"get", "list", "watch"})


@dataclass(slots=True)
class Request:
    """A request.

    Attributes
    ----------
    verb
        ``get``, ``list``, ``watch``, ``create``, ``update``, ``patch``, ``status``, ``bind``,
        ``evict`` or ``delete``.
    """

    verb: str
    resource: str
    namespace: str
    name: str
    query: Mapping[str, str]
    body: Any = None
    content_type: str = ""
    wants_metadata: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name of the object."""
        return (self.namespace if ALL[self.resource].namespaced else "", self.name)

    @property
    def is_write(self) -> bool:
        """Whether it changes something."""
        return self.verb not in READS

    def __str__(self) -> str:
        return f"{self.verb} {self.resource} {self.namespace}/{self.name}"


def read_request(data: bytes) -> Request:
    """Parse a request that came in one piece; raises ApiProblemError 404."""
    head, _, body = data.partition(b"\r\n\r\n")
    line, *fields = head.decode("latin-1").split("\r\n")
    request = read_line(line)
    headers = dict(field.split(": ", 1) for field in fields)
    request.body = msgspec.json.decode(body) if body else None
    request.content_type = headers.get("Content-Type", "")
    request.wants_metadata = "PartialObjectMetadataList" in headers.get("Accept", "")
    return request


def read_line(line: str) -> Request:
    """Parse the first line of a request; raises ApiProblemError 404."""
    method, target, _ = line.split(" ", 2)
    path, _, query_text = target.partition("?")
    query = dict(parse_qsl(query_text)) if query_text else {}
    parts = path.strip("/").split("/")
    rest = parts[2 if parts[0] == "api" else 3 :]
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    resource = rest[0] if rest else ""
    if resource not in ALL:
        raise ApiProblemError(404, "NotFound", "the server could not find the requested resource")
    name = unquote(rest[1]) if len(rest) > 1 else ""
    return Request(
        _verb(method, name, rest[2] if len(rest) > 2 else "", query),
        resource,
        namespace,
        name,
        query,
    )


def _verb(method: str, name: str, subresource: str, query: Mapping[str, str]) -> str:
    if method == "GET":
        return "get" if name else "watch" if query.get("watch") == "true" else "list"
    if subresource:
        return {"binding": "bind", "eviction": "evict"}.get(subresource, subresource)
    return {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}[method]


def answer(status: int, body: bytes, retry_after_s: int | None = None) -> bytes:
    """Return a whole answer."""
    retry = b"" if retry_after_s is None else b"Retry-After: %d\r\n" % retry_after_s
    return b"HTTP/1.1 %d %b\r\nContent-Type: application/json\r\n%bContent-Length: %d\r\n\r\n%b" % (
        status,
        HTTPStatus(status).phrase.encode(),
        retry,
        len(body),
        body,
    )


def refusal(problem: ApiProblemError) -> bytes:
    """Return the answer to a request that is refused."""
    return answer(problem.status, msgspec.json.encode(problem.body()), problem.retry_after_s)


STREAM_HEAD: Final = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
)
STREAM_END: Final = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """Return a part of a streamed answer."""
    return b"%x\r\n%b\r\n" % (len(data), data)
