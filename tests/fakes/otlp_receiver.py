"""A receiver of OTLP over HTTP: decodes what is posted, and answers as told."""

from __future__ import annotations

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

if TYPE_CHECKING:
    from typing import Self


class ReceivedSpan(NamedTuple):
    """A span as it came over the wire; ids in hex."""

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    began_ns: int
    ended_ns: int
    kind: int
    attributes: dict[str, Any]
    error: str | None
    """None if the span does not say that it failed."""


class OtlpReceiver:
    """Serves on loopback while it is entered.

    Attributes
    ----------
    spans
        All spans, in the order in which they arrived.
    resources
        The attributes of the resource of each request.
    status
        How requests are answered.
    """

    def __init__(self) -> None:
        self.spans: list[ReceivedSpan] = []
        self.resources: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.status = 200
        receiver = self

        class Answering(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                assert self.headers["Content-Type"] == "application/x-protobuf"
                receiver.paths.append(self.path)
                if receiver.status == 200:
                    receiver._take(ExportTraceServiceRequest.FromString(body))
                self.send_response(receiver.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        """The endpoint, without a path."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def named(self, name: str) -> list[ReceivedSpan]:
        """Return the spans of a name."""
        return [span for span in self.spans if span.name == name]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _take(self, request: Any) -> None:
        for group in request.resource_spans:
            self.resources.append(_attributes(group.resource.attributes))
            for scope in group.scope_spans:
                self.spans += [_received(span) for span in scope.spans]


def _received(span: Any) -> ReceivedSpan:
    return ReceivedSpan(
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        span.name,
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        span.kind,
        _attributes(span.attributes),
        span.status.message if span.status.code == span.status.STATUS_CODE_ERROR else None,
    )


def _attributes(found: Any) -> dict[str, Any]:
    values = {}
    for each in found:
        field = each.value.WhichOneof("value")
        value = getattr(each.value, field)
        values[each.key] = (
            [v.string_value for v in value.values] if field == "array_value" else value
        )
    return values
