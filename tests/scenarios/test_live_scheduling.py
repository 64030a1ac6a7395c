"""berth on a real API server, under its own service account, judged by the audit log."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tests.controlplane.access import USER
from tests.controlplane.audit import accepted_binds, check_binds, forbidden_requests
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.objects import make_node, make_pod
from tests.scenarios.running_berth import RunningBerth, overcommitted

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.controlplane

ZONES = ("east", "north", "west")


@pytest.fixture(scope="module")
def own_plane(controlplane_binaries) -> Iterator[ControlPlane]:
    """A control plane that only this module uses: it may count on an empty cluster."""
    with ControlPlane() as plane:
        yield plane


@pytest.fixture
def empty_plane(own_plane) -> Iterator[ControlPlane]:
    """The module's control plane, swept after the test whatever became of it."""
    yield own_plane
    with BlockingApi(own_plane.admin_kubeconfig) as api:
        for pod in api.pods():
            api.delete(f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}")
        for node in api.list_all("/api/v1/nodes"):
            api.delete(f"/api/v1/nodes/{node['metadata']['name']}")


def nodes(count: int) -> list[dict[str, Any]]:
    return [
        make_node(f"node-{i:03}", cpu="4", memory="16Gi", zone=ZONES[i % 3]) for i in range(count)
    ]


def pods(count: int, prefix: str = "pod", **changes: Any) -> list[dict[str, Any]]:
    return [
        make_pod(
            f"{prefix}-{i:04}",
            cpu=f"{100 + 50 * (i % 5)}m",
            memory=f"{64 * (1 + i % 4)}Mi",
            **changes,
        )
        for i in range(count)
    ]


def bound(api: BlockingApi, prefix: str = "pod-") -> dict[str, str]:
    return {
        pod["metadata"]["name"]: pod["spec"]["nodeName"]
        for pod in api.pods()
        if pod["metadata"]["name"].startswith(prefix) and pod["spec"].get("nodeName")
    }


def check_the_books(plane: ControlPlane, api: BlockingApi, berth: RunningBerth) -> None:
    """I1, I2, I4, I5: what must hold whenever a scenario has come to rest."""
    api.wait_until(lambda: berth.is_at_rest, "berth comes to rest")
    assert check_binds(plane.audit_events(), user=USER, pods=api.pods()) == []
    assert overcommitted(api) == []
    api.wait_until(lambda: not berth.mismatches(api), "the cache equals the API's truth")


def test_a_thousand_pods_are_bound_once_each(fresh_control_plane):
    plane = fresh_control_plane
    with BlockingApi(plane.admin_kubeconfig) as api:
        api.create_many(nodes(100))
        foreign = pods(20, "foreign", scheduler_name="default-scheduler")
        api.create_many([*pods(1000), *foreign])
        with RunningBerth(plane.berth_kubeconfig()) as berth:
            api.wait_until(lambda: len(bound(api)) == 1000, "all pods are bound")
            check_the_books(plane, api, berth)
            assert bound(api, "foreign-") == {}
            accepted = accepted_binds(plane.audit_events())
            assert Counter(len(binds) for binds in accepted.values()) == {1: 1000}
            assert forbidden_requests(plane.audit_events(), user=USER) == []
            assert berth.stop() == 0


DEVICE_CLASS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "gpus"},
    "spec": {"extendedResourceName": "example.com/gpu"},
}


