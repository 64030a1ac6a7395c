"""berth with an extender that filters, scores and binds, on a real API server."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from scheduler.config import Extender
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.objects import make_node, make_pod
from tests.scenarios.running_berth import RunningBerth
from tests.scheduler.extenders.scripted_extender import says

pytestmark = pytest.mark.controlplane


def named(asked, *names):
    """Give back those of the nodes sent."""
    kept = [each for each in asked["Nodes"]["items"] if each["metadata"]["name"] in names]
    return says({"Nodes": {"items": kept}, "FailedNodes": {"ext-a": "not licensed"}})(asked)


def test_an_extender_filters_scores_and_binds(fresh_control_plane, stage):
    plane = fresh_control_plane
    with BlockingApi(plane.admin_kubeconfig) as api:

        def bind(asked):
            pod, namespace = asked["PodName"], asked["PodNamespace"]
            body = {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": pod, "namespace": namespace, "uid": asked["PodUID"]},
                "target": {"apiVersion": "v1", "kind": "Node", "name": asked["Node"]},
            }
            path = f"/api/v1/namespaces/{namespace}/pods/{pod}/binding"
            api.post(path, body)
            return says({})(asked)

        server = stage.serve(
            filter=lambda asked: named(asked, "ext-b", "ext-c"),
            prioritize=says([{"Host": "ext-c", "Score": 10}]),
            bind=bind,
        )
        extender = Extender(
            server.url,
            filter_verb="filter",
            prioritize_verb="prioritize",
            bind_verb="bind",
            weight=100,
        )
        api.create_many([make_node(f"ext-{letter}") for letter in "abc"])
        api.create_many([make_pod(f"ext-{index}", cpu="100m") for index in range(10)])
        berth = RunningBerth(plane.berth_kubeconfig())
        berth.app.config = replace(berth.app.config, extenders=(extender,))
        with berth:
            api.wait_until(
                lambda: all(pod["spec"].get("nodeName") for pod in api.pods()), "all are bound"
            )
            assert {pod["spec"]["nodeName"] for pod in api.pods()} == {"ext-c"}
            api.wait_until(lambda: berth.is_at_rest, "berth comes to rest")
        assert server.verbs().count("bind") == 10
        asked = next(asked for verb, asked in server.asked if verb == "filter")
        sent = asked["Nodes"]["items"][0]
        stored = api.get(f"/api/v1/nodes/{sent['metadata']['name']}")
        assert sent["status"]["nodeInfo"] == stored["status"]["nodeInfo"]
        assert asked["Pod"]["spec"]["dnsPolicy"] == "ClusterFirst"
        assert "managedFields" not in asked["Pod"]["metadata"]
