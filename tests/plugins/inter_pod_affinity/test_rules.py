"""The rules that are easy to get wrong, one by one."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cache.objects import (
    Affinity,
    LabelSelector,
    LabelSelectorRequirement,
    Namespace,
    ObjectMeta,
    PodAffinity,
    PodAffinityTerm,
)
from cache.pod_info import PodInfo
from cache.snapshot import Snapshot
from plugins.framework.cycle_state import CycleState
from plugins.framework.status import SKIP, SUCCESS, Code, Status, unresolvable, unschedulable
from plugins.inter_pod_affinity import InterPodAffinity, InterPodAffinityArgs
from tests.builders import NodeBuilder, PodBuilder, node, pod
from tests.plugins.conformance import RecordingHandle

ZONE = "topology.kubernetes.io/zone"

NO_COMPANY = unresolvable("node(s) didn't match pod affinity rules")
UNWANTED_COMPANY = unschedulable("node(s) didn't match pod anti-affinity rules")
UNWELCOME = unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")

NAMESPACES = (
    Namespace(ObjectMeta(name="default", labels={"team": "x"})),
    Namespace(ObjectMeta(name="other", labels={"team": "y"})),
)

Placed = tuple[NodeBuilder, list[PodBuilder]]


def statuses(asked: PodInfo, *placed: Placed) -> list[Status] | Status:
    """The status of each node, or that of PreFilter when it is no success."""
    snapshot = Snapshot.of(each.info(*pods) for each, pods in placed)
    plugin, state = InterPodAffinity(None, RecordingHandle(NAMESPACES)), CycleState()
    status = plugin.pre_filter(state, asked, snapshot.all_nodes()).status
    if not status.is_success:
        return status
    return [plugin.filter_one(state, asked, each) for each in snapshot.columns.node_infos]


def wanting(term: PodAffinityTerm, *, apart: bool = False, labels: bool = True) -> PodInfo:
    asked = (pod("asked").label("app", "a") if labels else pod("asked")).build()
    terms = PodAffinity(required_during_scheduling_ignored_during_execution=(term,))
    affinity = Affinity(pod_anti_affinity=terms) if apart else Affinity(pod_affinity=terms)
    return PodInfo(replace(asked, spec=replace(asked.spec, affinity=affinity)))


def selecting(key: str, operator: str, *values: str) -> LabelSelector:
    return LabelSelector(match_expressions=(LabelSelectorRequirement(key, operator, values),))


N, M = node("n").zone("z1"), node("m").zone("z2")
BARE = node("bare")


@pytest.mark.parametrize(
    ("asked", "placed", "expected"),
    [
        pytest.param(pod("p"), [(N, [])], SKIP, id="nothing bears on the pod"),
        pytest.param(
            pod("p").label("app", "b"),
            [(N, [pod("q").pod_anti_affinity(ZONE, app="a")])],
            SKIP,
            id="other pods keep away others",
        ),
        pytest.param(
            pod("p").label("app", "a"),
            [(BARE, [pod("q").pod_anti_affinity(ZONE, app="a")])],
            SKIP,
            id="a pod on a node without the topology keeps nobody away",
        ),
        pytest.param(
            pod("p").label("app", "a"),
            [(N, [pod("q").pod_anti_affinity(ZONE, app="a")]), (M, [])],
            [UNWELCOME, SUCCESS],
            id="a pod keeps others out of its domain",
        ),
        pytest.param(
            pod("p").pod_affinity(ZONE, app="a"),
            [(N, [pod("q").label("app", "a")]), (M, []), (BARE, [])],
            [SUCCESS, NO_COMPANY, NO_COMPANY],
            id="company in the domain",
        ),
        pytest.param(
            pod("p").pod_anti_affinity(ZONE, app="a"),
            [(N, [pod("q").label("app", "a")]), (M, []), (BARE, [pod("r").label("app", "a")])],
            [UNWANTED_COMPANY, SUCCESS, SUCCESS],
            id="no company in the domain",
        ),
        pytest.param(
            pod("p").pod_affinity(ZONE, app="a"),
            [(N, [])],
            [NO_COMPANY],
            id="nobody to be with",
        ),
        pytest.param(
            pod("p").label("app", "a").pod_affinity(ZONE, app="a"),
            [(N, []), (BARE, [])],
            [SUCCESS, NO_COMPANY],
            id="the first of its kind starts where the topology is",
        ),
        pytest.param(
            pod("p").label("app", "a").pod_affinity(ZONE, app="a"),
            [(N, []), (BARE, [pod("q").label("app", "a")])],
            [SUCCESS, NO_COMPANY],
            id="company outside of the topology is none",
        ),
        pytest.param(
            pod("p").pod_affinity(ZONE, app="a"),
            [(N, [pod("q").label("app", "a").terminating()])],
            [SUCCESS],
            id="a pod that is being deleted is company",
        ),
        pytest.param(
            pod("p").pod_affinity(ZONE, app="a"),
            [(N, [pod("q", namespace="other").label("app", "a")])],
            [NO_COMPANY],
            id="another namespace",
        ),
    ],
)
def test_required_terms(
    asked: PodBuilder, placed: list[Placed], expected: list[Status] | Status
) -> None:
    assert statuses(asked.info(), *placed) == expected


@pytest.mark.parametrize(
    ("selector", "reached"),
    [
        pytest.param(LabelSelector(), {"default", "other", "unheard-of"}, id="empty"),
        pytest.param(LabelSelector(match_labels={"team": "y"}), {"other"}, id="labels"),
        pytest.param(
            selecting("team", "NotIn", "x"),
            {"default", "other", "unheard-of"},
            id="satisfied by no labels at all: every namespace, as with kube-scheduler",
        ),
        pytest.param(selecting("team", "Exists"), {"default", "other"}, id="exists"),
    ],
)
def test_a_namespace_selector_of_the_pod_reaches(
    selector: LabelSelector, reached: set[str]
) -> None:
    app = LabelSelector(match_labels={"app": "a"})
    asked = wanting(PodAffinityTerm(ZONE, app, namespace_selector=selector), apart=True)
    found = {
        namespace
        for namespace in ("default", "other", "unheard-of")
        if statuses(asked, (N, [pod("q", namespace=namespace).label("app", "a")])) != [SUCCESS]
    }
    assert found == reached


def test_a_malformed_term_rejects_the_pod() -> None:
    asked = wanting(PodAffinityTerm(ZONE, selecting("app", "Around", "a")))
    status = statuses(asked, (N, []))
    assert isinstance(status, Status)
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.message.startswith("parsing pod: spec.affinity.podAffinity.required")


# --- scores -----------------------------------------------------------------------------------


def scores(asked: PodBuilder, *placed: Placed, **args: object) -> list[int] | Status:
    snapshot = Snapshot.of(each.info(*pods) for each, pods in placed)
    made = InterPodAffinityArgs(**args)  # type: ignore[arg-type]
    plugin, state = InterPodAffinity(made, RecordingHandle(NAMESPACES)), CycleState()
    view, info = snapshot.all_nodes(), asked.info()
    status = plugin.pre_score(state, info, view)
    return plugin.score(state, info, view).tolist() if status.is_success else status


TENANT = pod("q").label("app", "a")


@pytest.mark.parametrize(
    ("asked", "placed", "expected"),
    [
        pytest.param(pod("p"), [(N, [TENANT]), (M, [])], SKIP, id="no preferences at all"),
        pytest.param(
            pod("p").prefers_pods(5, ZONE, app="a"),
            [(N, [TENANT, pod("r").label("app", "a")]), (M, []), (BARE, [])],
            [10, 0, 0],
            id="company is preferred",
        ),
        pytest.param(
            pod("p").avoids_pods(5, ZONE, app="a"),
            [(N, [TENANT]), (M, [])],
            [-5, 0],
            id="company is avoided",
        ),
        pytest.param(
            pod("p").prefers_pods(5, ZONE, app="a"),
            [(N, []), (BARE, [TENANT])],
            SKIP,
            id="company outside of the topology is none",
        ),
        pytest.param(
            pod("p").label("app", "b"),
            [(N, [TENANT.prefers_pods(7, ZONE, app="b")]), (M, [])],
            [7, 0],
            id="a pod that runs prefers the company",
        ),
        pytest.param(
            pod("p").label("app", "b"),
            [(N, [TENANT.avoids_pods(7, ZONE, app="b")]), (M, [])],
            [-7, 0],
            id="a pod that runs avoids it",
        ),
        pytest.param(
            pod("p").label("app", "b"),
            [(N, [TENANT.pod_affinity(ZONE, app="b")]), (M, [])],
            [1, 0],
            id="a pod that runs requires it",
        ),
        pytest.param(
            pod("p").prefers_pods(5, ZONE, app="a").avoids_pods(5, ZONE, app="a"),
            [(N, [TENANT]), (M, [])],
            [0, 0],
            id="preferences that cancel out are preferences",
        ),
    ],
)
def test_preferences(asked: PodBuilder, placed: list[Placed], expected: list[int] | Status) -> None:
    assert scores(asked, *placed) == expected


def test_the_weight_of_required_terms_of_pods_that_run_is_an_argument() -> None:
    placed = (N, [TENANT.pod_affinity(ZONE, app="b")])
    asked = pod("p").label("app", "b")
    assert scores(asked, placed, (M, []), hard_pod_affinity_weight=40) == [40, 0]
    assert scores(asked, placed, (M, []), hard_pod_affinity_weight=0) == SKIP


def test_pods_without_preferences_may_be_left_unscored() -> None:
    placed = (N, [TENANT.prefers_pods(7, ZONE, app="b")])
    ignoring = {"ignore_preferred_terms_of_existing_pods": True}
    assert scores(pod("p").label("app", "b"), placed, (M, []), **ignoring) == SKIP
    prefers = pod("p").label("app", "b").prefers_pods(1, ZONE, app="a")
    assert scores(prefers, placed, (M, []), **ignoring) == [8, 0]
