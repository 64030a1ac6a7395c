"""Put the parts of tracing together, start and stop them."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

import structlog

from scheduler.process.log_setup import more_fields
from scheduler.tracing.log_trace_ids import trace_id_field
from scheduler.tracing.otlp_exporter import OtlpExporter, is_installed
from scheduler.tracing.traced_api import TracedApi
from scheduler.tracing.traces import Traces

if TYPE_CHECKING:
    from collections.abc import Callable

    from cache.objects import Pod
    from scheduler.client.transport import Transport
    from scheduler.metrics import Metrics
    from scheduler.process.ports import Executor
    from scheduler.tracing.options import TracingOptions

STOP_S: Final = 2.0
"""How long the last spans may take; what is left then is lost."""

log = structlog.get_logger(__name__)


class TracingError(Exception):
    """Pods cannot be traced; the message is one sentence for a person."""


class Tracing:
    """All parts of tracing; exists only if pods are traced.

    Raises
    ------
    TracingError
        OpenTelemetry is not installed.
    """

    def __init__(
        self, options: TracingOptions, identity: str, executor: Executor, metrics: Metrics
    ) -> None:
        if not is_installed():
            raise TracingError("--trace-sampling-ratio: needs the extra berth[otel]")
        self._options = options
        exporter = OtlpExporter(options.endpoint, identity)
        self.traces = Traces(options.ratio, exporter.export, executor)
        self.traces.add_metrics(metrics)
        self._fields = ExitStack()

    def api(self, transport: Transport) -> TracedApi:
        """Return the API that traces its writes."""
        return TracedApi(transport, self.traces)

    def start(self, live_pod: Callable[[str, str], Pod | None]) -> None:
        """Start the thread; from now on log lines about traced pods have their trace id."""
        self._fields.enter_context(more_fields(trace_id_field(self.traces.sampled, live_pod)))
        self.traces.start()
        log.info("tracing", ratio=self._options.ratio, endpoint=self._options.endpoint)

    def stop(self) -> None:
        """Export what is left. Blocks for :data:`STOP_S` at most."""
        self.traces.stop(STOP_S)
        self._fields.close()
