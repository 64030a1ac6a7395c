"""The examples through the checks that every plugin has to pass."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plugins.authoring import adapt
from plugins.examples.headroom import Headroom
from plugins.examples.load_aware import LoadAware
from plugins.examples.node_cost import NodeCost
from plugins.examples.rack_spread import RackSpread
from plugins.examples.shared_node_reserve import SharedNodeReserve
from tests.plugins import conformance
from tests.plugins.conformance import Cluster, Recipe, clusters, pending_pods
from tests.plugins.examples.asking import Measured

SPREAD = {"rackLabel": "tier", "workloadLabel": "app"}
KEPT = {"label": "app", "value": "a", "share": {"cpu": 0.3, "memory": 1.0, "example.com/gpu": 0}}


def measured() -> Measured:
    return Measured({f"node-{index}": share for index, share in enumerate([0.0, 0.3, 0.5, 1.2])})


ROWS = {
    "RackSpread": Recipe(adapt(RackSpread), SPREAD),
    "RackSpread-limit": Recipe(adapt(RackSpread), {**SPREAD, "maxPerRack": 1}),
    "NodeCost": Recipe(adapt(NodeCost), {"label": "tier"}),
    "NodeCost-cpu": Recipe(adapt(NodeCost), {"label": "tier", "per": "cpu", "unpriced": 0.25}),
    "NodeCost-memory": Recipe(adapt(NodeCost), {"label": "tier", "per": "memory"}),
    "Headroom": Recipe(adapt(Headroom), KEPT),
    "Headroom-some-nodes": Recipe(adapt(Headroom), {**KEPT, "nodes": {"tier": "1"}}),
    "SharedNodeReserve": Recipe(adapt(SharedNodeReserve), {"share": {"cpu": 0.3}, "pods": 1}),
    "LoadAware-nothing-measured": Recipe(adapt(LoadAware), {}),
    "LoadAware": Recipe(adapt(LoadAware), {"target": 0.5, "usageOfRequest": 0.7}, measured),
}
of_examples = pytest.mark.parametrize(
    "recipe", [pytest.param(recipe, id=name) for name, recipe in ROWS.items()]
)
followers = pytest.mark.parametrize(
    "recipe",
    # What came after a measurement is part of what is asked, so it does depend on the past.
    [pytest.param(recipe, id=name) for name, recipe in ROWS.items() if name != "LoadAware"],
)
few = settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])


@of_examples
@given(cluster=clusters(), pod=pending_pods(), data=st.data())
@few
def test_a_cluster_gets_the_same_answers_in_every_form(
    recipe: Recipe, cluster: Cluster, pod: conformance.Pod, data: st.DataObject
) -> None:
    conformance.check_legal_statuses(recipe, cluster, pod)
    conformance.check_filter_twins(recipe, cluster, pod)
    conformance.check_score_twins(recipe, cluster, pod)
    conformance.check_same_again(recipe, cluster, pod)
    conformance.check_inputs_unchanged(recipe, cluster, pod)
    conformance.check_no_nodes(recipe, pod)
    rows = data.draw(st.permutations(range(len(cluster.nodes))))
    conformance.check_some_rows(recipe, cluster, pod, rows[: data.draw(st.integers(0, 6))])


@followers
@given(before=clusters(), after=clusters(), other=pending_pods(), pod=pending_pods())
@few
def test_answers_do_not_depend_on_the_past(recipe, before, after, other, pod):
    conformance.check_nothing_leaks(recipe, [(before, other)], after, pod)
    conformance.check_follows_changes(recipe, before, after, [other, pod])
