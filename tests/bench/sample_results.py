"""Figures in which all is well, for tests that change one of them, and cells of a table."""

from __future__ import annotations

from typing import Any

from tests.bench.records import LargeRun, LatencyRound, Round, Start, TailPart, Variety
from tests.bench.results import Session


def a_round(**fields: Any) -> Round:
    """Return a round in which all is well."""
    usual: dict[str, Any] = {
        "workload": "Basic",
        "nodes": 5000,
        "before": 1000,
        "pods": 10_000,
        "contender": "berth",
        "number": 1,
        "session": 0,
        "bound": 10_000,
        "seconds": 10.0,
        "pods_per_s": 1000.0,
        "start_to_first_bind_s": 1.0,
        "cpu_s_per_1000_pods": 0.5,
        "server_cpu_s_per_1000_pods": 1.0,
        "load_cpu_s_per_1000_pods": 0.1,
        "peak_rss_mib": 200.0,
        "rss_mib": 190.0,
        "curve_s": [0.0, 5.0, 10.0],
    }
    return Round(**{**usual, **fields})


def a_latency(**fields: Any) -> LatencyRound:
    """Return a round in which all pods are bound soon."""
    usual: dict[str, Any] = {
        "nodes": 5000,
        "before": 1000,
        "rate": 200,
        "contender": "berth",
        "number": 1,
        "session": 0,
        "pods": 6000,
        "bound": 6000,
        "created_p50_ms": 2.0,
        "p50_ms": 5.0,
        "p90_ms": 7.0,
        "p99_ms": 10.0,
        "max_ms": 50.0,
        "cpu_share": 0.2,
        "quantiles_ms": [1.0 + percent / 10 for percent in range(101)],
    }
    return LatencyRound(**{**usual, **fields})


def a_start(**fields: Any) -> Start:
    """Return a start whose first binding comes after ``first_s``, 1 s unless it is given."""
    first_s = fields.pop("first_s", 1.0)
    usual: dict[str, Any] = {
        "nodes": 5000,
        "running": 1000,
        "pods": 4000,
        "bound": 4000,
        "contender": "berth",
        "number": 1,
        "session": 0,
        "wall_s": {"first bind": first_s, "200 bound": first_s + 0.5},
        "cpu_s": {"first bind": first_s / 2, "200 bound": first_s},
        "server_cpu_s": 2.0,
        "rss_mib": 100.0,
    }
    return Start(**{**usual, **fields})


def a_large_run(**fields: Any) -> LargeRun:
    """Return a run with one leader and without a problem."""
    usual: dict[str, Any] = {
        "nodes": 5000,
        "pods": 50_000,
        "pools": 1,
        "waiting": 5000,
        "session": 0,
        "start_s": [3.0],
        "start_cpu_s": [2.0],
        "rss_mib": [150],
        "pods_per_s": 4000.0,
        "cpu_s_per_1000": 0.25,
        "stand_in_cpu_s_per_1000": 0.1,
        "cycle_mean_ms": [0.07],
        "cycle_p50_ms": [0.5],
        "cycle_p99_ms": [1.0],
        "problems": 0,
        "refused_bindings": 0,
    }
    return LargeRun(**{**usual, **fields})


def a_tail_part(**fields: Any) -> TailPart:
    """Return a part without stalls."""
    usual: dict[str, Any] = {
        "part": "alone",
        "nodes": 5000,
        "before": 20_000,
        "rate": 300,
        "contender": "berth",
        "number": 1,
        "session": 0,
        "pods": 9000,
        "bound": 9000,
        "p50_ms": 5.0,
        "p99_ms": 20.0,
        "max_ms": 50.0,
        "longest_stall_ms": 0.0,
        "longest_own_stall_ms": 0.0,
        "stalls": {},
        "gc_runs": 100,
        "full_gc_runs": 0,
        "gc_cpu_ms": 90.0,
        "longest_gc_ms": 6.0,
        "garbage": 1000,
        "cpu_share": 0.3,
    }
    return TailPart(**{**usual, **fields})


def a_variety(**fields: Any) -> Variety:
    """Return a point with one kind of pods."""
    usual: dict[str, Any] = {
        "kinds": 1,
        "nodes": 5000,
        "number": 1,
        "session": 0,
        "decisions": 1000,
        "cycle_us": 100.0,
    }
    return Variety(**{**usual, **fields})


def a_session(**fields: Any) -> Session:
    """Return the conditions of some day."""
    usual: dict[str, Any] = {
        "started": "2026-01-01T00:00:00+00:00",
        "cores": 2,
        "processor": "some",
        "memory_gib": 24.0,
        "kernel": "6.1",
        "python": "CPython 3.11",
        "commit": "abc",
        "versions": {"kube-scheduler": "v1"},
    }
    return Session(**{**usual, **fields})


def cells(text: str, first: str) -> list[str]:
    """Return the cells of the row that begins so."""
    row = next(line for line in text.splitlines() if line.startswith(f"| {first} |"))
    return [cell.strip() for cell in row.strip("|").split("|")]
