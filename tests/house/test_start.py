"""What ``berth run`` imports before it schedules: pods wait for each module."""

from __future__ import annotations

import subprocess
import sys
from functools import cache

import pytest

_LISTED = """
import sys
from scheduler import cli
assert cli.main(["run", "--kubeconfig", "/nonexistent", "--leader-elect", "false"]) == 1
print(*sys.modules)
"""

_AT_MOST = 560
"""Modules of ours. A feature that is used by all pods may need more."""

_NOT_AT_START = {
    "aiohttp": "the HTTP server is made once the first pods are bound",
    "cryptography": "the same",
    "http.server": "comes with Prometheus' client library: 25 ms",
    "prometheus_client": "comes with the first scrape",
    "jinja2": "for berth ui",
    "kopf": "a third of a second, on a thread of its own",
    "kubernetes": "for old auth-providers only",
    "opentelemetry": "for traces only",
    "plugins.cel.program": "for clusters with selectors of devices: with re2 30 ms",
    "re2": "the same",
    "scheduler.explain": "a command of its own",
    "scheduler.other_commands": "commands of their own",
    "scheduler.policy_replay": "a command of its own",
    "scheduler.relaxations": "for those who ask why",
    "scheduler.ui": "a command of its own",
    "scheduler.what_if": "a command of its own",
}


@cache
def _imported() -> frozenset[str]:
    listed = subprocess.run(
        [sys.executable, "-c", _LISTED], capture_output=True, text=True, check=True, timeout=60
    )
    return frozenset(listed.stdout.split())


@pytest.mark.parametrize("module", _NOT_AT_START)
def test_it_is_imported_where_it_is_used(module: str) -> None:
    assert module not in _imported(), _NOT_AT_START[module]


def test_a_start_imports_few_modules() -> None:
    ours = {
        name
        for name in _imported()
        if name.partition(".")[0] in {"berth", "cache", "plugins", "scheduler"}
    }
    assert len(ours) <= _AT_MOST


def test_what_is_listed_there_exists() -> None:
    assert "scheduler.app" in _imported()
