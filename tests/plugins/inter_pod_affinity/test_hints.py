from __future__ import annotations

import pytest
from msgspec.structs import replace

from cache.objects import (
    Affinity,
    LabelSelector,
    Namespace,
    Node,
    ObjectMeta,
    Pod,
    PodAffinity,
    PodAffinityTerm,
)
from plugins.framework.cluster_events import Action, Hint, Resource
from plugins.inter_pod_affinity import InterPodAffinity
from tests.builders import node, pod
from tests.plugins.conformance import RecordingHandle
from tests.plugins.hints_of import ask, listens_to

HANDLE = RecordingHandle([Namespace(ObjectMeta(name="default", labels={"team": "a"}))])
PLUGIN = InterPodAffinity(None, HANDLE)

WANTS = pod("w").pod_affinity("zone", app="a").build()
AVOIDS = pod("w").label("app", "b").pod_anti_affinity("zone", app="a").build()
MATCH = pod("q").label("app", "a").on("n").build()
OTHER = pod("q").label("app", "x").on("n").build()
PENDING = pod("q").label("app", "a").build()
REFUSES = pod("q").pod_anti_affinity("zone", app="b").on("n").build()


def test_it_listens_to_pods_and_nodes() -> None:
    assert listens_to(PLUGIN) == {
        Resource.POD: Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE,
        Resource.NODE: Action.ADD | Action.UPDATE_NODE_LABEL,
    }


@pytest.mark.parametrize(
    ("waiting", "old", "new", "expected"),
    [
        pytest.param(WANTS, None, MATCH, Hint.QUEUE, id="company comes"),
        pytest.param(WANTS, None, OTHER, Hint.SKIP, id="somebody else comes"),
        pytest.param(WANTS, None, PENDING, Hint.SKIP, id="company that is nowhere yet"),
        pytest.param(WANTS, OTHER, MATCH, Hint.QUEUE, id="somebody becomes company"),
        pytest.param(WANTS, MATCH, OTHER, Hint.SKIP, id="company becomes somebody else"),
        pytest.param(WANTS, MATCH, None, Hint.SKIP, id="company goes"),
        pytest.param(WANTS, WANTS, WANTS, Hint.QUEUE, id="its own labels change"),
        pytest.param(AVOIDS, MATCH, None, Hint.QUEUE, id="unwanted company goes"),
        pytest.param(AVOIDS, OTHER, None, Hint.SKIP, id="somebody else goes"),
        pytest.param(AVOIDS, MATCH, OTHER, Hint.QUEUE, id="unwanted company changes"),
        pytest.param(AVOIDS, None, MATCH, Hint.SKIP, id="unwanted company comes"),
        pytest.param(AVOIDS, REFUSES, None, Hint.QUEUE, id="a pod that keeps it away goes"),
    ],
)
def test_pods(waiting: Pod, old: Pod | None, new: Pod | None, expected: Hint) -> None:
    assert ask(PLUGIN, Resource.POD, waiting, old, new) is expected


def term(namespaces: LabelSelector | None = None, **labels: str) -> PodAffinityTerm:
    return PodAffinityTerm("zone", LabelSelector(labels), namespace_selector=namespaces)


def apart(*terms: PodAffinityTerm) -> Pod:
    made = pod("w").build()
    affinity = Affinity(
        pod_anti_affinity=PodAffinity(required_during_scheduling_ignored_during_execution=terms)
    )
    return replace(made, spec=replace(made.spec, affinity=affinity))


TEAM = LabelSelector({"team": "a"})
ANY_OF_TWO = apart(term(app="a"), term(tier="x"))
OF_A_TEAM = apart(term(TEAM, app="a"))


@pytest.mark.parametrize(
    ("waiting", "old", "kube_scheduler", "expected"),
    [
        pytest.param(AVOIDS, MATCH, Hint.QUEUE, Hint.SKIP, id="said already"),
        pytest.param(ANY_OF_TWO, MATCH, Hint.SKIP, Hint.QUEUE, id="one of two terms"),
        pytest.param(ANY_OF_TWO, OTHER, Hint.SKIP, Hint.SKIP, id="neither of two terms"),
        pytest.param(OF_A_TEAM, MATCH, Hint.SKIP, Hint.QUEUE, id="by the namespace's labels"),
    ],
)
def test_any_term_may_be_the_one_that_kept_a_pod_away(
    waiting: Pod, old: Pod, kube_scheduler: Hint, expected: Hint
) -> None:
    assert ask(PLUGIN, Resource.POD, waiting, old, None) is kube_scheduler
    assert ask(PLUGIN, Resource.POD, waiting, old, None, additions=True) is expected


BARE = node("n").build()
ZONE_A, ZONE_B = node("n").label("zone", "a").build(), node("n").label("zone", "b").build()


@pytest.mark.parametrize(
    ("waiting", "old", "new", "expected"),
    [
        pytest.param(WANTS, None, ZONE_A, Hint.QUEUE, id="a node with the topology"),
        pytest.param(WANTS, None, BARE, Hint.SKIP, id="a node without it"),
        pytest.param(WANTS, BARE, ZONE_A, Hint.QUEUE, id="a node joins"),
        pytest.param(WANTS, ZONE_A, ZONE_B, Hint.QUEUE, id="a node moves"),
        pytest.param(WANTS, ZONE_A, BARE, Hint.SKIP, id="a node leaves"),
        pytest.param(AVOIDS, None, BARE, Hint.QUEUE, id="avoiding: any new node"),
        pytest.param(AVOIDS, ZONE_A, BARE, Hint.QUEUE, id="avoiding: a node leaves"),
        pytest.param(AVOIDS, ZONE_A, ZONE_B, Hint.QUEUE, id="avoiding: a node moves"),
        pytest.param(AVOIDS, BARE, ZONE_A, Hint.SKIP, id="avoiding: a node joins"),
        pytest.param(AVOIDS, ZONE_A, ZONE_A, Hint.SKIP, id="nothing changes"),
    ],
)
def test_nodes(waiting: Pod, old: Node | None, new: Node, expected: Hint) -> None:
    assert ask(PLUGIN, Resource.NODE, waiting, old, new) is expected


ANYBODY = pod("w").label("app", "b").build()


@pytest.mark.parametrize(
    ("waiting", "old", "new", "expected"),
    [
        pytest.param(ANYBODY, None, BARE, Hint.QUEUE, id="a node"),
        pytest.param(WANTS, None, BARE, Hint.SKIP, id="a node where it has no company"),
        pytest.param(ANYBODY, ZONE_A, ZONE_B, Hint.QUEUE, id="others move"),
        pytest.param(WANTS, ZONE_A, BARE, Hint.QUEUE, id="others leave a zone that has company"),
        pytest.param(ANYBODY, BARE, None, Hint.SKIP, id="a node goes"),
    ],
)
def test_a_node_may_be_without_those_who_kept_a_pod_away(
    waiting: Pod, old: Node | None, new: Node | None, expected: Hint
) -> None:
    assert ask(PLUGIN, Resource.NODE, waiting, old, new) is Hint.SKIP
    assert ask(PLUGIN, Resource.NODE, waiting, old, new, additions=True) is expected
