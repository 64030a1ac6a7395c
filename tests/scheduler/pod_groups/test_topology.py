"""Groups whose members belong into one topology domain: rows 36 to 38 of the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scheduler.pod_groups import Verdict
from tests.builders import pod
from tests.scheduler.pod_groups.groups import Cluster, nodes_of, rules
from tests.scheduler.pod_groups.test_planner import members, small

if TYPE_CHECKING:
    from cache.node_info import NodeInfo


def racks(*sizes: int, cpu: str = "1", zones: str = "") -> list[NodeInfo]:
    """Return a rack with so many nodes for each number: ``r0-0``, ``r0-1``, ``r1-0``."""
    made = []
    for rack, size in enumerate(sizes):
        for index in range(size):
            built = small(f"r{rack}-{index}", cpu=cpu).label("rack", f"r{rack}")
            made.append((built.label("zone", zones[rack]) if zones else built).info())
    return made


def racks_of(plan):
    return {name.split("-")[0] for name in nodes_of(plan).values()}


def test_row_36_the_rack_that_has_room_is_taken():
    plan = Cluster(racks(2, 3, 2)).plan(members(3, cpu="1"), rules(3, topology="rack"))
    assert (plan.verdict, racks_of(plan), plan.domain) == (Verdict.FITS, {"r1"}, "r1")


def test_row_36_of_those_with_room_the_one_that_is_left_with_the_least():
    plan = Cluster(racks(6, 4, 5)).plan(members(3, cpu="1"), rules(3, topology="rack"))
    assert racks_of(plan) == {"r1"}


def test_a_rack_for_more_members_is_better_than_a_tight_one():
    plan = Cluster(racks(3, 6, 4)).plan(members(4, cpu="1"), rules(3, topology="rack"))
    assert (racks_of(plan), len(plan.placed)) == ({"r2"}, 4)


def test_row_36_no_rack_has_room_though_all_together_do():
    plan = Cluster(racks(2, 3, 2)).plan(members(4, cpu="1"), rules(4, topology="rack"))
    assert plan.verdict is Verdict.DOES_NOT_FIT
    assert plan.status.message == (
        "no domain of 'rack' has room for 4 members, all of them together for up to 4; 'r1' comes "
        "closest: 3 of 4 members needed fit; the next one: 0/3 nodes are available: "
        "3 Insufficient cpu."
    )


def test_unlike_members_are_tried_in_one_rack_after_the_other():
    gang = [pod("a").request(cpu="4"), *members(2, cpu="3")]
    nodes = [
        small("r0-0", cpu="5").label("rack", "r0").info(),
        small("r0-1", cpu="5").label("rack", "r0").info(),
        small("r1-0", cpu="6").label("rack", "r1").info(),
        small("r1-1", cpu="4").label("rack", "r1").info(),
    ]
    plan = Cluster(nodes).plan(gang, rules(3, topology="rack"))
    assert racks_of(plan) == {"r1"}


def test_unlike_members_in_racks_that_are_all_too_small():
    gang = [pod("a").request(cpu="4"), *members(2, cpu="3")]
    plan = Cluster(racks(2, 2, cpu="5")).plan(gang, rules(3, topology="rack"))
    assert (plan.verdict, plan.fitting) == (Verdict.DOES_NOT_FIT, 2)


def test_row_37_nodes_without_the_label_are_left_out():
    nodes = [*racks(1), *(small(f"bare-{i}").info() for i in range(5))]
    plan = Cluster(nodes).plan(members(2, cpu="1"), rules(2, topology="rack"))
    assert plan.verdict is Verdict.DOES_NOT_FIT


def test_row_37_a_changed_label_is_seen_at_once():
    cluster = Cluster([*racks(1), small("bare").info()])
    group = rules(2, topology="rack")
    assert cluster.plan(members(2, cpu="1"), group).verdict is Verdict.DOES_NOT_FIT
    cluster.snapshot.put(small("bare").label("rack", "r0").info())
    assert cluster.plan(members(2, cpu="1"), group).verdict is Verdict.FITS


def test_row_38_preferred_the_tightest_that_fits():
    plan = Cluster(racks(5, 3, 4)).plan(members(3, cpu="1"), rules(3, preferred="rack"))
    assert (racks_of(plan), plan.preferred_domain, plan.domain) == ({"r1"}, "r1", "")


def test_row_38_preferred_but_no_rack_has_room():
    plan = Cluster(racks(2, 2)).plan(members(3, cpu="1"), rules(3, preferred="rack"))
    assert (plan.verdict, plan.preferred_domain) == (Verdict.FITS, "")


def test_row_38_members_beyond_the_minimum_may_leave_the_preferred_rack():
    plan = Cluster(racks(2, 2)).plan(members(3, cpu="1"), rules(2, preferred="rack"))
    assert (len(plan.placed), racks_of(plan)) == (3, {"r0", "r1"})


@pytest.mark.parametrize(
    ("sizes", "expected", "preferred"),
    [
        pytest.param((2, 2, 3, 3), {"r2"}, "r2", id="a narrow one fits"),
        pytest.param((2, 1, 1, 2), {"r0", "r1"}, "", id="only a wide one fits"),
    ],
)
def test_row_38_wide_required_and_narrow_preferred(sizes, expected, preferred):
    nodes = racks(*sizes, zones="aabc")
    group = rules(3, topology="zone", preferred="rack")
    plan = Cluster(nodes).plan(members(3, cpu="1"), group)
    if preferred:
        assert len(racks_of(plan)) == 1
        assert plan.preferred_domain in {"r2", "r3"}
    else:
        assert (racks_of(plan), plan.domain, plan.preferred_domain) == (expected, "a", preferred)


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("rock", "topology key 'rock' is on no node"),
        ("not a key", "topology key 'not a key' is not a valid label key"),
        ("x" * 300, "topology key " + repr("x" * 77 + "...") + " is not a valid label key"),
    ],
)
def test_a_key_that_cannot_be_one_is_the_reason(key, reason):
    plan = Cluster(racks(3)).plan(members(2), rules(2, topology=key))
    assert (plan.verdict, plan.status.message) == (Verdict.DOES_NOT_FIT, reason)


def test_a_preferred_key_that_no_node_has_prefers_nothing():
    plan = Cluster(racks(3)).plan(members(2), rules(2, preferred="rock"))
    assert plan.verdict is Verdict.FITS


def test_ties_are_broken_by_the_seed():
    chosen = set()
    for seed in range(20):
        cluster = Cluster(racks(2, 2, 2), seed)
        plan = cluster.plan(members(2, cpu="1"), rules(2, topology="rack"))
        again = Cluster(racks(2, 2, 2), seed).plan(members(2, cpu="1"), rules(2, topology="rack"))
        assert racks_of(plan) == racks_of(again)
        chosen |= racks_of(plan)
    assert chosen == {"r0", "r1", "r2"}


# --- one more member --------------------------------------------------------------------------


def names(cluster, among):
    return {cluster.snapshot.columns.node_infos[row].name for row in among.rows}


@pytest.mark.parametrize(
    ("topology", "bound", "expected"),
    [
        pytest.param("", ["r0-0"], None, id="no topology"),
        pytest.param("rack", ["r1-0"], {"r1-0", "r1-1"}, id="bound members fix it"),
        pytest.param("rack", [], {"r0-0", "r1-0", "r1-1"}, id="nobody fixes it"),
        pytest.param("rack", ["gone", "r1-0"], {"r1-0", "r1-1"}, id="a node that is gone"),
        pytest.param("rack", ["bare", "r0-0"], {"r0-0"}, id="a node without the label"),
    ],
)
def test_where_one_more_member_may_go(topology, bound, expected):
    cluster = Cluster([*racks(1, 2), small("bare").info()])
    domain = cluster.planner.domain_of(rules(2, topology=topology), bound)
    assert domain.reason == ""
    assert (None if domain.among is None else names(cluster, domain.among)) == expected


def test_bound_members_in_two_domains_are_a_reason_that_names_them():
    cluster = Cluster(racks(1, 2, 1))
    domain = cluster.planner.domain_of(rules(2, topology="rack"), ["r2-0", "r0-0"])
    assert domain.reason == "the members that have nodes are in 2 domains of 'rack': 'r0', 'r2'"


def test_one_more_member_prefers_the_domain_of_the_others():
    cluster = Cluster(racks(1, 2))
    domain = cluster.planner.domain_of(rules(2, preferred="rack"), ["r1-1"])
    assert domain.among is None
    assert names(cluster, domain.preferred) == {"r1-0", "r1-1"}
