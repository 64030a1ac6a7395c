from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cache.node_tree import NodeTree, zone_key
from tests import strategies

if TYPE_CHECKING:
    from collections.abc import Mapping

BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"


def in_zone(zone: str) -> dict[str, str]:
    return {strategies.REGION: "r", strategies.ZONE: zone}


def tree_of(*places: str) -> NodeTree:
    """A tree of nodes written ``zone/name``."""
    tree = NodeTree()
    for place in places:
        zone, name = place.split("/")
        tree.add_node(name, in_zone(zone))
    return tree


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param({}, "", id="no labels"),
        pytest.param({strategies.REGION: "", strategies.ZONE: ""}, "", id="empty labels"),
        pytest.param({strategies.REGION: "r", strategies.ZONE: "z"}, "r:\0:z", id="both"),
        pytest.param({strategies.REGION: "r"}, "r:\0:", id="only the region"),
        pytest.param({strategies.ZONE: "z"}, ":\0:z", id="only the zone"),
        pytest.param({BETA_REGION: "r", BETA_ZONE: "z"}, "r:\0:z", id="deprecated labels"),
        pytest.param(
            {strategies.REGION: "r", strategies.ZONE: "z", BETA_ZONE: "old"},
            "r:\0:old",
            id="the deprecated label wins",
        ),
        pytest.param({strategies.ZONE: "z", BETA_ZONE: ""}, "", id="even when it is empty"),
    ],
)
def test_a_zone_is_known_by_region_and_zone(labels: Mapping[str, str], expected: str) -> None:
    assert zone_key(labels) == expected


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        pytest.param([], [], id="empty"),
        pytest.param(["a/1", "a/2", "a/3"], ["1", "2", "3"], id="one zone"),
        pytest.param(["a/1", "b/2", "c/3"], ["1", "2", "3"], id="three zones"),
        pytest.param(["a/1", "a/2", "b/3", "b/4"], ["1", "3", "2", "4"], id="round robin"),
        pytest.param(
            ["a/1", "b/2", "b/3", "b/4", "a/5"], ["1", "2", "5", "3", "4"], id="uneven zones"
        ),
    ],
)
def test_names_come_round_robin_across_zones(places: list[str], expected: list[str]) -> None:
    assert tree_of(*places).names() == expected


def test_an_empty_zone_is_dropped_with_its_last_node() -> None:
    tree = tree_of("a/1", "b/2")
    tree.remove_node("1")
    assert [zone.key for zone in tree._zones] == [zone_key(in_zone("b"))]
    assert tree.num_nodes == 1


def test_a_node_leaves_the_zone_it_is_in() -> None:
    tree = tree_of("a/1", "b/2")
    tree.remove_node("1")
    assert tree.names() == ["2"]
    tree.remove_node("2")
    assert tree.names() == []


def test_a_node_whose_zone_changes_is_moved_to_the_end_of_the_other() -> None:
    tree = tree_of("a/1", "b/2", "b/3")
    tree.update_node("1", in_zone("b"))
    assert tree.names() == ["2", "3", "1"]


def test_a_node_whose_zone_stays_keeps_its_place() -> None:
    tree = tree_of("a/1", "a/2")
    tree.update_node("1", {**in_zone("a"), "more": "labels"})
    assert tree.names() == ["1", "2"]


def test_an_update_of_an_unknown_node_adds_it() -> None:
    tree = tree_of("a/1")
    tree.update_node("2", in_zone("a"))
    assert tree.names() == ["1", "2"]
    assert "2" in tree._zone_of


def test_a_node_added_again_is_not_doubled() -> None:
    tree = tree_of("a/1", "a/1", "b/1", "a/2")
    assert tree.names() == ["1", "2"]
    assert tree.num_nodes == 2


def test_removing_an_unknown_node_is_an_error() -> None:
    with pytest.raises(KeyError, match=r"'9' is not in the node tree"):
        tree_of("a/1").remove_node("9")


def take(tree: NodeTree, count: int) -> list[str]:
    return [tree.next() for _ in range(count)]


def test_next_hands_out_every_node_once_before_any_comes_again() -> None:
    tree = tree_of("a/1", "a/2", "a/3", "b/4")
    assert take(tree, 8) == ["1", "4", "2", "3"] * 2


def test_next_of_an_empty_tree_is_an_error() -> None:
    with pytest.raises(LookupError, match="empty"):
        NodeTree().next()


def test_reset_starts_a_new_round() -> None:
    tree = tree_of("a/1", "a/2", "b/3")
    take(tree, 2)
    tree.reset_exhausted()
    assert take(tree, 3) == ["1", "3", "2"]


def test_a_node_that_joins_an_exhausted_zone_still_comes_in_the_round() -> None:
    tree = tree_of("a/1", "b/2", "b/3", "b/4")
    assert take(tree, 3) == ["1", "2", "3"]
    tree.add_node("5", in_zone("a"))
    assert take(tree, 2) == ["5", "4"]


def test_a_node_that_leaves_in_the_middle_of_a_round_makes_none_be_skipped() -> None:
    tree = tree_of("a/1", "a/2", "a/3")
    take(tree, 2)
    tree.remove_node("1")
    assert tree.next() == "3"


def test_a_zone_that_goes_in_the_middle_of_a_round_makes_none_be_skipped() -> None:
    tree = tree_of("a/1", "b/2", "c/3")
    take(tree, 1)
    tree.remove_node("1")
    assert take(tree, 2) == ["2", "3"]


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["add", "remove", "update", "next"]),
        strategies.node_names(),
        strategies.zone_labels(),
    ),
    max_size=30,
)


@settings(deadline=None)
@given(CHANGES)
def test_the_tree_agrees_with_a_list_of_zones(
    changes: list[tuple[str, str, Mapping[str, str]]],
) -> None:
    tree = NodeTree()
    zones: dict[str, list[str]] = {}
    for action, name, labels in changes:
        zone = next((zone for zone, names in zones.items() if name in names), None)
        if action == "next":
            if zones:
                assert tree.next() in tree._zone_of
            continue
        if action == "remove":
            if zone is None:
                with pytest.raises(KeyError):
                    tree.remove_node(name)
                continue
            tree.remove_node(name)
        elif action == "add":
            tree.add_node(name, labels)
        else:
            tree.update_node(name, labels)
        # The model: a dict of lists in order of arrival, without any cleverness.
        if zone is not None and (action == "remove" or zone != zone_key(labels)):
            zones[zone].remove(name)
            if not zones[zone]:
                del zones[zone]
            zone = None
        if zone is None and action != "remove":
            zones.setdefault(zone_key(labels), []).append(name)
        assert [zone.key for zone in tree._zones] == list(zones)
        assert tree.names() == [
            each for row in zip_longest(*zones.values()) for each in row if each is not None
        ]
        assert tree.num_nodes == sum(map(len, zones.values()))
    tree.reset_exhausted()
    assert take(tree, tree.num_nodes) == tree.names()
