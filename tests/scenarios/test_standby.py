"""A standby from the inside: what it knows already, and what it does not do yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from scheduler.config import GoDuration, default_config
from scheduler.kinds import WATCHED
from tests.controlplane.access import NAMESPACE, USER
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.objects import make_node, make_pod
from tests.scenarios.replicas import LEASE_PATH
from tests.scenarios.running_berth import RunningBerth

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scheduler.config import SchedulerConfig

pytestmark = pytest.mark.controlplane

READS = ("get", "list", "watch")


@pytest.fixture
def api(fresh_control_plane) -> Iterator[BlockingApi]:
    with BlockingApi(fresh_control_plane.admin_kubeconfig) as api:
        yield api


SHORT = {
    "lease_duration": GoDuration(4_000_000_000),
    "renew_deadline": GoDuration(3_000_000_000),
    "retry_period": GoDuration(500_000_000),
}


def electing(**times: GoDuration) -> SchedulerConfig:
    config = default_config("berth")
    election = msgspec.structs.replace(
        config.leader_election, resource_namespace=NAMESPACE, **times
    )
    given = frozenset({"leaderElection.resourceNamespace"})
    return msgspec.structs.replace(config, leader_election=election, given=given)


def held_lease(api: BlockingApi) -> None:
    """Let somebody hold the lease for an hour."""
    api.post(
        LEASE_PATH.rpartition("/")[0],
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "berth", "namespace": NAMESPACE},
            "spec": {
                "holderIdentity": "somebody-else",
                "leaseDurationSeconds": 3600,
                "leaseTransitions": 4,
            },
        },
    )


def test_a_standby_knows_everything_does_nothing_and_takes_over_from_there(
    fresh_control_plane, api
):
    plane = fresh_control_plane
    kubeconfig = plane.berth_kubeconfig()
    held_lease(api)
    api.create_many([make_node("first", cpu="4"), make_node("second", cpu="4")])
    api.create_many([make_pod("waits", cpu="1"), make_pod("nominated", cpu="3")])
    status = {"status": {"nominatedNodeName": "second"}}
    nominated = api.patch("/api/v1/namespaces/default/pods/nominated/status", status)
    uid = nominated["metadata"]["uid"]
    with RunningBerth(kubeconfig, config=electing(**SHORT)) as berth:
        api.wait_until(lambda: berth.is_ready, "the standby is ready")
        app = berth.app
        api.wait_until(
            lambda: app.known.pods.queue.nominator.node_of(uid) == "second",
            "it knows the nomination",
        )
        # New things arrive as they do at a leader.
        api.create_many([make_node("third", cpu="4"), make_pod("late", cpu="1")])
        api.wait_until(lambda: app.known.pods.cache.counts().nodes == 3, "it knows the new node")
        api.wait_until(lambda: app.known.pods.queue.counts().active == 3, "it knows the new pod")
        told = app.metrics.render()[0].decode()
        for kind in WATCHED:
            if kind.can_appear:
                continue
            assert f'berth_watch_staleness_seconds{{resource="{kind.name}"}}' in told
        assert app.acting.reaper.rounds == 0
        assert app.leadership is not None
        assert not app.leadership.is_leading
        written = [
            event["requestURI"]
            for event in plane.audit_events()
            if event["user"]["username"] == USER
            and event["verb"] not in READS
            and "accessreviews" not in event["requestURI"]
        ]
        assert written == []

        api.patch(LEASE_PATH, {"spec": {"holderIdentity": ""}})
        api.wait_until(
            lambda: all(pod["spec"].get("nodeName") for pod in api.pods()), "all pods are bound"
        )
        lease = api.get(LEASE_PATH)["spec"]
        assert (lease["holderIdentity"], lease["leaseTransitions"]) == (app.options.identity, 5)
        on = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in api.pods()}
        assert on["nominated"] == "second"
        assert berth.stop() == 0
    assert api.get(LEASE_PATH)["spec"]["holderIdentity"] == ""


def test_a_server_that_hangs_ends_a_leader_with_1(fresh_control_plane, api):
    plane = fresh_control_plane
    kubeconfig = plane.berth_kubeconfig()
    with RunningBerth(kubeconfig, config=electing(**SHORT)) as berth:
        leadership = berth.app.leadership
        api.wait_until(
            lambda: berth.app.leadership is not None and berth.app.leadership.is_leading, "it leads"
        )
        leadership = berth.app.leadership
        assert leadership is not None
        plane.pause_apiserver()
        try:
            api.wait_until(lambda: berth.exit_status is not None, "it ends")
        finally:
            plane.resume_apiserver()
        assert berth.exit_status == 1
        assert leadership.grant_s(1.0) == 0.0


def test_an_api_server_that_is_restarted_costs_nobody_the_leadership(fresh_control_plane, api):
    plane = fresh_control_plane
    with RunningBerth(plane.berth_kubeconfig(), config=electing()) as berth:
        api.create_many([make_node("node", cpu="4"), make_pod("before", cpu="1")])
        api.wait_until(lambda: all(bound(api)), "the first pod is bound")
        plane.kill_apiserver()
        plane.start_apiserver()
        api.create_many([make_pod("after", cpu="1")])
        api.wait_until(lambda: all(bound(api)), "the second pod is bound")
        spec = api.get(LEASE_PATH)["spec"]
        assert (spec["holderIdentity"], spec["leaseTransitions"]) == (berth.app.options.identity, 0)
        assert berth.stop() == 0


def test_a_leader_whose_scheduling_thread_dies_makes_way(fresh_control_plane, api, monkeypatch):
    kubeconfig = fresh_control_plane.berth_kubeconfig()
    api.create_many([make_node("node", cpu="4")])
    with RunningBerth(kubeconfig, config=electing()) as berth:
        api.wait_until(
            lambda: berth.app.leadership is not None and berth.app.leadership.is_leading, "it leads"
        )

        def broken(*args: object) -> None:
            raise RuntimeError("as the test wants it")

        monkeypatch.setattr(berth.app.deciding.loop, "schedule_one", broken)
        monkeypatch.setattr(berth.app.deciding.loop, "_failed", broken)
        api.create_many([make_pod("waits", cpu="1")])
        api.wait_until(lambda: not berth.is_alive, "it ends")
        assert berth.exit_status == 1
    assert api.get(LEASE_PATH)["spec"]["holderIdentity"] == ""
    with RunningBerth(kubeconfig, config=electing()) as berth:
        api.wait_until(lambda: all(bound(api)), "the next one binds the pod")
        assert berth.stop() == 0


def bound(api: BlockingApi) -> list[bool]:
    return [bool(pod["spec"].get("nodeName")) for pod in api.pods()]
