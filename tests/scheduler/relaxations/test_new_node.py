from __future__ import annotations

from scheduler.config import default_config, effective_profiles
from scheduler.offline.offline_framework import offline_framework
from scheduler.relaxations import NewNode, find_relaxations
from tests.builders import node, pod
from tests.scheduler.relaxations.small_clusters import cluster_with, relaxations

ZONE = "topology.kubernetes.io/zone"


def test_one_more_node_of_a_kind_comes_first() -> None:
    full = pod("x").request(cpu="4").on("n1")
    found = relaxations(pod().request(cpu="3"), node("n1"), full)
    assert found.new_node == NewNode("n1")


def test_a_new_shape_has_what_the_pod_requests_and_the_labels_that_it_demands() -> None:
    asked = pod().request(cpu="64", memory="1Gi").node_selector("disk", "ssd")
    found = relaxations(asked, node("n1"))
    assert found.new_node == NewNode("", {"cpu": "64", "memory": "1Gi"}, {"disk": "ssd"})


def test_a_new_shape_is_in_a_zone_where_the_pod_may_run() -> None:
    asked = pod().label("app", "web").request(cpu="64").spread(ZONE, app="web")
    found = relaxations(
        asked, node("n1").zone("a"), node("n2").zone("b"), pod("x").label("app", "web").on("n1")
    )
    assert found.new_node is not None
    assert found.new_node.labels == {ZONE: "b"}


def test_no_node_helps_a_pod_whose_claim_does_not_exist() -> None:
    assert relaxations(pod().claim("lost"), node("n1")).new_node is None


def test_a_cluster_without_nodes_needs_one() -> None:
    assert relaxations(pod().request(cpu="1")).new_node == NewNode("", {"cpu": "1"}, {})


def test_the_snapshot_is_afterwards_as_it_was() -> None:
    cluster = cluster_with(node("n1"), node("n2"))
    framework = offline_framework(effective_profiles(default_config()), cluster)
    snapshot = cluster.snapshot()
    before = snapshot.names()
    asked = pod().request(cpu="64").info()
    assert find_relaxations(framework, snapshot, cluster.known.storage, asked).new_node
    assert snapshot.names() == before
