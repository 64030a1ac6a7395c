"""Every registered plugin, and some of them with other arguments, through every check."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plugins import names
from plugins.framework.interfaces import FilterPlugin, Plugin, PreFilterPlugin, ScorePlugin
from plugins.registry import PLUGINS
from tests.plugins import conformance, joint_forms
from tests.plugins.conformance import (
    Recipe,
    clusters,
    clusters_and_newcomers,
    pending_pods,
)

if TYPE_CHECKING:
    from cache.objects import Pod
    from tests.plugins.conformance import Cluster

_SCALE = max(1, settings().max_examples // 100)
"""Drawing a cluster takes some 20 ms, and there is a draw for each plugin: few examples in an
everyday run, more with a larger hypothesis profile."""


def few(examples: int) -> settings:
    """Return settings for so many examples in an everyday run."""
    return settings(
        max_examples=examples * _SCALE,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )


OTHER_ARGS = {
    f"{names.NODE_AFFINITY}-added": Recipe(
        PLUGINS[names.NODE_AFFINITY],
        {
            "addedAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
                        {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["a"]}]},
                    ]
                },
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 7,
                        "preference": {"matchExpressions": [{"key": "tier", "operator": "Exists"}]},
                    }
                ],
            }
        },
    ),
    f"{names.NODE_RESOURCES_FIT}-MostAllocated": Recipe(
        PLUGINS[names.NODE_RESOURCES_FIT],
        {
            "ignoredResourceGroups": ["example.com"],
            "scoringStrategy": {
                "type": "MostAllocated",
                "resources": [
                    {"name": "cpu", "weight": 3},
                    {"name": "example.com/gpu", "weight": 5},
                ],
            },
        },
    ),
    f"{names.NODE_RESOURCES_FIT}-RequestedToCapacityRatio": Recipe(
        PLUGINS[names.NODE_RESOURCES_FIT],
        {
            "scoringStrategy": {
                "type": "RequestedToCapacityRatio",
                "resources": [{"name": "memory", "weight": 2}, {"name": "cpu", "weight": 1}],
                "requestedToCapacityRatio": {
                    "shape": [
                        {"utilization": 0, "score": 10},
                        {"utilization": 70, "score": 3},
                        {"utilization": 100, "score": 5},
                    ]
                },
            },
        },
    ),
    f"{names.NODE_RESOURCES_BALANCED_ALLOCATION}-gpu": Recipe(
        PLUGINS[names.NODE_RESOURCES_BALANCED_ALLOCATION],
        {
            "resources": [
                {"name": "cpu", "weight": 1},
                {"name": "memory", "weight": 1},
                {"name": "example.com/gpu", "weight": 1},
            ]
        },
    ),
}

RECIPES = {**{name: Recipe(cls) for name, cls in PLUGINS.items()}, **OTHER_ARGS}


def of(kind: type[Plugin]) -> pytest.MarkDecorator:
    """Return the rows of all recipes whose plugin serves a point."""
    return pytest.mark.parametrize(
        "recipe",
        [
            pytest.param(recipe, id=name)
            for name, recipe in RECIPES.items()
            if issubclass(recipe.plugin, kind)
        ],
    )


def serving_nodes() -> pytest.MarkDecorator:
    """Return the rows of all recipes whose plugin looks at nodes."""
    return pytest.mark.parametrize(
        "recipe",
        [
            pytest.param(recipe, id=name)
            for name, recipe in RECIPES.items()
            if issubclass(recipe.plugin, (PreFilterPlugin, FilterPlugin, ScorePlugin))
        ],
    )


@pytest.mark.parametrize("name", PLUGINS)
def test_a_plugin_is_registered_under_its_own_name(name: str) -> None:
    assert PLUGINS[name].name == name


@of(Plugin)
def test_identity(recipe: Recipe) -> None:
    conformance.check_identity(recipe)


@of(Plugin)
def test_the_contract_is_written(recipe: Recipe) -> None:
    conformance.check_contract_is_written(recipe)


@of(Plugin)
def test_events_are_registered(recipe: Recipe) -> None:
    conformance.check_events(recipe)


@of(Plugin)
@given(pod=pending_pods())
@few(10)
def test_points_without_nodes_keep_their_interface(recipe: Recipe, pod: Pod) -> None:
    conformance.check_other_points(recipe, pod)


@serving_nodes()
@given(cluster=clusters(), pod=pending_pods(), data=st.data())
@few(25)
def test_a_cluster_gets_the_same_answers_in_every_form(
    recipe: Recipe, cluster: Cluster, pod: Pod, data: st.DataObject
) -> None:
    conformance.check_legal_statuses(recipe, cluster, pod)
    conformance.check_filter_twins(recipe, cluster, pod)
    conformance.check_score_twins(recipe, cluster, pod)
    conformance.check_same_again(recipe, cluster, pod)
    conformance.check_inputs_unchanged(recipe, cluster, pod)
    conformance.check_no_nodes(recipe, pod)
    conformance.check_judges_nodes_alone(recipe, cluster, pod)
    rows = data.draw(st.permutations(range(len(cluster.nodes))))
    conformance.check_some_rows(recipe, cluster, pod, rows[: data.draw(st.integers(0, 6))])


@serving_nodes()
@given(
    cluster=clusters(min_nodes=1),
    pods=st.one_of(
        joint_forms.pods_of_several_requests(), st.lists(pending_pods(), min_size=1, max_size=3)
    ),
    data=st.data(),
)
@few(15)
def test_several_pods_get_the_answers_that_each_gets(
    recipe: Recipe, cluster: Cluster, pods: list[Pod], data: st.DataObject
) -> None:
    rows = data.draw(st.permutations(range(len(cluster.nodes))))
    joint_forms.check_joint_forms(recipe, cluster, pods, rows[: data.draw(st.integers(0, 6))])


@pytest.mark.parametrize(
    "name", [names.NODE_RESOURCES_FIT, names.NODE_RESOURCES_BALANCED_ALLOCATION]
)
@given(cluster=clusters(min_nodes=1), pods=joint_forms.pods_of_several_requests())
@few(5)
def test_several_pods_are_judged_in_one_go(name: str, cluster: Cluster, pods: list[Pod]) -> None:
    assert joint_forms.check_joint_forms(RECIPES[name], cluster, pods, [0])


@serving_nodes()
@given(before=clusters(), after=clusters(), other=pending_pods(), pod=pending_pods())
@few(12)
def test_answers_do_not_depend_on_the_past(
    recipe: Recipe, before: Cluster, after: Cluster, other: Pod, pod: Pod
) -> None:
    conformance.check_nothing_leaks(recipe, [(before, other)], after, pod)
    conformance.check_follows_changes(recipe, before, after, [other, pod])


@of(PreFilterPlugin)
@given(cluster_and_newcomer=clusters_and_newcomers(), pod=pending_pods())
@few(15)
def test_a_what_if_is_as_good_as_the_real_thing(
    recipe: Recipe, cluster_and_newcomer: tuple[Cluster, Pod], pod: Pod
) -> None:
    cluster, newcomer = cluster_and_newcomer
    conformance.check_what_if(recipe, cluster, newcomer, pod)
