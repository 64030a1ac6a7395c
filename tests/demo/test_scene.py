from __future__ import annotations

from collections import Counter

import pytest

from tests.controlplane.objects import ZONE_LABEL
from tests.demo.outcome import amount
from tests.demo.scene import (
    FOREIGN_PODS,
    KIND_LABEL,
    MAX_PODS_PER_NODE,
    POOL_LABEL,
    ZONES,
    Scene,
    build_scene,
)

SIZES = [
    pytest.param(100, 1000, id="default"),
    pytest.param(20, 50, id="smallest"),
    pytest.param(20, 20 * MAX_PODS_PER_NODE, id="small-and-full"),
    pytest.param(1000, 1000 * MAX_PODS_PER_NODE, id="large-and-full"),
]


@pytest.mark.parametrize(("nodes", "pods"), SIZES)
def test_it_has_as_many_as_asked_for(nodes: int, pods: int) -> None:
    scene = build_scene(nodes, pods)
    assert (len(scene.nodes), len(scene.pods)) == (nodes, pods + FOREIGN_PODS)


@pytest.mark.parametrize(("nodes", "pods"), SIZES)
def test_its_kinds_count_the_pods_that_should_be_bound(nodes: int, pods: int) -> None:
    scene = build_scene(nodes, pods)
    found = Counter(
        pod["metadata"]["labels"][KIND_LABEL]
        for pod in scene.pods
        if pod["metadata"]["name"] in scene.placeable
    )
    assert found == {kind.name: kind.count for kind in scene.kinds}


@pytest.mark.parametrize(("nodes", "pods"), SIZES)
def test_every_name_is_used_once(nodes: int, pods: int) -> None:
    scene = build_scene(nodes, pods)
    for things in (scene.nodes, scene.pods):
        assert len({thing["metadata"]["name"] for thing in things}) == len(things)


@pytest.mark.parametrize(("nodes", "pods"), SIZES)
def test_each_zone_has_a_third_of_the_nodes(nodes: int, pods: int) -> None:
    scene = build_scene(nodes, pods)
    found = Counter(node["metadata"]["labels"][ZONE_LABEL] for node in scene.nodes)
    assert found.keys() == set(ZONES)
    assert max(found.values()) - min(found.values()) <= 1


@pytest.mark.parametrize(("nodes", "pods"), SIZES)
def test_the_open_nodes_have_cpu_to_spare(nodes: int, pods: int) -> None:
    scene = build_scene(nodes, pods)
    room = sum(cpu_of_nodes(scene, pool) for pool in ("standard", "small", "big", "nvme"))
    assert cpu_of_pods(scene, "web", "by-zone", "nvme", "large") < 0.7 * room


@pytest.mark.parametrize(("nodes", "pods"), SIZES)
def test_the_tainted_nodes_have_cpu_to_spare(nodes: int, pods: int) -> None:
    scene = build_scene(nodes, pods)
    assert cpu_of_pods(scene, "spot") < 0.7 * cpu_of_nodes(scene, "spot")


@pytest.mark.parametrize(("nodes", "pods"), SIZES)
def test_there_are_more_open_nodes_than_pods_with_the_host_port(nodes: int, pods: int) -> None:
    scene = build_scene(nodes, pods)
    standard = sum(node["metadata"]["labels"][POOL_LABEL] == "standard" for node in scene.nodes)
    assert next(kind.count for kind in scene.kinds if kind.name == "port") < standard


@pytest.mark.parametrize(
    ("nodes", "pods", "complaint"),
    [
        pytest.param(19, 100, "--nodes must be at least 20, not 19", id="too-few-nodes"),
        pytest.param(20, 49, "--pods must be at least 50, not 49", id="too-few-pods"),
        pytest.param(20, 221, "--pods may be at most 220 with 20 nodes", id="too-full"),
    ],
)
def test_a_scene_that_cannot_be_is_refused(nodes: int, pods: int, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        build_scene(nodes, pods)


def test_it_is_the_same_each_time() -> None:
    assert build_scene(100, 1000) == build_scene(100, 1000)


def cpu_of_nodes(scene: Scene, pool: str) -> float:
    return sum(
        float(amount(node["status"]["allocatable"]["cpu"]))
        for node in scene.nodes
        if node["metadata"]["labels"][POOL_LABEL] == pool
    )


def cpu_of_pods(scene: Scene, *kinds: str) -> float:
    return sum(
        float(amount(container["resources"]["requests"]["cpu"]))
        for pod in scene.pods
        if pod["metadata"]["labels"][KIND_LABEL] in kinds
        for container in pod["spec"]["containers"]
    )
