"""What is told of users' plugins when somebody scrapes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from scheduler.metrics.instruments import Pulled
from scheduler.user_plugins.containment.circuit_breaker import State

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scheduler.metrics import Metrics
    from scheduler.user_plugins.containment.containment import Containment


class ContainmentMetrics:
    """Reads the guards. Versions of one plugin are counted together."""

    def __init__(self, containment: Containment) -> None:
        self._containment = containment

    def add_to(self, metrics: Metrics) -> None:
        """Have them asked at each scrape."""
        metrics.pull(
            Pulled(
                "counter",
                "berth_plugin_failures_total",
                "Calls into users' plugins that failed, by what was wrong: raised, memory, slow, "
                "shape, dtype, nan or range.",
                ("plugin", "kind"),
                self._failures,
            )
        )
        metrics.pull(
            Pulled(
                "counter",
                "berth_plugin_passed_over_total",
                "Calls into users' plugins that were not made, because too many had failed.",
                ("plugin",),
                self._passed_over,
            )
        )
        metrics.pull(
            Pulled(
                "gauge",
                "berth_plugin_breaker_open",
                "Whether a user's plugin is passed over (1) or asked (0).",
                ("plugin",),
                self._open,
            )
        )
        metrics.pull(
            Pulled(
                "gauge",
                "berth_plugin_call_average_seconds",
                "Moving average of the duration of calls into users' plugins.",
                ("plugin", "method"),
                self._averages,
            )
        )

    def _failures(self) -> Mapping[tuple[str, ...], float]:
        found: Counter[tuple[str, ...]] = Counter()
        for report in self._containment.breaker_states():
            for kind, count in report.failures.items():
                found[report.code.name, kind] += count
        return dict(found)

    def _passed_over(self) -> Mapping[tuple[str, ...], float]:
        found: Counter[tuple[str, ...]] = Counter()
        for report in self._containment.breaker_states():
            found[(report.code.name,)] += report.passed_over
        return dict(found)

    def _open(self) -> Mapping[tuple[str, ...], float]:
        found: dict[tuple[str, ...], float] = {}
        for report in self._containment.breaker_states():
            is_open = report.left_out or report.state is State.OPEN
            found[(report.code.name,)] = max(found.get((report.code.name,), 0.0), float(is_open))
        return found

    def _averages(self) -> Mapping[tuple[str, ...], float]:
        return {
            (report.code.name, method): seconds
            for report in self._containment.breaker_states()
            for method, seconds in report.average_s.items()
        }
