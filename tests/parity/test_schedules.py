"""Berth and kube-scheduler itself choose, pod after pod, what the other would have chosen."""

from __future__ import annotations

import random

import pytest

from tests.controlplane.binaries import find_or_build
from tests.parity.schedules import best_nodes, play_schedules

FEW = 2


@pytest.fixture(scope="module")
def built(request: pytest.FixtureRequest) -> None:
    """Build what is missing, and let the user see it happen."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    assert capture is not None
    with capture.global_and_fixture_disabled():
        find_or_build(["etcd", "kube-apiserver", "kube-scheduler", "oracle"])


@pytest.mark.controlplane
@pytest.mark.usefixtures("built")
def test_every_choice_is_one_of_the_others_best() -> None:
    seed = random.randrange(10**9)
    print(f"seed {seed}")
    placed, _ = play_schedules(FEW, seed)
    assert placed > 0


@pytest.mark.parametrize(
    ("nodes", "best"),
    [
        pytest.param({}, set(), id="no nodes"),
        pytest.param({"a": {"rejected": "P"}}, set(), id="all rejected"),
        pytest.param(
            {"a": {"total": 5}, "b": {"total": 7}, "c": {"total": 7}, "d": {"rejected": "P"}},
            {"b", "c"},
            id="two share the highest total",
        ),
    ],
)
def test_the_best_nodes_have_the_highest_total(
    nodes: dict[str, dict[str, object]], best: set[str]
) -> None:
    assert best_nodes({"nodes": nodes}) == best
