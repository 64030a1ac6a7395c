"""Define the options and flags of traces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from cache.value import Value
from scheduler.config import ConfigError

if TYPE_CHECKING:
    import argparse

_RATIO: Final = "--trace-sampling-ratio"
_ENDPOINT: Final = "--trace-endpoint"
_PATH: Final = "/v1/traces"
"""*Source*: OpenTelemetry protocol specification, OTLP/HTTP request (1.9)."""


class TracingOptions(Value, frozen=True):
    """Which pods are traced, and where their spans are sent.

    Parameters
    ----------
    ratio
        The share of pods, within 0 to 1; 0 for none.
    endpoint
        The URL of a receiver of OTLP over HTTP; empty for the one in OpenTelemetry's environment
        variables, or its default.
    """

    ratio: float = 0.0
    endpoint: str = ""


def add_tracing_flags(run: argparse.ArgumentParser) -> None:
    """Add the flags of ``berth run``."""
    group = run.add_argument_group("traces, with the extra berth[otel]")
    group.add_argument(
        _RATIO,
        metavar="R",
        type=float,
        default=0.0,
        help="the share of pods whose way from first seen to bound is sent as a trace, within 0 "
        "to 1 (%(default)s)",
    )
    group.add_argument(
        _ENDPOINT,
        metavar="URL",
        default="",
        help="the receiver of OTLP over HTTP; by default that of OTEL_EXPORTER_OTLP_ENDPOINT, or "
        "http://localhost:4318",
    )


def tracing_options(flags: argparse.Namespace) -> TracingOptions:
    """Return the options of the flags.

    Raises
    ------
    ConfigError
        When a flag has an impossible value.
    """
    ratio, endpoint = flags.trace_sampling_ratio, flags.trace_endpoint
    if not 0.0 <= ratio <= 1.0:
        raise ConfigError(_RATIO, f"must be within 0 to 1, not {ratio:g}")
    if not endpoint:
        return TracingOptions(ratio)
    try:
        url = urlsplit(endpoint)
        is_url = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        is_url = False
    if not is_url:
        raise ConfigError(_ENDPOINT, f"must be a URL of http or https, not {endpoint!r}")
    return TracingOptions(ratio, endpoint if url.path not in ("", "/") else _with_path(endpoint))


def _with_path(endpoint: str) -> str:
    return endpoint.rstrip("/") + _PATH
