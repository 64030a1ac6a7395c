"""Figures in which all is well, for tests that change one of them."""

from __future__ import annotations

from typing import Any

from tests.bench.records import Round
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
