"""Export spans by OTLP over HTTP, with OpenTelemetry's own exporter.

It obeys OpenTelemetry's environment variables: for headers, certificates, compression, timeouts and
the attributes of the resource.

OpenTelemetry is imported when the first spans are exported, on the thread of traces.
"""

from __future__ import annotations

import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from scheduler.process.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scheduler.tracing.spans import Span

_NEEDED = "opentelemetry.exporter.otlp.proto.http"
_SERVICE = "berth"


def is_installed() -> bool:
    """Return whether the extra ``berth[otel]`` is installed."""
    try:
        return find_spec(_NEEDED) is not None
    except ModuleNotFoundError:
        return False


class OtlpExporter:
    """Exports spans; the connection is kept between batches.

    Parameters
    ----------
    endpoint
        The URL; empty for OpenTelemetry's own choice.
    identity
        The name of this replica.

    Notes
    -----
    *Concurrency*: confined to one thread.
    """

    def __init__(
        self, endpoint: str, identity: str, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._endpoint = endpoint
        self._identity = identity
        self._clock = clock
        self._sdk: Any = None

    def export(self, spans: Sequence[Span]) -> bool:
        """Send spans; return whether they were accepted. Waits, with OpenTelemetry's retries."""
        if self._sdk is None:
            # The import takes a third of a second.
            from scheduler.tracing.sdk_spans import SdkSpans  # noqa: PLC0415 - see above

            self._sdk = SdkSpans(self._endpoint, _SERVICE, VERSION, self._identity)
        # Asked each time: the wall clock may have been set meanwhile.
        epoch_ns = time.time_ns() - round(self._clock() * 1e9)
        accepted: bool = self._sdk.export(spans, epoch_ns)
        return accepted
