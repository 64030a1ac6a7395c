from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.house.layering import back_edges, floors_of, knots_of, without

if TYPE_CHECKING:
    from tests.house.imports import Graph

NODES = "abcdefg"
GRAPHS = st.fixed_dictionaries({node: st.sets(st.sampled_from(NODES)) for node in NODES}).map(
    lambda graph: {node: others - {node} for node, others in graph.items()}
)


def graph_of(text: str) -> Graph:
    """Return a graph of edges as ``ab bc``."""
    graph: Graph = {node: set() for node in text if node != " "}
    for start, end in text.split():
        graph[start].add(end)
    return graph


def alike(start: str, end: str) -> int:
    return 1


def reachable(graph: Graph, start: str) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        new = graph[waiting.pop()] - found
        found |= new
        waiting += new
    return found


@pytest.mark.parametrize(
    ("edges", "knots"),
    [
        pytest.param("ab bc ac", [], id="none"),
        pytest.param("ab ba", ["ab"], id="two"),
        pytest.param("ab bc ca cd de", ["abc"], id="a circle with a tail"),
        pytest.param("ab ba bc cd de ec", ["cde", "ab"], id="the larger one first"),
        pytest.param("ab bc ca cd dc", ["abcd"], id="two circles that touch"),
    ],
)
def test_knots(edges: str, knots: list[str]) -> None:
    assert knots_of(graph_of(edges)) == [list(knot) for knot in knots]


@given(GRAPHS)
def test_two_nodes_are_in_one_knot_when_each_reaches_the_other(graph: Graph) -> None:
    together = {(one, two) for knot in knots_of(graph) for one in knot for two in knot}
    assert together == {
        (one, two)
        for one in graph
        for two in graph
        if two in reachable(graph, one) and one in reachable(graph, two)
    }


def test_the_lightest_edge_of_a_circle_runs_back() -> None:
    weights = {("a", "b"): 3, ("b", "c"): 2, ("c", "a"): 9}
    assert back_edges(graph_of("ab bc ca"), lambda *edge: weights[edge]) == [("b", "c")]


def test_one_edge_that_many_circles_share_runs_back() -> None:
    assert back_edges(graph_of("ab bc cz bd dz be ez za"), alike) in ([("z", "a")], [("a", "b")])


@given(GRAPHS)
def test_without_the_edges_that_run_back_there_is_no_knot_and_none_can_be_spared(
    graph: Graph,
) -> None:
    back = back_edges(graph, alike)
    assert not knots_of(without(graph, back))
    for edge in back:
        assert knots_of(without(graph, [each for each in back if each != edge]))


@pytest.mark.parametrize(
    ("edges", "floors"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param("ab bc ac", ["c", "b", "a"], id="a chain with a shortcut"),
        pytest.param("ac bc", ["c", "ab"], id="side by side"),
        pytest.param("ab cd de", ["be", "ad", "c"], id="as low as possible"),
    ],
)
def test_floors(edges: str, floors: list[str]) -> None:
    assert floors_of(graph_of(edges)) == [list(floor) for floor in floors]


@given(GRAPHS)
def test_every_edge_leads_to_a_lower_floor(graph: Graph) -> None:
    forth = without(graph, back_edges(graph, alike))
    floor = {node: height for height, nodes in enumerate(floors_of(forth)) for node in nodes}
    assert set(floor) == set(graph)
    for node, others in forth.items():
        assert floor[node] == 1 + max((floor[other] for other in others), default=-1)
