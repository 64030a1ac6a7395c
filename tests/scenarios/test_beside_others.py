"""Other schedulers bind pods to the node of a pod that is being bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scheduler.client.errors import ApiError
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.objects import make_node, make_pod
from tests.scenarios.running_berth import BindFailure, RunningBerth, overcommitted

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.controlplane

LOST = BindFailure(ApiError(None, "Disconnected", "the response was lost"))


@pytest.fixture(scope="module")
def plane(controlplane_binaries: None) -> Iterator[ControlPlane]:
    with ControlPlane() as plane, BlockingApi(plane.admin_kubeconfig) as api:
        api.create_many([make_node(name, cpu="4", memory="16Gi") for name in ("one", "two")])
        yield plane


@pytest.fixture
def api(plane: ControlPlane) -> Iterator[BlockingApi]:
    """The API, without pods after the test."""
    with BlockingApi(plane.admin_kubeconfig) as api:
        yield api
        api.delete("/api/v1/namespaces/default/pods")


def take_its_node(api: BlockingApi, berth: RunningBerth) -> tuple[str, str]:
    """Fill a pod's node while its first binding is under way; return that node, and the one it got.

    The response of that binding, which was not sent, is lost.
    """
    api.wait_until(lambda: berth.is_ready, "the first lists")
    transport, cache = berth.app.transport, berth.app.known.pods.cache
    berth.on_loop(transport.binding.clear)
    transport.bind_failures["ours"] = [LOST]
    api.create_many([make_pod("ours", cpu="3")])
    api.wait_until(lambda: bool(cache.assumed_nodes()), "the decision")
    (first,) = cache.assumed_nodes().values()
    theirs = make_pod("theirs", scheduler_name="other", cpu="3", nodeName=first)
    api.create_many([theirs])
    api.wait_until(
        lambda: cache.node_info(first).requested["cpu"] == 6_000, "berth knows of the other pod"
    )
    berth.on_loop(transport.binding.set)
    api.wait_until(lambda: not transport.bind_failures["ours"], "the response is lost")
    api.wait_until(lambda: berth.is_at_rest, "the pod is bound")
    (ours,) = (each for each in api.pods() if each["metadata"]["name"] == "ours")
    return first, ours["spec"]["nodeName"]


def test_a_pod_whose_node_was_taken_while_its_binding_was_lost_goes_elsewhere(plane, api):
    with RunningBerth(plane.berth_kubeconfig()) as berth:
        first, second = take_its_node(api, berth)
    assert first != second
    assert overcommitted(api) == []


def test_without_the_guard_it_overcommits_its_node(plane, api):
    with RunningBerth(plane.berth_kubeconfig(), bind_guard=False) as berth:
        first, second = take_its_node(api, berth)
    assert first == second
    assert overcommitted(api) == [f"{first}: cpu 6000 of 4000"]
