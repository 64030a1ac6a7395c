"""Count requests to the API server in client-go's metrics.

*Source*: k8s.io/component-base/metrics/prometheus/restclient/metrics.go (0.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from scheduler.metrics.instruments import Count, Registry

_SECONDS: Final = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0]
_BYTES: Final = [64.0, 256.0, 512.0, 1024.0, *(4096.0 * 4**n for n in range(7))]


class _Of(NamedTuple):
    duration: Callable[[float], None]
    waited: Callable[[float], None]
    sent: Callable[[float], None]
    received: Callable[[float], None]


class ClientMetrics:
    """Requests by method, host and status.

    Notes
    -----
    *Concurrency*: thread-safe.
    """

    def __init__(self, registry: Registry) -> None:
        self._requests = registry.counter(
            "rest_client_requests_total",
            "Requests, by status, method and host.",
            "code",
            "host",
            "method",
        )
        self._durations = registry.histogram(
            "rest_client_request_duration_seconds",
            "Duration of a request, or of opening a watch.",
            _SECONDS,
            "host",
            "verb",
        )
        self._waits = registry.histogram(
            "rest_client_rate_limiter_duration_seconds",
            "Time that a request waited for its turn.",
            _SECONDS,
            "host",
            "verb",
        )
        self._sent = registry.histogram(
            "rest_client_request_size_bytes", "Size of a request's body.", _BYTES, "host", "verb"
        )
        self._received = registry.histogram(
            "rest_client_response_size_bytes", "Size of an answer's body.", _BYTES, "host", "verb"
        )
        self._of: dict[tuple[str, str], _Of] = {}
        self._counts: dict[tuple[int | None, str, str], Count] = {}

    def requested(
        self,
        host: str,
        method: str,
        status: int | None,
        duration_s: float,
        sent: int,
        received: int | None,
    ) -> None:
        """Count a request.

        Parameters
        ----------
        host
            ``host:port``.
        status
            None when there was no answer.
        duration_s
            Without the time spent waiting for a turn.
        sent, received
            Bytes of the bodies; None for an answer that is not read, as a watch's.
        """
        count = self._counts.get((status, host, method))
        if count is None:
            code = "<error>" if status is None else str(status)
            count = self._counts[status, host, method] = self._requests.of(code, host, method)
        count.inc()
        of = self._of.get((host, method)) or self._make(host, method)
        of.duration(duration_s)
        of.sent(sent)
        if received is not None:
            of.received(received)

    def waited(self, host: str, method: str, duration_s: float) -> None:
        """Count a request's wait for its turn."""
        (self._of.get((host, method)) or self._make(host, method)).waited(duration_s)

    def _make(self, host: str, method: str) -> _Of:
        made = self._of[host, method] = _Of(
            self._durations.of(host, method).observe,
            self._waits.of(host, method).observe,
            self._sent.of(host, method).observe,
            self._received.of(host, method).observe,
        )
        return made
