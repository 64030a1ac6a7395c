"""Record the measurements of scheduling cycles, and log slow cycles.

    began              deciding              committing                ended
      | update the       | choose a node, or   | assume, reserve, permit;  |
      | snapshot         | collect the reasons | or report the reasons     |

*Source*: pkg/scheduler/schedule_one.go (1.36), which traces schedulePod beyond 100 ms.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Final

import structlog

from scheduler.metrics.cycle_metrics import REUSE, MeasuredCycle, durations_of

if TYPE_CHECKING:
    from plugins.framework.cycle_state import Mark
    from scheduler.decision.decision import Decision
    from scheduler.metrics.cycle_metrics import CycleMetrics
    from scheduler.queueing import QueuedPod
    from scheduler.tracing.traces import Traces

DEFAULT_SLOW_CYCLE_S: Final = 0.1
"""*Source*: schedulePod, in the file above."""

_QUIET_S: Final = 1.0

_TOLD_PLUGINS: Final = 12
"""The slowest; the others are in the metrics."""

log = structlog.get_logger(__name__)


class CycleWatch:
    """Record the measurements of scheduling cycles.

    Parameters
    ----------
    slow_s
        A longer cycle is slow; 0 disables this. Every slow cycle is counted, one a second is
        logged.
    traces
        Takes in the cycles of traced pods; None if none is traced.

    Notes
    -----
    *Concurrency*: confined to the scheduling thread.
    """

    def __init__(self, metrics: CycleMetrics, slow_s: float, traces: Traces | None = None) -> None:
        self._metrics = metrics
        self._hand_over = metrics.cycle
        self._slow_s = slow_s or float("inf")
        self._traces = traces
        self._quiet_until = 0.0

    def end(
        self,
        queued: QueuedPod,
        decision: Decision,
        marks: list[Mark],
        times: tuple[float, float, float],
        *,
        is_last: bool,
    ) -> None:
        """End a cycle: count it, and tell of it if it was slow.

        Parameters
        ----------
        marks
            What ended when while it decided and committed; handed over, and not changed any more.
        times
            When its three stages began, as ``time.perf_counter`` tells.
        is_last
            Whether the attempt is over: no binding follows.
        """
        ended = perf_counter()
        began, deciding, committing = times
        cycle = (decision.profile, marks, began, deciding, committing, ended)
        self._hand_over(cycle)
        if self._traces is not None:
            measured = (began, deciding, ended)
            self._traces.cycle(queued, decision, marks, measured, is_last=is_last)
        if ended - began > self._slow_s:
            self._metrics.slow()
            if ended >= self._quiet_until:
                # On a machine without time for us most cycles are slow: the log is not for that.
                self._quiet_until = ended + _QUIET_S
                _tell(decision, MeasuredCycle(*cycle))


def _tell(decision: Decision, cycle: MeasuredCycle) -> None:
    durations = durations_of(cycle.marks, cycle.deciding)
    laps = [
        (seconds, f"{plugin}/{point}")
        for point, plugin, _, seconds in durations
        if plugin and point != REUSE
    ]
    reuse = {plugin: _ms(seconds) for point, plugin, _, seconds in durations if point == REUSE}
    log.warning(
        "slow scheduling cycle",
        pod=decision.info.key,
        cycle=decision.cycle,
        profile=decision.profile,
        policy=decision.policy.text,
        node=decision.node_name,
        evaluated=decision.evaluated_nodes,
        duration_ms=_ms(cycle.ended - cycle.began),
        stages_ms={
            "snapshot": _ms(cycle.deciding - cycle.began),
            "decide": _ms(cycle.committing - cycle.deciding),
            "commit": _ms(cycle.ended - cycle.committing),
        },
        points_ms={point: _ms(seconds) for point, plugin, _, seconds in durations if not plugin},
        reuse_ms=reuse,
        plugins_ms={
            name: _ms(seconds) for seconds, name in sorted(laps, reverse=True)[:_TOLD_PLUGINS]
        },
    )


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
