"""What autoscalers do about pods that Berth has not placed: see docs/autoscalers.md."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.regressions import steps
from tests.regressions.world import World

if TYPE_CHECKING:
    from tests.fakes.api_objects import JsonObject


def cluster_autoscaler_acts(pod: JsonObject, nodes: set[str]) -> bool:
    """Source: utils/kubernetes/listers.go and core/utils/expendable.go (1.34)."""
    condition = condition_of(pod)
    if pod["spec"].get("nodeName") or "deletionTimestamp" in pod["metadata"]:
        return False
    if (condition.get("status"), condition.get("reason")) != ("False", "Unschedulable"):
        return False
    if pod["spec"].get("priority", 0) < -10:
        return False
    return pod["status"].get("nominatedNodeName") not in nodes


def processes_unseen_pods(pod: JsonObject) -> bool:
    """With ``--bypassed-scheduler-names=berth`` pods count of which no scheduler has spoken yet."""
    condition = condition_of(pod)
    return not condition or (condition["status"], condition.get("reason")) == ("False", "")


def karpenter_acts(pod: JsonObject) -> bool:
    """Source: pkg/utils/pod/scheduling.go (1.8)."""
    is_free = not pod["spec"].get("nodeName") and not pod["status"].get("nominatedNodeName")
    return is_free and condition_of(pod).get("reason") == "Unschedulable"


def condition_of(pod: JsonObject) -> dict[str, Any]:
    conditions = pod["status"].get("conditions") or []
    return next((each for each in conditions if each["type"] == "PodScheduled"), {})


def asks_for(spec: JsonObject) -> JsonObject:
    container = {"name": "main", "image": "pause"}
    whole = {"schedulerName": "berth", "containers": [container], **spec}
    return {"spec": whole, "status": {"phase": "Pending"}}


CLAIM = asks_for({"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]})
GROUP = asks_for({"schedulingGroup": {"podGroupName": "gang"}})
DEVICE = asks_for(
    {
        "containers": [
            {
                "name": "main",
                "image": "pause",
                "resources": {"requests": {"deviceclass.resource.kubernetes.io/gpu": "1"}},
            }
        ]
    }
)


@pytest.mark.parametrize(
    ("story", "acts"),
    [
        pytest.param(["node a cpu=1", "pod web cpu=3", "cycle"], True, id="fits nowhere"),
        pytest.param(["pod web cpu=3", "cycle"], True, id="there are no nodes"),
        pytest.param(
            ["node a cpu=4", "pod low cpu=4 on=a", "pod web cpu=4 priority=9", "cycle"],
            False,
            id="others make room",
        ),
        pytest.param(
            [
                "node a cpu=4",
                "pod low cpu=4 on=a",
                "pod web cpu=4 priority=9",
                "cycle",
                "delete node a",
                "advance 301s",
                "cycle",
            ],
            True,
            id="the node where they made room is gone",
        ),
        pytest.param(
            ["node a cpu=4", "plugin needs 900ms for web", "pod web cpu=1", "cycle"],
            False,
            id="over budget",
        ),
        pytest.param(["node a cpu=4", CLAIM, "cycle"], False, id="a claim that does not exist"),
        pytest.param(["node a cpu=4", GROUP, "cycle"], False, id="a group without an object"),
        pytest.param(
            ["node a cpu=4", "group x min=2", "pod web cpu=3 group=x", "cycle"],
            False,
            id="a group that waits for members",
        ),
        pytest.param(
            [
                "node a cpu=4",
                "group x min=2",
                "pod web cpu=3 group=x",
                "pod other cpu=3 group=x",
                "cycle",
            ],
            True,
            id="a group that does not fit",
        ),
        pytest.param(["node a cpu=4", DEVICE, "cycle"], True, id="devices"),
        pytest.param(
            ["node a cpu=4", "plugin fails next reserve", "pod web cpu=1", "cycle"],
            False,
            id="a plugin fails",
        ),
        pytest.param(
            ["node a cpu=4", "pod web cpu=1", "refuse next of binds with 403", "cycle"],
            False,
            id="the binding is refused",
        ),
        pytest.param(["node a cpu=4", "pod web cpu=9 gate=g"], False, id="gated"),
        pytest.param(
            ["node a cpu=4", "plugin holds web", "pod web cpu=1", "cycle"], False, id="held"
        ),
        pytest.param(["node a cpu=4", "pod web cpu=1", "cycle"], False, id="placed"),
    ],
)
def test_autoscalers_buy_nodes_for_pods_that_nodes_may_help(
    story: list[str | JsonObject], acts: bool
) -> None:
    async def scene() -> tuple[JsonObject, set[str]]:
        async with World() as world:
            for step in story:
                if isinstance(step, str):
                    steps.of(step)(world)
                else:
                    world.cluster.create("pods", "web", step)
                await world.settle()
            nodes = {node["metadata"]["name"] for node in world.cluster._log.objects("nodes")}
            return world.cluster.raw("pods", "web"), nodes

    pod, nodes = asyncio.run(scene())
    assert cluster_autoscaler_acts(pod, nodes) is acts
    assert karpenter_acts(pod) is acts
    assert not condition_of(pod) or not processes_unseen_pods(pod)
