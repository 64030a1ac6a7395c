from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from scheduler.ui.node_map import (
    MAX_GROUPS,
    NO_LABEL,
    groups_of,
    natural,
    node_table,
)
from tests.builders import node, pod

ZONE = "topology.kubernetes.io/zone"


def test_nodes_are_grouped_by_a_label() -> None:
    infos = [
        node("n1").capacity(cpu="4").label(ZONE, "a").info(pod("p").request(cpu="1")),
        node("n2").capacity(cpu="4").label(ZONE, "b").info(),
        node("n3").capacity(cpu="4").info(),
    ]
    groups = groups_of(node_table(infos, ()), ZONE, "cpu")
    assert [(group.name, group.requested, group.allocatable) for group in groups] == [
        (NO_LABEL, 0, 4000),
        ("a", 1000, 4000),
        ("b", 0, 4000),
    ]


def test_a_label_with_a_value_for_each_node_makes_a_bounded_number_of_groups() -> None:
    infos = [node(f"n{i}").capacity(cpu="1").label(ZONE, f"z{i}").info() for i in range(500)]
    groups = groups_of(node_table(infos, ()), ZONE, "cpu")
    assert len(groups) == MAX_GROUPS + 1
    assert sum(len(group.indices) for group in groups) == 500


def test_names_are_in_natural_order() -> None:
    assert sorted(["n10", "n2", "n1"], key=natural) == ["n1", "n2", "n10"]


@settings(max_examples=20)
@given(st.lists(st.text(max_size=8), max_size=8))
@example(["²", "1"])
def test_any_names_can_be_ordered(names: list[str]) -> None:
    assert sorted(names, key=natural) == sorted(names, key=natural)
