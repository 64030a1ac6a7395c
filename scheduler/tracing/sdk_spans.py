"""Convert spans to those of OpenTelemetry's SDK. The only module that imports OpenTelemetry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.status import Status, StatusCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scheduler.tracing.spans import Span

_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_OK = Status(StatusCode.UNSET)
_WRITES = ("POST", "PATCH", "DELETE")


class SdkSpans:
    """Sends spans through OpenTelemetry's exporter for OTLP over HTTP.

    Notes
    -----
    *Concurrency*: confined to one thread.
    """

    def __init__(self, endpoint: str, service: str, version: str, instance: str) -> None:
        self._exporter = OTLPSpanExporter(endpoint=endpoint or None)
        ours = Resource.create(
            {
                "service.name": service,
                "service.version": version,
                "service.instance.id": instance,
            }
        )
        # What the environment says has precedence.
        self._resource = ours.merge(OTELResourceDetector().detect())
        self._scope = InstrumentationScope("berth.scheduler", version)

    def export(self, spans: Sequence[Span], epoch_ns: int) -> bool:
        """Send spans; return whether they were accepted.

        Parameters
        ----------
        epoch_ns
            What the clock of the spans showed as 0, in nanoseconds since the epoch.
        """
        result = self._exporter.export([self._converted(span, epoch_ns) for span in spans])
        return result is SpanExportResult.SUCCESS

    def _converted(self, span: Span, epoch_ns: int) -> ReadableSpan:
        context = SpanContext(span.trace_id, span.span_id, is_remote=False, trace_flags=_SAMPLED)
        parent = None
        if span.parent_id:
            parent = SpanContext(span.trace_id, span.parent_id, False, trace_flags=_SAMPLED)
        is_write = span.name.startswith(_WRITES)
        return ReadableSpan(
            span.name,
            context,
            parent,
            self._resource,
            span.attributes,
            kind=SpanKind.CLIENT if is_write else SpanKind.INTERNAL,
            status=Status(StatusCode.ERROR, span.error) if span.error else _OK,
            start_time=epoch_ns + round(span.began * 1e9),
            end_time=epoch_ns + round(span.ended * 1e9),
            instrumentation_scope=self._scope,
        )
