"""Scenarios of section 5 of the reference on pod groups; the numbers are its rows."""

from __future__ import annotations

import pytest

from plugins.framework.cycle_state import CycleState
from plugins.framework.status import Code
from scheduler.pod_groups import Verdict
from tests.builders import node, pod
from tests.scheduler.pod_groups.groups import Cluster, nodes_of, rules


def members(count, *, name="m", **requests):
    base = pod("x").request(**requests)
    return [
        pod(f"{name}{index}").label("app", name).request(**requests) for index in range(count)
    ] or [base]


def small(name, cpu="1", **more):
    return node(name).capacity(cpu=cpu, memory="16Gi", pods="110", **more)


def test_a_gang_that_fits_is_placed_whole():
    plan = Cluster([small(f"n{i}").info() for i in range(3)]).plan(members(3, cpu="1"))
    assert (plan.verdict, sorted(nodes_of(plan).values())) == (Verdict.FITS, ["n0", "n1", "n2"])
    assert plan.counted == plan.fitting == 3


def test_row_4_the_group_says_how_many_fit_and_what_the_next_one_lacks():
    cluster = Cluster([small(f"n{i}").info() for i in range(3)])
    plan = cluster.plan(members(4, cpu="1"))
    assert plan.verdict is Verdict.DOES_NOT_FIT
    assert plan.placed == ()
    assert plan.status.message == (
        "3 of 4 members needed fit; the next one: 0/3 nodes are available: 3 Insufficient cpu."
    )


def test_row_5_members_beyond_the_minimum_are_placed_as_far_as_they_fit():
    plan = Cluster([small(f"n{i}").info() for i in range(4)]).plan(members(5, cpu="1"), rules(3))
    assert (plan.verdict, len(plan.placed), len(plan.refused)) == (Verdict.FITS, 4, 1)


def test_row_12_min_resources_beyond_the_cluster_are_refused_with_both_amounts():
    cluster = Cluster([small("n0", cpu="2").info()])
    plan = cluster.plan(members(1, cpu="1"), rules(1, least={"cpu": 2500, "memory": 1 << 30}))
    assert plan.verdict is Verdict.DOES_NOT_FIT
    assert plan.status.message == (
        "minResources are beyond the cluster: 2500m of cpu, all nodes have 2"
    )


def test_min_resources_within_the_cluster_count_what_is_in_use_as_well():
    busy = small("n0", cpu="2").info(pod("old").request(cpu="1"))
    plan = Cluster([busy]).plan(members(1, cpu="1"), rules(1, least={"cpu": 2000}))
    assert plan.verdict is Verdict.FITS


@pytest.mark.parametrize("order", [1, -1], ids=["created in order", "created in reverse"])
def test_row_16_members_that_want_each_other_in_one_zone(order):
    zones = [small(f"a{i}").zone("a").info() for i in range(2)]
    zones += [small(f"b{i}").zone("b").info() for i in range(3)]
    zone = "topology.kubernetes.io/zone"
    gang = [each.pod_affinity(zone, app="m") for each in members(3, cpu="1")][::order]
    plan = Cluster(zones).plan(gang)
    assert sorted(nodes_of(plan).values()) == ["b0", "b1", "b2"]


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_row_16_only_one_zone_has_room_and_it_is_not_the_most_attractive(name):
    zone = "topology.kubernetes.io/zone"
    nodes = [
        small(f"{z}{i}", cpu="1" if z == name else "2").zone(z).info()
        for z in "abc"
        for i in range(30 if z == name else 10)
    ]
    gang = [each.pod_affinity(zone, app="m") for each in members(25, cpu="1")]
    plan = Cluster(nodes, search_steps=0).plan(gang)
    assert {node_name[0] for node_name in nodes_of(plan).values()} == {name}


def test_row_17_members_that_keep_apart():
    gang = [each.pod_anti_affinity("kubernetes.io/hostname", app="m") for each in members(3)]
    nodes = [small(f"n{i}").label("kubernetes.io/hostname", f"n{i}").info() for i in range(3)]
    assert sorted(nodes_of(Cluster(nodes).plan(gang)).values()) == ["n0", "n1", "n2"]


def test_row_17_members_that_keep_apart_and_are_too_many():
    gang = [each.pod_anti_affinity("kubernetes.io/hostname", app="m") for each in members(4)]
    nodes = [small(f"n{i}").label("kubernetes.io/hostname", f"n{i}").info() for i in range(3)]
    plan = Cluster(nodes).plan(gang)
    assert (plan.verdict, plan.fitting) == (Verdict.DOES_NOT_FIT, 3)


def test_row_17_it_is_known_without_a_search_that_many_do_not_fit_apart():
    gang = [each.pod_anti_affinity("rack", app="m") for each in members(30)]
    nodes = [small(f"n{i}").label("rack", f"r{i % 29}").info() for i in range(100)]
    plan = Cluster(nodes, search_steps=0).plan(gang)
    assert (plan.verdict, plan.fitting) == (Verdict.DOES_NOT_FIT, 29)


