"""Measures one scheduling cycle, and tells of it when it was slow.

    begin            begin_deciding       begin_committing               end
      | the snapshot is  | where the pod       | assume, reserve, permit,  |
      | brought up to    | goes, or why        | hand over; or report why  |
      | date             | nowhere             | not                       |

Source: pkg/scheduler/schedule_one.go (1.36), which traces schedulePod beyond 100 ms.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Final

import structlog

from scheduler.metrics.cycle_metrics import MeasuredCycle, durations_of

if TYPE_CHECKING:
    from plugins.framework.cycle_state import Mark
    from scheduler.decision import Decision
    from scheduler.metrics.cycle_metrics import CycleMetrics

DEFAULT_SLOW_CYCLE_S: Final = 0.1
"""Source: schedulePod, in the file above."""

_TOLD_PLUGINS: Final = 12
"""The slowest; the others are in the metrics."""

log = structlog.get_logger(__name__)


class CycleWatch:
    """A stop watch for one cycle; it starts when it is made.

    Parameters
    ----------
    slow_s
        Beyond this a cycle is slow; 0 for never.

    Notes
    -----
    *Concurrency*: confined to the scheduling thread.
    """

    __slots__ = ("_began", "_committing", "_deciding", "_marks", "_metrics", "_slow_s")

    def __init__(self, metrics: CycleMetrics, slow_s: float) -> None:
        self._metrics = metrics
        self._slow_s = slow_s
        self._marks: list[Mark] = []
        self._began = self._deciding = self._committing = perf_counter()

    def begin_deciding(self) -> list[Mark]:
        """End the first stage; return where the next ones note what has ended."""
        self._deciding = perf_counter()
        return self._marks

    def begin_committing(self) -> None:
        """End the second stage."""
        self._committing = perf_counter()

    def end(self, decision: Decision) -> None:
        """End the cycle: count it, and tell of it if it was slow."""
        ended = perf_counter()
        began = self._began
        cycle = (decision.profile, self._marks, began, self._deciding, self._committing, ended)
        self._metrics.cycle(cycle)
        if self._slow_s and ended - began > self._slow_s:
            self._metrics.slow()
            _tell(decision, MeasuredCycle(*cycle))


def _tell(decision: Decision, cycle: MeasuredCycle) -> None:
    durations = durations_of(cycle.marks, cycle.deciding)
    laps = [(seconds, f"{plugin}/{point}") for point, plugin, _, seconds in durations if plugin]
    log.warning(
        "slow scheduling cycle",
        pod=decision.info.key,
        cycle=decision.cycle,
        profile=decision.profile,
        node=decision.node_name,
        evaluated=decision.evaluated_nodes,
        duration_ms=_ms(cycle.ended - cycle.began),
        stages_ms={
            "snapshot": _ms(cycle.deciding - cycle.began),
            "decide": _ms(cycle.committing - cycle.deciding),
            "commit": _ms(cycle.ended - cycle.committing),
        },
        points_ms={point: _ms(seconds) for point, plugin, _, seconds in durations if not plugin},
        plugins_ms={
            name: _ms(seconds) for seconds, name in sorted(laps, reverse=True)[:_TOLD_PLUGINS]
        },
    )


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
