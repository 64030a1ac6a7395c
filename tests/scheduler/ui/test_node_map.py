from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scheduler.ui.node_map import (
    MAX_GROUPS,
    NO_LABEL,
    fragmentation,
    groups_of,
    natural,
    node_table,
)
from tests.builders import node, pod

ZONE = "topology.kubernetes.io/zone"


def column(*amounts: int) -> np.ndarray:
    return np.array(amounts, dtype=np.int64)


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        pytest.param([({"cpu": 1000}, 1)], [0, 0], id="what fits uses all"),
        pytest.param([({"cpu": 3000}, 1)], [2000, 0], id="what does not fit uses nothing"),
        pytest.param([({"cpu": 3000}, 1), ({"cpu": 1000}, 3)], [500, 0], id="by their number"),
        pytest.param([({"gpu": 1}, 5)], [0, 0], id="who does not ask does not count"),
        pytest.param([({"cpu": 1000, "gpu": 1}, 1)], [2000, 4000], id="another resource lacks"),
        pytest.param([], [0, 0], id="no requests"),
    ],
)
def test_what_the_usual_requests_cannot_use_is_fragmented(
    shapes: list[tuple[dict[str, int], int]], expected: list[int]
) -> None:
    free = {"cpu": column(2000, 4000), "pods": column(10, 10)}
    assert fragmentation(free, shapes)["cpu"].tolist() == expected


def test_a_node_without_room_for_another_pod_is_fragmented() -> None:
    free = {"cpu": column(2000), "pods": column(0)}
    assert fragmentation(free, [({"cpu": 1000}, 1)])["cpu"].tolist() == [2000]


@given(
    st.lists(st.integers(0, 10**15), min_size=1, max_size=5),
    st.lists(st.tuples(st.integers(1, 10**15), st.integers(1, 1000)), max_size=5),
)
def test_no_more_is_fragmented_than_is_free(
    amounts: list[int], wishes: list[tuple[int, int]]
) -> None:
    free = {"cpu": column(*amounts), "pods": column(*[1 for _ in amounts])}
    found = fragmentation(free, [({"cpu": amount}, count) for amount, count in wishes])["cpu"]
    assert (found >= 0).all()
    assert (found <= free["cpu"] * (1 + 1e-9)).all()


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
