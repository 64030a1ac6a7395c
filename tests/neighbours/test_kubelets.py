"""The kubelets and the controller on a real API server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.bench.load_client import LoadClient
from tests.controlplane.objects import make_node, make_pod
from tests.neighbours.cluster import PARTY, SECOND
from tests.neighbours.kubelets import PODS_PATH, Kubelets

pytestmark = pytest.mark.controlplane

NODE = "neighbours-1"


def pod(name: str, milli: int) -> dict[str, Any]:
    return make_pod(
        name, cpu=f"{milli}m", scheduler_name=SECOND, nodeName=NODE, labels={PARTY: SECOND}
    )


def test_rejected_pod_fails_and_is_replaced_until_it_is_given_up(fresh_control_plane):
    async def play() -> tuple[Kubelets, list[dict[str, Any]]]:
        nodes = {NODE: make_node(NODE, cpu="1")}
        fits, too_much = pod("fits-0", 700), pod("too-much-0", 400)
        async with LoadClient(fresh_control_plane.admin_kubeconfig) as client:
            kubelets = Kubelets(client, nodes, [fits, too_much], max_successors=1)
            async with kubelets.running():
                await client.create_many(nodes.values())
                for each in (fits, too_much):
                    await client.create(each)
                    await kubelets.until(lambda: bool(kubelets.arrivals), quiet_s=60, deadline_s=60)
                await kubelets.until(lambda: kubelets.settled == 2, quiet_s=60, deadline_s=60)
                page = await client.get(PODS_PATH)
        return kubelets, page["items"]

    kubelets, pods = asyncio.run(play())

    statuses = {each["metadata"]["name"]: each["status"] for each in pods}
    assert kubelets.given_up == [SECOND]
    assert set(statuses) == {"fits-0", "too-much-0", "too-much-1"}
    assert [each.name for each in kubelets.arrivals if each.rejection is None] == ["fits-0"]
    for name in ("too-much-0", "too-much-1"):
        assert statuses[name]["phase"] == "Failed"
        assert statuses[name]["reason"] == "OutOfcpu"
        assert statuses[name]["message"].endswith("requested: 400, used: 700, capacity: 1000")
