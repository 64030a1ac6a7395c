"""Berth and kube-scheduler's own plugins say the same of fresh random clusters."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from tests.controlplane.binaries import find_or_build
from tests.parity.comparing import CASES, compare
from tests.parity.processes import Pair

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """Oracle and berth; the first build of the oracle is shown as it goes."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    assert capture is not None
    with capture.global_and_fixture_disabled():
        find_or_build(["oracle"])
    with Pair() as asked:
        yield asked


@pytest.mark.controlplane
@pytest.mark.parametrize(
    ("kind", "count"),
    [
        pytest.param("verdicts", 600, id="verdicts"),
        pytest.param("volumes", 300, id="volumes"),
        pytest.param("preemption", 300, id="preemption"),
        pytest.param("devices", 500, id="devices"),
    ],
)
def test_random_cases_are_answered_as_by_kube_scheduler(pair: Pair, kind: str, count: int) -> None:
    seed = random.randrange(10**9)
    print(f"seed {seed}")
    assert compare(pair, count, seed, kind=kind)[CASES] >= count
