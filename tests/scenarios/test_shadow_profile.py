"""A SchedulingProfile of mode Shadow, from its creation to the day that it decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from scheduler.cli import main
from scheduler.profiles.operator import OperatorOptions
from scheduler.shadow import ShadowReport
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.objects import make_node, make_pod
from tests.controlplane.scheduling_profiles import SchedulingProfiles
from tests.scenarios.running_berth import RunningBerth

if TYPE_CHECKING:
    from tests.controlplane.control_plane import ControlPlane

pytestmark = pytest.mark.controlplane

COMPARED = 20
PACKING = {
    "schedulerName": "berth",
    "mode": "Shadow",
    "shadow": {"decisions": COMPARED, "budget": 1.0},
    "pluginConfig": [
        {
            "name": "NodeResourcesFit",
            "args": {
                "scoringStrategy": {
                    "type": "MostAllocated",
                    "resources": [{"name": "cpu", "weight": 1}],
                }
            },
        }
    ],
}


def test_it_looks_on_reports_and_then_decides(
    fresh_control_plane: ControlPlane,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plane = fresh_control_plane
    kubeconfig = plane.berth_kubeconfig()
    profiles = SchedulingProfiles(plane)
    profiles.install()
    with BlockingApi(plane.admin_kubeconfig) as api:
        api.create_many(make_node(f"n{i}", cpu="8") for i in range(6))
        with RunningBerth(kubeconfig, operator=OperatorOptions(enabled=True)) as berth:
            api.wait_until(lambda: berth.is_ready, "berth stands by")
            profiles.create("packing", PACKING)
            profiles.wait_settled("packing")
            assert profiles.condition("packing", "Active")["reason"] == "Shadowing"

            api.create_many(make_pod(f"pod-{i}", cpu="100m") for i in range(COMPARED + 5))
            api.wait_bound(COMPARED + 5)

            def compared() -> int:
                shadow = profiles.get("packing")["status"].get("shadow", {})
                found: int = shadow.get("compared", 0)
                return found

            api.wait_until(lambda: compared() == COMPARED, "the status has the whole report")
            assert main(["shadow", "report", "-o", "json", "--kubeconfig", str(kubeconfig)]) == 0
            line = capsys.readouterr().out.splitlines()[-1]
            report = msgspec.json.decode(line, type=ShadowReport)
            assert (report.live, report.shadow) == ("default@1", "schedulingprofile/packing@1")
            assert report.changed_winners > 0

            profiles.patch("packing", {"mode": "Active"})
            status = profiles.wait_settled("packing")
            assert status["activeGeneration"] == 2
            api.create_many(make_pod(f"then-{i}", cpu="100m") for i in range(10))
            api.wait_bound(COMPARED + 15)
            nodes = {
                pod["spec"]["nodeName"]
                for pod in api.pods()
                if pod["metadata"]["name"].startswith("then")
            }
            assert len(nodes) == 1
