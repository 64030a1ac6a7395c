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

ENOUGH_FOR_EVERY_DAY = 1000


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
def test_random_verdicts_are_kube_schedulers(pair: Pair) -> None:
    seed = random.randrange(10**9)
    print(f"seed {seed}")
    assert compare(pair, ENOUGH_FOR_EVERY_DAY, seed)[CASES] >= ENOUGH_FOR_EVERY_DAY
