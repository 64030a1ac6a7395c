"""The cluster of the campaign: full, and with a place for each pod."""

from __future__ import annotations

import pytest

from tests.neighbours.admission import Kubelet, amounts, pod_requests
from tests.neighbours.cluster import PARTIES, Cluster, Size, original, successor

SMALL = Size(nodes=32, pods=200)


@pytest.fixture(name="cluster")
def make_cluster() -> Cluster:
    return Cluster(SMALL, seed=3)


def used_share(cluster: Cluster, resource: str) -> float:
    total = sum(amounts(n["status"]["allocatable"])[resource] for n in cluster.nodes.values())
    return sum(pod_requests(pod["spec"])[resource] for pod in cluster.running) / total


def test_nodes_are_filled(cluster):
    assert used_share(cluster, "cpu") == pytest.approx(0.9, abs=0.02)
    assert used_share(cluster, "memory") == pytest.approx(0.9, abs=0.02)


def test_kubelets_admit_the_running_pods(cluster):
    kubelets = {
        name: Kubelet(node["status"]["allocatable"]) for name, node in cluster.nodes.items()
    }
    for pod in cluster.running:
        requests = pod_requests(pod["spec"])
        name = pod["metadata"]["name"]
        assert kubelets[pod["spec"]["nodeName"]].admit(name, requests) is None


@pytest.mark.parametrize("takes_turns", [True, False])
@pytest.mark.parametrize("is_largest_first", [True, False])
def test_each_pod_has_a_place_in_any_order(cluster, is_largest_first, takes_turns):
    kubelets = {
        name: Kubelet(node["status"]["allocatable"]) for name, node in cluster.nodes.items()
    }
    for pod in cluster.running:
        kubelets[pod["spec"]["nodeName"]].admit(pod["metadata"]["name"], pod_requests(pod["spec"]))
    pods = [(pod["metadata"]["name"], pod_requests(pod["spec"])) for pod in cluster.pods]
    pods.sort(key=lambda pod: pod[1]["cpu"], reverse=is_largest_first)

    homeless = []
    names = list(kubelets)
    for name, requests in pods:
        place = next((n for n in names if kubelets[n].admit(name, requests) is None), None)
        if place is None:
            homeless.append(name)
        elif takes_turns:
            names.remove(place)
            names.append(place)

    assert not homeless


def test_parties_take_turns(cluster):
    order = [pod["spec"]["schedulerName"] for pod in cluster.pods]

    assert order == list(PARTIES) * SMALL.pods


def test_some_nodes_run_out_of_places_for_pods(cluster):
    few = [n for n in cluster.nodes.values() if int(n["status"]["allocatable"]["pods"]) < 110]

    assert len(few) == 2


def test_same_seed_gives_the_same_cluster():
    assert Cluster(SMALL, seed=5).pods == Cluster(SMALL, seed=5).pods
    assert Cluster(SMALL, seed=5).nodes == Cluster(SMALL, seed=5).nodes


def test_successor_is_the_same_pod_with_another_name(cluster):
    pod = cluster.pods[0]
    second = successor(successor(pod))

    assert second["metadata"]["name"] == f"{original(pod['metadata']['name'])}-2"
    assert second["spec"] == pod["spec"]
    assert second["metadata"]["ownerReferences"] == pod["metadata"]["ownerReferences"]
