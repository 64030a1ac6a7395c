"""The plugins that look at other pods, through the conformance checks, in clusters of such pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cache.objects import (
    LabelSelector,
    LabelSelectorRequirement,
    Namespace,
    ObjectMeta,
)
from cache.workload_objects import (
    ReplicaSet,
    Service,
    ServiceSpec,
    SetSpec,
    StatefulSet,
    WorkloadMeta,
)
from cache.workloads import Workloads
from plugins.inter_pod_affinity import InterPodAffinity
from plugins.pod_topology_spread import PodTopologySpread
from tests.plugins import conformance
from tests.plugins.conformance import Recipe, RecordingHandle
from tests.plugins.related_pods import pods, worlds

if TYPE_CHECKING:
    from cache.objects import Pod
    from tests.plugins.related_pods import World


def told_handle() -> RecordingHandle:
    """Lend two namespaces with labels, two Services and two sets."""
    workloads = Workloads()
    for name, selector in (("front", {"app": "a"}), ("back", {"tier": "b"})):
        meta = WorkloadMeta(name, "default", name)
        workloads.service_changed(None, Service(meta, ServiceSpec(selector)))
    tiered = SetSpec(LabelSelector(match_labels={"tier": "a"}))
    has_app = LabelSelectorRequirement("app", "Exists")
    named = SetSpec(LabelSelector(match_expressions=(has_app,)))
    workloads.controller_changed(None, ReplicaSet(WorkloadMeta("web", "default", "r"), tiered))
    workloads.controller_changed(None, StatefulSet(WorkloadMeta("web", "other", "s"), named))
    namespaces = (
        Namespace(ObjectMeta(name="default", labels={"app": "a"})),
        Namespace(ObjectMeta(name="other", labels={"tier": "b"})),
    )
    return RecordingHandle(namespaces, workloads)


LISTED = {
    "defaultingType": "List",
    "defaultConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "DoNotSchedule",
        },
        {"maxSkew": 2, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway"},
    ],
}

RECIPES = pytest.mark.parametrize(
    "recipe",
    [
        pytest.param(Recipe(InterPodAffinity, None, told_handle), id="InterPodAffinity"),
        pytest.param(
            Recipe(
                InterPodAffinity,
                {"hardPodAffinityWeight": 50, "ignorePreferredTermsOfExistingPods": True},
                told_handle,
            ),
            id="InterPodAffinity-own preferences",
        ),
        pytest.param(Recipe(PodTopologySpread, None, told_handle), id="PodTopologySpread"),
        pytest.param(Recipe(PodTopologySpread, LISTED, told_handle), id="PodTopologySpread-listed"),
    ],
)

SOME = settings(max_examples=settings().max_examples // 2, deadline=None)


@RECIPES
@given(world=worlds(), pod=pods(), data=st.data())
@SOME
def test_a_cluster_gets_the_same_answers_in_every_form(
    recipe: Recipe, world: World, pod: Pod, data: st.DataObject
) -> None:
    cluster = world.cluster
    conformance.check_legal_statuses(recipe, cluster, pod)
    conformance.check_filter_twins(recipe, cluster, pod)
    conformance.check_score_twins(recipe, cluster, pod)
    conformance.check_same_again(recipe, cluster, pod)
    conformance.check_inputs_unchanged(recipe, cluster, pod)
    conformance.check_no_nodes(recipe, pod)
    rows = data.draw(st.permutations(range(len(cluster.nodes))))
    conformance.check_some_rows(recipe, cluster, pod, rows[: data.draw(st.integers(0, 6))])


@RECIPES
@given(before=worlds(), after=worlds(), other=pods(), pod=pods())
@SOME
def test_answers_do_not_depend_on_the_past(
    recipe: Recipe, before: World, after: World, other: Pod, pod: Pod
) -> None:
    conformance.check_nothing_leaks(recipe, [(before.cluster, other)], after.cluster, pod)
    conformance.check_follows_changes(recipe, before.cluster, after.cluster, [other, pod])


@RECIPES
@given(world=worlds(min_nodes=1), pod=pods(), data=st.data())
@SOME
def test_a_what_if_is_as_good_as_the_real_thing(
    recipe: Recipe, world: World, pod: Pod, data: st.DataObject
) -> None:
    hosts = [node.metadata.name for node in world.cluster.nodes]
    newcomer = data.draw(pods(name="newcomer", node_name=data.draw(st.sampled_from(hosts))))
    conformance.check_what_if(recipe, world.cluster, newcomer, pod)


@RECIPES
@given(world=worlds(min_nodes=1), pod=pods(), data=st.data())
@SOME
def test_a_what_if_is_seen_by_the_vector_filter_too(
    recipe: Recipe, world: World, pod: Pod, data: st.DataObject
) -> None:
    hosts = [node.metadata.name for node in world.cluster.nodes]
    newcomer = data.draw(pods(name="newcomer", node_name=data.draw(st.sampled_from(hosts))))
    conformance.check_what_if_vector(recipe, world.cluster, newcomer, pod)
