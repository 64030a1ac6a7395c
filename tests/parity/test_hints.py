"""Berth wakes whom kube-scheduler's own queueing hints wake, for fresh random changes."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from plugins.framework.cluster_events import EventRegistration
from tests.controlplane.binaries import find_or_build
from tests.parity.campaign import DifferenceError
from tests.parity.hints import ROWS, Hints, compare

if TYPE_CHECKING:
    from collections.abc import Iterator

ENOUGH_FOR_EVERY_DAY = 300


@pytest.fixture(scope="module")
def hints(request: pytest.FixtureRequest) -> Iterator[Hints]:
    """Both sides; the first build of the program is shown as it goes."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    assert capture is not None
    with capture.global_and_fixture_disabled():
        find_or_build(["hints"])
    with Hints() as asked:
        yield asked


@pytest.mark.controlplane
def test_random_changes_wake_whom_they_wake_in_kube_scheduler(hints: Hints) -> None:
    seed = random.randrange(10**9)
    print(f"seed {seed}")
    assert compare(hints, ENOUGH_FOR_EVERY_DAY, seed)[ROWS] >= ENOUGH_FOR_EVERY_DAY


@pytest.mark.controlplane
def test_a_hint_that_wakes_too_many_is_found(hints: Hints, monkeypatch: pytest.MonkeyPatch) -> None:
    registrations = hints.berth.registrations
    awake = {
        name: [EventRegistration(each.event) for each in wanted]
        for name, wanted in registrations.items()
    }
    monkeypatch.setattr(hints.berth, "registrations", awake)
    with pytest.raises(DifferenceError, match="kube-scheduler False, berth True"):
        compare(hints, ENOUGH_FOR_EVERY_DAY, 1)
