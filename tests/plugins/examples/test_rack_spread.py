"""RackSpread: racks with few pods of the same workload come first."""

from __future__ import annotations

import pytest

from plugins.examples.rack_spread import RackSpread
from tests.builders import node, pod
from tests.plugins.examples.asking import Asked

RACK = "topology.kubernetes.io/rack"
NAME = "app.kubernetes.io/name"


def racked(name):
    """Return a node whose rack is its first letter."""
    return node(name).label(RACK, name[0])


def web(name):
    return pod(name).label(NAME, "web")


@pytest.fixture
def asked():
    made = Asked(RackSpread, racked("a1"), racked("a2"), racked("b1"), racked("c1"))
    made.place(web("0").on("a1"), web("1").on("a1"), web("2").on("b1"))
    return made


def test_the_rack_with_the_fewest_comes_first(asked):
    assert asked.scores(web("new")) == {"a1": 0, "a2": 0, "b1": 50, "c1": 100}


def test_pods_on_nodes_that_cannot_do_count_for_their_rack(asked):
    assert asked.scores(web("new"), "a2", "b1") == {"a2": 0, "b1": 100}


def test_other_workloads_do_not_count(asked):
    asked.place(*(pod(f"x{n}").label(NAME, "other").on("c1") for n in range(5)))
    assert asked.scores(web("new"))["c1"] == 100


def test_other_namespaces_do_not_count(asked):
    foreign = [pod(f"x{n}", namespace="else").label(NAME, "web").on("c1") for n in range(5)]
    asked.place(*foreign)
    assert asked.scores(web("new"))["c1"] == 100


def test_a_pod_without_a_workload_goes_anywhere(asked):
    assert set(asked.scores(pod("new")).values()) == {100}


def test_a_node_in_no_rack_counts_as_the_fullest(asked):
    asked.add(node("lost"))
    assert asked.scores(web("new"))["lost"] == 0


def test_where_nobody_has_a_rack_all_are_equal():
    asked = Asked(RackSpread, node("a"), node("b"))
    asked.place(web("0").on("a"))
    assert asked.scores(web("new")) == {"a": 100, "b": 100}


FULL = "node(s) were in racks with enough pods of the workload"


def test_a_rack_takes_as_many_as_it_may():
    asked = Asked(RackSpread, racked("a1"), racked("a2"), racked("b1"), maxPerRack=2)
    asked.place(web("0").on("a1"), web("1").on("a2"), web("2").on("b1"))
    assert asked.refused(web("new")) == {"a1": FULL, "a2": FULL}


def test_a_node_in_no_rack_takes_none_where_there_is_a_limit():
    asked = Asked(RackSpread, racked("a1"), node("lost"), maxPerRack=2)
    assert asked.refused(web("new")) == {"lost": FULL}


def test_a_pod_without_a_workload_meets_no_limit():
    asked = Asked(RackSpread, racked("a1"), node("lost"), maxPerRack=1)
    assert asked.refused(pod("new")) == {}


def test_without_a_limit_no_rack_is_full(asked):
    assert asked.refused(web("new")) == {}


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_that_lets_nobody_in_is_named(limit):
    (problem,) = RackSpread.Args(max_per_rack=limit).problems()
    assert problem.path == "maxPerRack"


def test_rack_and_workload_are_what_the_arguments_say():
    asked = Asked(
        RackSpread,
        node("a").label("row", "1"),
        node("b").label("row", "2"),
        rackLabel="row",
        workloadLabel="team",
    )
    asked.place(pod("0").label("team", "x").on("a"))
    assert asked.scores(pod("new").label("team", "x")) == {"a": 0, "b": 100}


def test_a_workload_spreads_evenly_pod_by_pod():
    names = ["a1", "a2", "a3", "b1", "c1"]
    asked = Asked(RackSpread, *map(racked, names))
    where = []
    for number in range(6):
        scores = asked.scores(web(f"{number}"))
        best = max(names, key=scores.__getitem__)
        asked.place(web(f"{number}").on(best))
        where.append(best[0])
    assert sorted(where) == ["a", "a", "b", "b", "c", "c"]
