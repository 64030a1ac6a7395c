"""The cache is compared again and again while a real API server's cluster changes."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.objects import make_node, make_pod
from tests.scenarios.running_berth import RunningBerth

pytestmark = pytest.mark.controlplane

NODES = 20
WAVES = 5
PODS = 60
DIFFERS = "cache differs from the watches"


def test_under_load_it_finds_nothing_and_then_what_is_wrong(fresh_control_plane):
    plane = fresh_control_plane
    with BlockingApi(plane.admin_kubeconfig) as api, capture_logs() as lines:
        api.create_many([make_node(f"n{i:02}") for i in range(NODES)])
        with RunningBerth(plane.berth_kubeconfig(), comparison_period_s=0.01) as berth:
            for number in range(WAVES):
                api.create_many([make_pod(f"{number}-{i:03}", cpu="50m") for i in range(PODS)])
                api.wait_bound(PODS)
                api.patch(f"/api/v1/nodes/n{number:02}", {"metadata": {"labels": {"a": "b"}}})
                api.delete(f"/api/v1/nodes/n{NODES - 1 - number:02}")
                for pod in api.pods("default"):
                    api.delete(f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}")
            api.wait_until(lambda: berth.app.checks.audit.rounds > WAVES, "it has compared")
            assert DIFFERS not in {line["event"] for line in lines}
            berth.on_loop(lambda: berth.app.known.pods.cache.remove_node("n00"))
            api.wait_until(lambda: berth.app.checks.debugger.mismatches, "the mismatch is found")
            api.wait_until(lambda: DIFFERS in {line["event"] for line in lines}, "and told")