def test_row_17_members_that_spread_over_zones():
    zone = "topology.kubernetes.io/zone"
    gang = [each.spread(zone, app="m") for each in members(4, cpu="1")]
    nodes = [small(f"{z}{i}").zone(z).info() for z in "ab" for i in range(3)]
    assert sorted(name[0] for name in nodes_of(Cluster(nodes).plan(gang)).values()) == list("aabb")


def test_row_18_affinity_of_the_first_that_only_a_later_one_satisfies():
    zone = "topology.kubernetes.io/zone"
    first = pod("worker").request(cpu="2").pod_affinity(zone, app="driver")
    second = pod("driver").label("app", "driver").request(cpu="1")
    plan = Cluster([small("n0", cpu="4").zone("a").info()]).plan([first, second])
    assert plan.verdict is Verdict.FITS


def test_row_19_one_large_member_and_older_small_ones():
    gang = [*members(8, cpu="1"), pod("large").request(cpu="8")]
    plan = Cluster([small("n0", cpu="8").info(), small("n1", cpu="8").info()]).plan(gang)
    assert plan.verdict is Verdict.FITS


def test_members_that_differ_in_labels_alone_of_which_one_is_unwanted():
    apart = pod("old").pod_anti_affinity("kubernetes.io/hostname", app="k")
    wanting = small("n0").label("kubernetes.io/hostname", "n0").info(apart)
    one_slot = node("n1").capacity(cpu="1", memory="1Gi", pods="1")
    nodes = [wanting, one_slot.label("kubernetes.io/hostname", "n1").info()]
    plan = Cluster(nodes, seed=3).plan([*members(2), pod("k").label("app", "k")])
    assert nodes_of(plan) == {"m0": "n0", "m1": "n0", "k": "n1"}


def test_sizes_that_only_the_tightest_node_fits():
    gang = [pod("a").request(cpu="4"), *members(2, cpu="3")]
    plan = Cluster([small("n0", cpu="6").info(), small("n1", cpu="4").info()]).plan(gang)
    assert nodes_of(plan) == {"a": "n1", "m0": "n0", "m1": "n0"}


def test_many_sizes_that_only_the_tightest_nodes_fit():
    gang = [*members(20, name="a", cpu="9"), *members(40, name="b", cpu="5")]
    nodes = [small(f"n{i}", cpu="10" if i % 2 else "9").info() for i in range(40)]
    plan = Cluster(nodes, search_steps=0).plan(gang)
    assert (plan.verdict, plan.counted) == (Verdict.FITS, 60)


def test_a_minimum_beyond_the_members():
    plan = Cluster([small("n0").info()]).plan(members(2), rules((1 << 31) - 1))
    assert (plan.verdict, plan.status.message) == (
        Verdict.DOES_NOT_FIT,
        "2 of 2147483647 members needed are known",
    )


def test_the_minimum_of_small_members_where_a_large_one_takes_their_room():
    gang = [pod("a").request(cpu="4"), *members(4, cpu="1")]
    plan = Cluster([small("n0", cpu="4").info()]).plan(gang, rules(4))
    assert sorted(nodes_of(plan)) == ["m0", "m1", "m2", "m3"]


@pytest.mark.parametrize(
    "gang",
    [
        members(5, cpu="1"),
        [*members(4, cpu="1"), pod("p").host_port(80), pod("q").host_port(80)],
        [each.pod_anti_affinity("zone", app="m") for each in members(3)],
    ],
    ids=["room", "ports", "terms"],
)
def test_row_23_a_refusal_leaves_nothing_behind(gang):
    cluster = Cluster([small(f"n{i}", cpu="2").label("zone", "z").info() for i in range(2)])
    before = cluster.facts()
    requested = cluster.snapshot.columns.requested.copy()
    plan = cluster.plan([*gang, pod("giant").request(cpu="64")])
    assert plan.verdict is Verdict.DOES_NOT_FIT
    assert cluster.facts() == before
    assert (cluster.snapshot.columns.requested == requested).all()


def test_equal_refusals_have_equal_texts():
    cluster = Cluster([small(f"n{i}", cpu="2").zone("ab"[i % 2]).info() for i in range(12)])
    zone = "topology.kubernetes.io/zone"
    gang = [*members(9, cpu="1"), *members(9, name="k", cpu="1500m")]
    gang += [each.pod_affinity(zone, app="l") for each in members(3, name="l", cpu="700m")]
    plans = []
    for index in range(8):
        plans.append(cluster.plan(gang))
        for member in gang[:index]:
            cluster.cycle.decide(cluster.profile, CycleState(), member.info())
    assert len({(plan.status.message, plan.fitting) for plan in plans}) == 1


def test_a_cluster_without_nodes():
    plan = Cluster([]).plan(members(2))
    assert (plan.verdict, plan.status.code) == (Verdict.DOES_NOT_FIT, Code.UNSCHEDULABLE)


def test_preferences_among_members_count_from_the_first_one_on():
    nodes = [small(f"n{i}", cpu="8").label("host", f"n{i}").info() for i in range(4)]
    gang = [each.prefers_pods(100, "host", app="m") for each in members(4, cpu="1")]
    assert len(set(nodes_of(Cluster(nodes).plan(gang)).values())) == 1
