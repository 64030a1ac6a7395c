"""TightestFit: where the pod leaves least."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings

from plugins.authoring import adapt
from plugins.examples.tightest_fit import TightestFit
from tests.builders import node, pod
from tests.plugins import conformance
from tests.plugins.conformance import Recipe, clusters, pending_pods
from tests.plugins.examples.asking import Asked


def sized(name, cpu, memory="16Gi"):
    return node(name).capacity(cpu=cpu, memory=memory)


def test_the_node_with_least_left_comes_first():
    asked = Asked(TightestFit, sized("small", "2"), sized("medium", "5"), sized("large", "8"))
    assert asked.scores(pod().request(cpu="1")) == {"small": 100, "medium": 50, "large": 0}


def test_what_others_have_is_not_left():
    asked = Asked(TightestFit, sized("used", "8"), sized("free", "8"))
    asked.place(pod("there").request(cpu="4").on("used"))
    assert asked.scores(pod().request(cpu="1")) == {"used": 100, "free": 0}


def test_a_resource_with_more_weight_decides():
    nodes = (sized("little-cpu", "1", "16Gi"), sized("little-memory", "8", "2Gi"))
    for resource, best in (("cpu", "little-cpu"), ("memory", "little-memory")):
        weights = {"cpu": 1.0, "memory": 1.0, resource: 9.0}
        assert Asked(TightestFit, *nodes, resources=weights).scores(pod())[best] == 100


def test_a_resource_that_no_node_has_changes_nothing():
    nodes = (sized("small", "2"), sized("large", "8"))
    weights = {"cpu": 1.0, "example.com/gpu": 5.0}
    assert Asked(TightestFit, *nodes, resources=weights).scores(pod()) == {"small": 100, "large": 0}


@pytest.mark.parametrize(
    ("resources", "path"),
    [
        pytest.param({}, "resources", id="none"),
        pytest.param({"cpu": 0.0}, "resources[cpu]", id="no weight"),
        pytest.param({"cpu": 1.0, "memory": -1.0}, "resources[memory]", id="negative"),
    ],
)
def test_arguments_that_make_no_sense_are_named(resources, path):
    (problem,) = msgspec.convert({"resources": resources}, TightestFit.Args).problems()
    assert problem.path == path


@given(cluster=clusters(), newcomer=pending_pods())
@settings(max_examples=12)
def test_a_cluster_gets_the_same_answers_in_every_form(cluster, newcomer):
    recipe = Recipe(adapt(TightestFit), {"resources": {"cpu": 1, "memory": 2}})
    conformance.check_score_twins(recipe, cluster, newcomer)
    conformance.check_same_again(recipe, cluster, newcomer)
    conformance.check_inputs_unchanged(recipe, cluster, newcomer)
    conformance.check_no_nodes(recipe, newcomer)
