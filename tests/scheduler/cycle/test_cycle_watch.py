from __future__ import annotations

import pytest
import structlog

from plugins.framework.status import Code
from scheduler.cycle import cycle_watch
from scheduler.cycle.cycle_watch import CycleWatch
from scheduler.decision.decision import Decision
from scheduler.metrics import Metrics
from scheduler.queueing import QueuedPod
from tests.builders import pod

PLACED = Decision(cycle=3, profile="berth", info=pod("a").info(), node_name="n1")
QUEUED = QueuedPod(PLACED.info, 0.0, 1, ())


def watched(monkeypatch, slow_s: float, cycles: int = 1) -> tuple[Metrics, list[dict]]:
    """Return metrics and log of cycles of 0.75 s: a snapshot of 0.25 s, a decision of 0.5 s."""
    monkeypatch.setattr(cycle_watch, "perf_counter", lambda: 1.75)
    metrics = Metrics()
    watch = CycleWatch(metrics.cycles, slow_s)
    marks = [("Filter", "Fit", Code.SUCCESS, 1.5), ("Filter", "", Code.SUCCESS, 1.625)]
    with structlog.testing.capture_logs() as lines:
        for _ in range(cycles):
            watch.end(QUEUED, PLACED, marks, (1.0, 1.25, 1.75), is_last=True)
    return metrics, lines


def test_a_slow_cycle_is_told_with_all_that_was_measured(monkeypatch):
    metrics, lines = watched(monkeypatch, 0.5)
    assert lines == [
        {
            "event": "slow scheduling cycle",
            "log_level": "warning",
            "pod": "default/a",
            "cycle": 3,
            "profile": "berth",
            "policy": "default@1",
            "node": "n1",
            "evaluated": 0,
            "duration_ms": 750.0,
            "stages_ms": {"snapshot": 250.0, "decide": 500.0, "commit": 0.0},
            "points_ms": {"Filter": 375.0},
            "reuse_ms": {},
            "plugins_ms": {"Fit/Filter": 250.0},
        }
    ]
    assert b"berth_slow_cycles_total 1\n" in metrics.render()[0]


@pytest.mark.parametrize("slow_s", [1.0, 0.0], ids=["fast enough", "switched off"])
def test_other_cycles_are_only_counted(monkeypatch, slow_s):
    metrics, lines = watched(monkeypatch, slow_s)
    assert lines == []
    assert b'berth_cycle_stage_duration_seconds_count{stage="decide"} 1\n' in metrics.render()[0]


def test_of_many_slow_cycles_one_a_second_is_told(monkeypatch):
    metrics, lines = watched(monkeypatch, 0.5, cycles=5)
    assert len(lines) == 1
    assert b"berth_slow_cycles_total 5\n" in metrics.render()[0]
