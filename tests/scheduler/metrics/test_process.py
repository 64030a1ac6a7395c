"""What is told of the process itself, beside what Prometheus' own client library tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families as parse
from prometheus_client.process_collector import ProcessCollector

from scheduler.metrics.exposition import exposition
from scheduler.metrics.instruments import Registry
from scheduler.metrics.process import add_process_metrics

if TYPE_CHECKING:
    from pathlib import Path


def _exposed() -> dict[str, float]:
    registry = Registry()
    add_process_metrics(registry)
    text = exposition(registry.families())[0].decode()
    return {sample.name: sample.value for family in parse(text) for sample in family.samples}


def test_it_is_what_the_client_library_tells() -> None:
    theirs = {
        sample.name: sample.value
        for family in ProcessCollector(registry=CollectorRegistry()).collect()
        for sample in family.samples
    }
    ours = _exposed()
    # The descriptor by which the folder is read counts with one of the two.
    assert {name: ours[name] for name in theirs} == pytest.approx(theirs, rel=0.3, abs=1.0)
    assert ours["process_start_time_seconds"] == theirs["process_start_time_seconds"]
    assert ours["process_max_fds"] == theirs["process_max_fds"]


def test_a_system_without_proc_has_fewer_metrics(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("scheduler.metrics.process._PROC", tmp_path)
    exposed = _exposed()
    assert "process_resident_memory_bytes" not in exposed
    assert "process_start_time_seconds" not in exposed
    assert exposed["process_cpu_seconds_total"] > 0
