"""A watch of a real API server loses lines: what was in them is found, or does no harm."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.lossy_proxy import LossyProxy
from tests.controlplane.objects import make_node, make_pod
from tests.scenarios.running_berth import RunningBerth

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.controlplane.control_plane import ControlPlane

pytestmark = pytest.mark.controlplane

POD = "/api/v1/namespaces/default/pods/"
NODE = "/api/v1/nodes/"


@pytest.fixture
def proxy(fresh_control_plane: ControlPlane) -> Iterator[LossyProxy]:
    with LossyProxy(fresh_control_plane) as started:
        yield started


def repaired(berth: RunningBerth) -> dict[tuple[str, str], float]:
    """What has been made up for, by resource and kind."""
    name = "berth_lost_events_repaired_total"
    found = {}
    for line in berth.app.metrics.render()[0].decode().splitlines():
        if line.startswith(name + "{"):
            labels, value = line.removeprefix(name + "{").split("} ")
            parts = dict(each.split("=") for each in labels.replace('"', "").split(","))
            found[parts["resource"], parts["kind"]] = float(value)
    return {key: value for key, value in found.items() if value}


def test_lines_that_a_watch_lost_are_made_up_for(fresh_control_plane, proxy):
    plane = fresh_control_plane
    kubeconfig = proxy.kubeconfig(plane.berth_kubeconfig())
    with (
        BlockingApi(plane.admin_kubeconfig) as api,
        RunningBerth(kubeconfig, api_comparison_period_s=0.0) as berth,
    ):
        api.create_many([make_node("stays", cpu="4"), make_node("goes"), make_node("grows")])
        api.create_many(
            [make_pod("web", cpu="1", nodeSelector={"kubernetes.io/hostname": "stays"})]
        )
        api.wait_bound(1)
        api.wait_until(lambda: berth.is_at_rest, "the pod is confirmed")
        proxy.take("ADDED", "unseen")
        proxy.take("DELETED", "web")
        proxy.take("DELETED", "goes")
        proxy.take("MODIFIED", "grows")
        api.create_many([make_pod("unseen", cpu="1")])
        api.delete(POD + "web")
        api.delete(NODE + "goes")
        api.patch(NODE + "grows", {"metadata": {"labels": {"disk": "ssd"}}})
        api.wait_until(lambda: len(proxy.taken) == 4, "four lines are lost")

        def touch() -> None:
            # What comes later takes the watches past the list: a quiet one waits for its bookmark.
            api.patch(NODE + "stays", {"metadata": {"annotations": {"touched": str(touches)}}})
            api.patch(POD + "other", {"metadata": {"annotations": {"touched": str(touches)}}})

        api.create_many([make_pod("other", cpu="1")])
        api.wait_until(lambda: berth.is_at_rest, "the watches go on")
        looking = asyncio.run_coroutine_threadsafe(
            berth.app.checks.lost_events.round(), berth.app.loop
        )
        touches = 0
        while not looking.done():
            touches += 1
            touch()
        assert looking.result()
        api.wait_until(lambda: not berth.mismatches(api), "the cache equals the API's truth")
        api.wait_until(
            lambda: api.get(POD + "unseen")["spec"].get("nodeName"), "the pod nobody saw is bound"
        )
        assert repaired(berth) == {
            ("pods", "add"): 1,
            ("pods", "delete"): 1,
            ("nodes", "delete"): 1,
            ("nodes", "update"): 1,
        }
        assert berth.stop() == 0


def test_a_pod_that_the_reaper_confirmed_leaves_although_its_binding_was_never_shown(
    fresh_control_plane, proxy
):
    plane = fresh_control_plane
    kubeconfig = proxy.kubeconfig(plane.berth_kubeconfig())
    with (
        BlockingApi(plane.admin_kubeconfig) as api,
        RunningBerth(kubeconfig, ttl_s=0.5) as berth,
    ):
        api.create_many([make_node("only", cpu="2")])
        proxy.take("MODIFIED", "web")
        api.create_many([make_pod("web", cpu="2")])
        api.wait_until(lambda: berth.expired("bound") == 1, "the API was asked")
        assert proxy.taken == [("MODIFIED", "web")]
        api.delete(POD + "web")
        api.create_many([make_pod("next", cpu="2")])
        api.wait_until(
            lambda: api.get(POD + "next")["spec"].get("nodeName"), "its room is free again"
        )
        api.wait_until(lambda: not berth.mismatches(api), "the cache equals the API's truth")
        assert berth.stop() == 0