def device_pod(name: str) -> dict[str, Any]:
    pod = make_pod(name)
    amounts = {"example.com/gpu": "1"}
    pod["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    return pod


def class_of(berth: RunningBerth, resource: str) -> str | None:
    plugin = next(iter(berth.app.deciding.profiles)).plugins[0]
    return plugin.handle.devices.classes.class_of(resource)


def test_pods_that_cannot_be_placed_say_why(empty_plane):
    plane = empty_plane
    with BlockingApi(plane.admin_kubeconfig) as api:
        api.create_many(
            [
                make_node("why-small", cpu="1", memory="1Gi"),
                make_node("why-tainted", taints=[{"key": "gpu", "effect": "NoSchedule"}]),
            ]
        )
        api.create_many(
            [
                make_pod("why-large", cpu="3"),
                make_pod("why-gated", schedulingGates=[{"name": "example.com/hold"}]),
            ]
        )

        def condition(name: str) -> dict[str, Any]:
            status = api.get(f"/api/v1/namespaces/default/pods/{name}")["status"]
            found = [c for c in status.get("conditions", []) if c["type"] == "PodScheduled"]
            return found[0] if found else {"message": ""}

        with RunningBerth(plane.berth_kubeconfig()) as berth:
            api.wait_until(
                lambda: condition("why-large").get("reason") == "Unschedulable", "it says why"
            )
            told = condition("why-large")
            assert told["message"] == (
                "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s). "
                "no new claims to deallocate, preemption: 0/2 nodes are available: "
                "2 Preemption is not helpful for scheduling."
            )
            assert told["status"] == "False"
            # Nobody stands for the resource; then a class does, and whoever comes is told.
            api.create_many([device_pod("why-resource")])
            api.wait_until(
                lambda: "Insufficient example.com/gpu" in condition("why-resource")["message"],
                "an extended resource is lacking",
            )
            api.create_many([DEVICE_CLASS])
            api.wait_until(lambda: class_of(berth, "example.com/gpu") == "gpus", "it is known")
            api.create_many([device_pod("why-device")])
            for name in ("why-resource", "why-device"):
                api.wait_until(
                    lambda name=name: "cannot allocate all claims" in condition(name)["message"],
                    "a class stands for it, and there are no devices",
                )
                assert condition(name)["reason"] == "Unschedulable"
            assert condition("why-gated")["reason"] == "SchedulingGated"
            api.wait_until(
                lambda: any(
                    event["reason"] == "FailedScheduling"
                    and event["regarding"]["name"] == "why-large"
                    for event in api.list_all("/apis/events.k8s.io/v1/events")
                ),
                "an Event says why",
            )
            # Room appears, and the gate goes: both are bound without anybody asking again.
            api.create_many([make_node("why-roomy", cpu="8")])
            api.patch(
                "/api/v1/namespaces/default/pods/why-gated",
                {"spec": {"schedulingGates": None}},
            )
            api.wait_until(
                lambda: set(bound(api, "why-")) == {"why-large", "why-gated"}, "both are bound"
            )
            api.wait_until(lambda: berth.is_at_rest, "berth comes to rest")
            assert berth.stop() == 0


class TestFaults:
    def test_the_api_server_killed_in_the_middle(self, fresh_control_plane):
        plane = fresh_control_plane
        with BlockingApi(plane.admin_kubeconfig) as api:
            api.create_many(nodes(50))
            api.create_many(pods(600))
            with RunningBerth(plane.berth_kubeconfig()) as berth:
                api.wait_until(lambda: len(bound(api)) > 100, "work has begun")
                plane.kill_apiserver()
                plane.start_apiserver()
                api.create_many(pods(100, "pod-later"))
                api.wait_until(lambda: len(bound(api)) == 700, "everything is bound")
                check_the_books(plane, api, berth)

    def test_a_forced_relist(self, fresh_control_plane):
        plane = fresh_control_plane
        with BlockingApi(plane.admin_kubeconfig) as api:
            api.create_many(nodes(20))
            api.create_many(pods(50))
            with RunningBerth(plane.berth_kubeconfig()) as berth:
                api.wait_until(lambda: len(bound(api)) == 50, "the first are bound")
                plane.kill_apiserver()
                plane.start_apiserver()
                api.delete("/api/v1/namespaces/default/pods/pod-0000")
                plane.force_gone()
                api.create_many(pods(50, "pod-later"))
                api.wait_until(lambda: len(bound(api)) == 99, "everything is bound")
                check_the_books(plane, api, berth)

    def test_a_watch_cut_again_and_again(self, fresh_control_plane):
        plane = fresh_control_plane
        with BlockingApi(plane.admin_kubeconfig) as api:
            api.create_many(nodes(20))
            with RunningBerth(plane.berth_kubeconfig()) as berth:
                api.wait_until(lambda: berth.is_ready, "berth is ready")
                berth.app.transport.cuts = 10
                api.create_many(pods(200))
                api.wait_until(lambda: len(bound(api)) == 200, "everything is bound")
                check_the_books(plane, api, berth)
                assert berth.app.watches.pods.statistics().reconnects >= 5
                assert berth.app.watches.pods.statistics().lists == 1

    @pytest.mark.parametrize(
        ("genuine", "forged"),
        [
            pytest.param(b'"cpu":"666m"', b'"cpu":"lots"', id="a bad quantity"),
            pytest.param(b'"cpu":"666m"', b'"cpu":{"odd":1}', id="a map where a text belongs"),
            pytest.param(b'"cpu":"666m"', b'"cpu":"666m', id="broken JSON"),
            pytest.param(
                b'"victim":"yes"', b'"victim":"' + b"x" * 2**20 + b'"', id="a label of 1 MiB"
            ),
            pytest.param(
                b'"spec":{', b'"spec":{"tolerations":null,"from2031":[{}],', id="null and unknown"
            ),
        ],
    )
    def test_a_malformed_pod_costs_only_itself(self, empty_plane, genuine, forged):
        plane = empty_plane
        with BlockingApi(plane.admin_kubeconfig) as api:
            api.create_many([make_node("sound", cpu="64")])
            with RunningBerth(plane.berth_kubeconfig()) as berth:
                api.wait_until(lambda: berth.is_ready, "berth is ready")
                berth.on_loop(lambda: berth.app.transport.forgeries.update({genuine: forged}))
                api.create_many([make_pod("victim", cpu="666m", labels={"victim": "yes"})])
                api.create_many(pods(20))
                api.wait_until(lambda: len(bound(api)) == 20, "the others are bound")
                assert berth.app.transport.forged > 0
                assert berth.stop() == 0

    @pytest.mark.parametrize(
        ("genuine", "forged"),
        [
            pytest.param(b'"cpu":"666"', b'"cpu":"many"', id="a bad quantity"),
            pytest.param(b'"cpu":"666"', b'"cpu":[', id="broken JSON"),
        ],
    )
    def test_a_malformed_node_costs_only_itself(self, empty_plane, genuine, forged):
        plane = empty_plane
        with BlockingApi(plane.admin_kubeconfig) as api:
            api.create_many([make_node("sound", cpu="64")])
            with RunningBerth(plane.berth_kubeconfig()) as berth:
                api.wait_until(lambda: berth.is_ready, "berth is ready")
                berth.on_loop(lambda: berth.app.transport.forgeries.update({genuine: forged}))
                api.create_many([make_node("victim", cpu="666")])
                api.create_many(pods(20))
                api.wait_until(lambda: len(bound(api)) == 20, "the pods are bound")
                assert berth.app.transport.forged > 0
                assert set(bound(api).values()) == {"sound"}

    def test_deleted_while_being_bound(self, fresh_control_plane):
        plane = fresh_control_plane
        with BlockingApi(plane.admin_kubeconfig) as api:
            api.create_many(nodes(10))
            with RunningBerth(plane.berth_kubeconfig()) as berth:
                api.wait_until(lambda: berth.is_ready, "berth is ready")
                for number in range(5):
                    api.create_many(pods(30))
                    for i in range(0, 30, 2):
                        api.delete(f"/api/v1/namespaces/default/pods/pod-{i:04}")
                    api.create_many(pods(1, f"pod-round{number}"))
                    wanted = {f"pod-{i:04}" for i in range(1, 30, 2)}
                    api.wait_until(lambda w=wanted: w <= set(bound(api)), "the rest is bound")
                    for i in range(1, 30, 2):
                        api.delete(f"/api/v1/namespaces/default/pods/pod-{i:04}")
                api.wait_until(lambda: len(bound(api)) == 5, "only the markers are left")
                check_the_books(plane, api, berth)


class TestExpiry:
    """A bind that the watch never confirms is settled after its time limit."""

    def test_an_unbound_pod_frees_its_node_and_is_bound_after_all(self, fresh_control_plane):
        plane = fresh_control_plane
        with (
            BlockingApi(plane.admin_kubeconfig) as api,
            RunningBerth(plane.berth_kubeconfig(), ttl_s=1.0) as berth,
        ):
            api.create_many(nodes(3))
            api.wait_until(lambda: berth.is_ready, "berth is ready")
            berth.app.transport.swallowed.add("pod-0000")
            api.create_many(pods(1))
            api.wait_until(lambda: len(bound(api)) == 1, "the pod is bound after all")
            assert berth.expired("requeued") == 1
            check_the_books(plane, api, berth)

    def test_a_bound_pod_is_kept(self, fresh_control_plane):
        plane = fresh_control_plane
        with (
            BlockingApi(plane.admin_kubeconfig) as api,
            RunningBerth(plane.berth_kubeconfig(), ttl_s=1.0) as berth,
        ):
            api.create_many(nodes(3))
            api.wait_until(lambda: berth.is_ready, "berth is ready")
            berth.app.transport.holds_after_bind = True
            api.create_many(pods(1))
            api.wait_until(lambda: berth.expired("bound") == 1, "the API was asked")
            assert len(bound(api)) == 1
            assert berth.app.known.pods.cache.counts().assumed_pods == 0
            berth.on_loop(berth.app.transport.flowing.set)
            check_the_books(plane, api, berth)
