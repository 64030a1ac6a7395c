"""Affinity and spreading on a real API server: what the watches tell reaches the plugins."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from scheduler.kinds import NAMESPACES, SERVICES
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.objects import (
    HOSTNAME_LABEL,
    ZONE_LABEL,
    make_namespace,
    make_node,
    make_pod,
)
from tests.scenarios.running_berth import RunningBerth

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.controlplane


@pytest.fixture(scope="module")
def own_plane(controlplane_binaries) -> Iterator[ControlPlane]:
    """A control plane that only this module uses."""
    with ControlPlane() as plane:
        yield plane


@pytest.fixture
def berth_and_api(own_plane) -> Iterator[tuple[RunningBerth, BlockingApi]]:
    """Six nodes in three zones and a berth, swept after the test."""
    with BlockingApi(own_plane.admin_kubeconfig) as api:
        api.create_many([make_node(f"node-{i}", zone=f"zone-{i % 3}") for i in range(6)])
        with RunningBerth(own_plane.berth_kubeconfig()) as berth:
            api.wait_until(lambda: berth.is_ready, "berth is ready")
            yield berth, api
        for pod in api.pods():
            meta = pod["metadata"]
            api.delete(f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}")
        for node in api.list_all("/api/v1/nodes"):
            api.delete(f"/api/v1/nodes/{node['metadata']['name']}")


def homes(api: BlockingApi, count: int, app: str) -> Counter[str]:
    """Wait until so many pods of an app are bound, and count them by node."""

    def found() -> list[str]:
        return [
            pod["spec"]["nodeName"]
            for pod in api.pods()
            if pod["metadata"]["labels"].get("app") == app and pod["spec"].get("nodeName")
        ]

    api.wait_until(lambda: len(found()) == count, f"{count} pods of {app} are bound")
    return Counter(found())


def required(topology_key: str, app: str, **more: Any) -> dict[str, Any]:
    term = {"topologyKey": topology_key, "labelSelector": {"matchLabels": {"app": app}}, **more}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def test_pods_that_avoid_each_other_are_alone_on_their_nodes(berth_and_api):
    _, api = berth_and_api
    alone = {"podAntiAffinity": required(HOSTNAME_LABEL, "alone")}
    api.create_many(
        [make_pod(f"alone-{i}", labels={"app": "alone"}, affinity=alone) for i in range(6)]
    )
    assert set(homes(api, 6, "alone").values()) == {1}


def test_pods_that_want_each_other_share_a_zone(berth_and_api):
    _, api = berth_and_api
    together = {"podAffinity": required(ZONE_LABEL, "flock")}
    api.create_many(
        [make_pod(f"flock-{i}", labels={"app": "flock"}, affinity=together) for i in range(8)]
    )
    assert len({int(name[-1]) % 3 for name in homes(api, 8, "flock")}) == 1


def test_hard_constraints_keep_zones_even(berth_and_api):
    _, api = berth_and_api
    even = {
        "maxSkew": 1,
        "topologyKey": ZONE_LABEL,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "even"}},
    }
    api.create_many(
        [
            make_pod(f"even-{i}", labels={"app": "even"}, topologySpreadConstraints=[even])
            for i in range(9)
        ]
    )
    zones: Counter[int] = Counter()
    for name, count in homes(api, 9, "even").items():
        zones[int(name[-1]) % 3] += count
    assert sorted(zones.values()) == [3, 3, 3]


def test_pods_of_a_service_spread_over_nodes_by_default(berth_and_api):
    berth, api = berth_and_api
    api.post(
        "/api/v1/namespaces/default/services",
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "served"},
            "spec": {"selector": {"app": "served"}, "ports": [{"port": 80}]},
        },
    )
    services = berth.watch(SERVICES)
    api.wait_until(lambda: services.get("default", "served") is not None, "the Service is known")
    api.create_many([make_pod(f"served-{i}", labels={"app": "served"}) for i in range(12)])
    assert set(homes(api, 12, "served").values()) == {2}


def test_a_namespace_selector_follows_the_labels_of_namespaces(berth_and_api):
    berth, api = berth_and_api
    api.create_many([make_namespace("friends", {"team": "x"})])
    host = make_pod("host", namespace="friends", labels={"app": "host"}, nodeName="node-4")
    api.create_many([host])
    near = required(ZONE_LABEL, "host", namespaceSelector={"matchLabels": {"team": "x"}})
    api.wait_until(lambda: berth.app.known.pods.cache.counts().pods == 1, "the host is known")
    namespaces = berth.watch(NAMESPACES)
    api.wait_until(lambda: namespaces.get("", "friends") is not None, "its namespace is known")
    api.create_many([make_pod("guest", labels={"app": "guest"}, affinity={"podAffinity": near})])
    assert set(homes(api, 1, "guest")) <= {"node-1", "node-4"}
