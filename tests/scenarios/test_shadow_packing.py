"""A policy that fills nodes up, in the shadow of the default one and then in its place."""

from __future__ import annotations

import pytest

from scheduler.profiles import ShadowOptions
from tests.scenarios import shadow_packing

pytestmark = pytest.mark.controlplane

NODES = 30
PODS = 160
COMPARED = 100


@pytest.fixture(scope="module")
def outcome(controlplane_binaries) -> shadow_packing.Outcome:
    return shadow_packing.run(NODES, PODS, ShadowOptions(COMPARED, budget=1.0))


def test_all_pods_are_bound_and_nothing_else_is_done(outcome):
    assert (outcome.bound, outcome.violations) == (PODS, [])


def test_as_many_decisions_are_compared_as_was_asked_for(outcome):
    assert (outcome.report.compared, outcome.report.failures) == (COMPARED, 0)


def test_filling_nodes_up_would_put_most_pods_elsewhere(outcome):
    assert outcome.report.changed_winners > outcome.report.both_placed / 2


def test_it_would_allow_the_same_nodes(outcome):
    assert (outcome.report.changed_feasibility, outcome.report.only_live) == (0, 0)


def test_the_plugin_that_makes_the_difference_is_named(outcome):
    samples = outcome.report.winner_samples
    assert any(each.decisive == "NodeResourcesFit" for each in samples)


def test_who_is_compared_is_named_with_the_generation(outcome):
    report = outcome.report
    assert (report.live, report.shadow) == ("default@1", "schedulingprofile/packing@1")


def test_once_it_decides_pods_go_to_few_nodes(outcome):
    assert outcome.first_nodes > 2 * outcome.second_nodes
