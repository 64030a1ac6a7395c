"""Users' classes of every form, once adapted, keep to what every plugin keeps to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plugins.authoring import adapt
from tests.plugins import conformance
from tests.plugins.authoring import user_classes
from tests.plugins.conformance import Recipe, clusters, pending_pods

if TYPE_CHECKING:
    from cache.objects import Pod
    from tests.plugins.conformance import Cluster

RECIPES = [pytest.param(Recipe(adapt(cls)), id=cls.__name__) for cls in user_classes.ALL]

some = settings(
    max_examples=max(6, settings().max_examples // 16),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


@pytest.mark.parametrize("recipe", RECIPES)
@given(cluster=clusters(), pod=pending_pods(), data=st.data())
@some
def test_a_cluster_gets_the_same_answers_in_every_form(
    recipe: Recipe, cluster: Cluster, pod: Pod, data: st.DataObject
) -> None:
    conformance.check_legal_statuses(recipe, cluster, pod)
    conformance.check_filter_twins(recipe, cluster, pod)
    conformance.check_score_twins(recipe, cluster, pod)
    conformance.check_same_again(recipe, cluster, pod)
    conformance.check_inputs_unchanged(recipe, cluster, pod)
    conformance.check_no_nodes(recipe, pod)
    rows = data.draw(st.permutations(range(len(cluster.nodes))))
    conformance.check_some_rows(recipe, cluster, pod, rows[: data.draw(st.integers(0, 6))])


@pytest.mark.parametrize("recipe", RECIPES)
@given(before=clusters(), after=clusters(), other=pending_pods(), pod=pending_pods())
@some
def test_answers_do_not_depend_on_the_past(
    recipe: Recipe, before: Cluster, after: Cluster, other: Pod, pod: Pod
) -> None:
    conformance.check_nothing_leaks(recipe, [(before, other)], after, pod)
    conformance.check_follows_changes(recipe, before, after, [other, pod])
