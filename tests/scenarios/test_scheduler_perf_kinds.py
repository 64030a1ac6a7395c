"""scheduler_perf's kinds of affine and spreading pods: all of them placed, each where it may be.

Fewer pods than scheduler_perf has; ``python -m tests.scenarios.perf_kinds`` plays them all.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from tests.bench.contenders import Berth
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.objects import ZONE_LABEL
from tests.scenarios.perf_kinds import KINDS, Kind, Stage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.scenarios.perf_kinds import Outcome

SCALE = 0.3
"""Of scheduler_perf's number of pods."""

PODS_OF_A_NODE = 40
"""So many of the pods fit on a node, by CPU."""


@pytest.fixture(scope="module")
def stage(controlplane_binaries: None) -> Iterator[Stage]:
    with (
        ControlPlane(audit=False) as plane,
        BlockingApi(plane.admin_kubeconfig) as api,
        Stage(plane, api) as stage,
    ):
        yield stage


@pytest.fixture(scope="module")
def played() -> dict[str, Outcome]:
    """What has been played already, by kind."""
    return {}


@pytest.fixture
def outcome(request: pytest.FixtureRequest, stage: Stage, played: dict[str, Outcome]) -> Outcome:
    kind: Kind = request.param
    if kind.name not in played:
        played[kind.name] = stage.play(kind, Berth(), scale=SCALE)
    return played[kind.name]


def kinds(*names: str) -> pytest.MarkDecorator:
    """Ask for the outcome of the named kinds, or of all."""
    chosen = [kind for kind in KINDS if not names or kind.name in names]
    assert len(chosen) == len(names or KINDS)
    rows = [pytest.param(kind, id=kind.name) for kind in chosen]
    return pytest.mark.parametrize("outcome", rows, indirect=True)


@pytest.mark.controlplane
class TestOnTheApiServer:
    @kinds()
    def test_every_pod_is_placed(self, outcome: Outcome) -> None:
        assert outcome.placed == outcome.expected

    @kinds()
    def test_every_constraint_holds(self, outcome: Outcome) -> None:
        assert outcome.placement.mistakes() == []

    @kinds("SchedulingPreferredPodAffinity")
    def test_pods_that_prefer_each_other_share_as_few_nodes_as_can_be(
        self, outcome: Outcome
    ) -> None:
        nodes = outcome.placement.pods_by_node(color="red")
        assert len(nodes) == math.ceil(outcome.expected / PODS_OF_A_NODE)

    @kinds("SchedulingPreferredPodAntiAffinity")
    def test_pods_that_avoid_each_other_have_a_node_each(self, outcome: Outcome) -> None:
        assert set(outcome.placement.pods_by_node(color="yellow").values()) == {1}

    @kinds("PreferredTopologySpreading", "DefaultTopologySpreading")
    def test_pods_that_would_rather_spread_are_in_all_zones_alike(self, outcome: Outcome) -> None:
        zones = outcome.placement.pods_by_domain(ZONE_LABEL, namespace="sched-1")
        assert len(zones) == 3
        assert max(zones.values()) - min(zones.values()) <= 5
