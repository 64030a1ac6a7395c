"""Metrics of users' plugins, computed at each scrape."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, TypeAlias

from scheduler.metrics.instruments import Pulled
from scheduler.user_plugins.containment.circuit_breaker import State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from scheduler.metrics import Metrics
    from scheduler.metrics.instruments import Kind
    from scheduler.user_plugins.containment.containment import Containment
    from scheduler.user_plugins.containment.guard import BreakerReport

Values: TypeAlias = "Mapping[tuple[str, ...], float]"
"""The values of one metric at a scrape, by labels."""

Read: TypeAlias = "Callable[[Iterable[BreakerReport]], Values]"


def _failures(reports: Iterable[BreakerReport]) -> Values:
    found: Counter[tuple[str, ...]] = Counter()
    for report in reports:
        for kind, count in report.failures.items():
            found[report.code.name, kind] += count
    return found


def _passed_over(reports: Iterable[BreakerReport]) -> Values:
    found: Counter[tuple[str, ...]] = Counter()
    for report in reports:
        found[(report.code.name,)] += report.passed_over
    return found


def _open(reports: Iterable[BreakerReport]) -> Values:
    found: dict[tuple[str, ...], float] = {}
    for report in reports:
        is_open = report.left_out or report.state is State.OPEN
        found[(report.code.name,)] = max(found.get((report.code.name,), 0.0), float(is_open))
    return found


def _averages(reports: Iterable[BreakerReport]) -> Values:
    return {
        (report.code.name, method): seconds
        for report in reports
        for method, seconds in report.average_s.items()
    }


_METRICS: Final[tuple[tuple[Kind, str, str, tuple[str, ...], Read], ...]] = (
    (
        "counter",
        "berth_plugin_failures_total",
        "Calls into users' plugins that failed, by what was wrong: raised, memory, slow, "
        "shape, dtype, nan or range.",
        ("plugin", "kind"),
        _failures,
    ),
    (
        "counter",
        "berth_plugin_passed_over_total",
        "Calls into users' plugins that were not made, because too many had failed.",
        ("plugin",),
        _passed_over,
    ),
    (
        "gauge",
        "berth_plugin_breaker_open",
        "Whether a user's plugin is skipped (1) or called (0).",
        ("plugin",),
        _open,
    ),
    (
        "gauge",
        "berth_plugin_call_average_seconds",
        "Moving average of the duration of calls into users' plugins.",
        ("plugin", "method"),
        _averages,
    ),
)


def add_containment_metrics(containment: Containment, metrics: Metrics) -> None:
    """Register the metrics of users' plugins. Versions of one plugin are counted together."""

    def values(read: Read) -> Callable[[], Values]:
        return lambda: read(containment.breaker_states())

    for kind, name, text, labels, read in _METRICS:
        metrics.pull(Pulled(kind, name, text, labels, values(read)))
