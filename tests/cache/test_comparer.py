from __future__ import annotations

import pytest

from cache.comparer import compare, compare_in_steps
from cache.pod_info import PodInfo
from cache.scheduler_cache import SchedulerCache
from tests.builders import node, pod

N1 = node("n1").capacity(cpu="4", memory="8Gi")
N2 = node("n2").capacity(cpu="4", memory="8Gi")
A = pod("a").request(cpu="1").on("n1")
B = pod("b").request(cpu="2").on("n2")
WAITING = pod("c").request(cpu="1")


class Scene:
    """Two nodes with a pod each, in the cache and in what the watches know."""

    def __init__(self) -> None:
        self.nodes = [N1.build(), N2.build()]
        self.pods = [A.build(), B.build()]
        self.cache = SchedulerCache()
        for each in self.nodes:
            self.cache.add_node(each)
        for each in self.pods:
            self.cache.add_pod(PodInfo(each))

    def found(self, meanwhile=None):
        """Compare in steps; `meanwhile` is called once everything has been taken down."""
        steps = compare_in_steps(self.cache, self.cache.mark(), list(self.nodes), list(self.pods))
        next(steps)
        if meanwhile is not None:
            meanwhile()
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return end.value

    def at_once(self):
        return compare(self.cache.dump(), self.nodes, self.pods)


def facts(mismatches) -> set[tuple[str, str]]:
    return {(each.node, each.fact) for each in mismatches}


def test_an_honest_cache_differs_in_nothing():
    scene = Scene()
    found = scene.found()
    assert (found.mismatches, found.compared, found.passed_over) == ((), 2, 0)
    assert scene.at_once() == []


def test_an_assumed_pod_is_expected_where_it_is_assumed():
    scene = Scene()
    scene.pods.append(WAITING.build())
    scene.cache.assume_pod(WAITING.info(), "n1")
    assert scene.found().mismatches == ()
    assert scene.at_once() == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(
            lambda s: s.cache.remove_pod(A.info()),
            {("n1", "pods"), ("n1", "requested"), ("n1", "nonzero")},
            id="a pod was forgotten",
        ),
        pytest.param(
            lambda s: s.pods.pop(),
            {("n2", "pods"), ("n2", "requested"), ("n2", "nonzero")},
            id="a pod that is gone was kept",
        ),
        pytest.param(
            lambda s: s.nodes.append(node("n3").capacity(cpu="1").build()),
            {("n3", "node"), ("n3", "allocatable")},
            id="a node was never heard of",
        ),
        pytest.param(
            lambda s: s.cache.add_node(node("n3").capacity(cpu="1").build()),
            {("n3", "node"), ("n3", "allocatable")},
            id="a node that is gone was kept",
        ),
        pytest.param(
            lambda s: s.cache.add_node(N1.image("img:1", size_bytes=5_000_000).build()),
            {("n1", "node"), ("n1", "image_states")},
            id="an image was made up",
        ),
    ],
)
def test_what_is_wrong_is_named(change, expected):
    scene = Scene()
    change(scene)
    assert facts(scene.found().mismatches) == expected
    assert facts(scene.at_once()) == expected


@pytest.mark.parametrize(
    "meanwhile",
    [
        pytest.param(lambda s: s.cache.remove_pod(A.info()), id="a pod goes"),
        pytest.param(lambda s: s.cache.assume_pod(WAITING.info(), "n1"), id="a pod is assumed"),
        pytest.param(
            lambda s: s.cache.add_node(node("n1").capacity(cpu="8").build()), id="the node changes"
        ),
    ],
)
def test_a_node_that_changes_meanwhile_is_passed_over(meanwhile):
    scene = Scene()
    found = scene.found(lambda: meanwhile(scene))
    assert (found.mismatches, found.compared, found.passed_over) == ((), 1, 1)


def test_a_node_that_goes_meanwhile_is_passed_over():
    scene = Scene()

    def go():
        scene.cache.remove_pod(B.info())
        scene.cache.remove_node("n2")

    found = scene.found(go)
    assert (found.mismatches, found.compared, found.passed_over) == ((), 1, 1)


def test_a_node_that_comes_meanwhile_is_not_looked_at():
    scene = Scene()
    found = scene.found(lambda: scene.cache.add_node(node("n3").build()))
    assert (found.mismatches, found.compared, found.passed_over) == ((), 2, 0)


def test_another_node_that_pulls_the_image_changes_nothing():
    scene = Scene()
    scene.nodes[0] = N1.image("img:1").build()
    scene.cache.add_node(scene.nodes[0])
    found = scene.found(lambda: scene.cache.add_node(N2.image("img:1").build()))
    assert (found.mismatches, found.passed_over) == ((), 1)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            lambda s: s.pods.append(pod("odd").request(cpu="much").on("n1").build()), id="a pod"
        ),
        pytest.param(
            lambda s: s.nodes.__setitem__(0, node("n1").capacity(cpu="much").build()), id="a node"
        ),
    ],
)
def test_of_what_cannot_be_read_nothing_is_said(change):
    scene = Scene()
    change(scene)
    found = scene.found()
    assert (found.mismatches, found.compared, found.passed_over) == ((), 1, 1)
    assert scene.at_once() == []


def test_a_comparison_of_many_is_done_in_many_steps():
    cache = SchedulerCache()
    nodes = [node(f"n{i}").build() for i in range(50)]
    pods = [pod(f"p{i}").on(f"n{i % 50}").build() for i in range(1000)]
    steps = compare_in_steps(cache, cache.mark(), nodes, pods)
    assert sum(1 for _ in steps) > 50 + 1000 // 8
