"""A round on a real control plane, with the contender that does nothing but bind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.bench.contenders import contender
from tests.bench.pod_templates import SCHEDULER_NAME
from tests.bench.saved_control_plane import SavedControlPlane
from tests.bench.stage import Limits, Stage
from tests.bench.workloads import BY_NAME
from tests.controlplane.api import ApiError
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.objects import make_node

if TYPE_CHECKING:
    from collections.abc import Iterator

NODES, PODS = 5, 20


@pytest.fixture(scope="module")
def plane(controlplane_binaries: None) -> Iterator[SavedControlPlane]:
    with SavedControlPlane() as started:
        yield started


@pytest.mark.controlplane
class TestOnARealControlPlane:
    def test_a_saved_state_comes_back(self, plane: SavedControlPlane) -> None:
        with BlockingApi(plane.admin_kubeconfig) as api:
            api.create_many([make_node("kept")])
        plane.save("one node")
        plane.restore("one node")
        with BlockingApi(plane.admin_kubeconfig) as api:
            api.delete("/api/v1/nodes/kept")
        plane.restore("one node")
        with BlockingApi(plane.admin_kubeconfig) as api:
            assert api.get("/api/v1/nodes/kept")["metadata"]["name"] == "kept"
            api.delete("/api/v1/nodes/kept")
            with pytest.raises(ApiError):
                api.get("/api/v1/nodes/kept")

    @pytest.mark.parametrize("name", ["bind-only", "bind-and-events"])
    def test_a_round_binds_all_pods_and_the_next_finds_them_waiting(
        self, plane: SavedControlPlane, name: str
    ) -> None:
        stage, workload = Stage(plane), BY_NAME["MixedChurn"]
        stage.arrange(workload, NODES, PODS)
        rounds = [
            stage.play(
                workload,
                contender(name, SCHEDULER_NAME),
                nodes=NODES,
                pods=PODS,
                number=number,
                session=0,
                limits=Limits(),
            )
            for number in (1, 2)
        ]
        assert [each.bound for each in rounds] == [PODS, PODS]
        assert all(each.start_to_first_bind_s > 0 for each in rounds)
        assert all(each.peak_rss_mib > 0 for each in rounds)

    def test_pods_that_come_in_turn_give_their_devices_back(self, plane: SavedControlPlane) -> None:
        stage, workload = Stage(plane), BY_NAME["SteadyStateFull"]
        stage.arrange(workload, NODES, PODS)
        played = stage.play(
            workload,
            contender("berth", SCHEDULER_NAME),
            nodes=NODES,
            pods=PODS,
            number=1,
            session=0,
            limits=Limits(),
        )
        assert played.bound == PODS
