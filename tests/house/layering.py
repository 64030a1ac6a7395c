"""Cycles of a graph, the edges that run back in them, and how many floors the rest has."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence, Set

    from tests.house.imports import Graph


def knots_of(graph: Mapping[str, Set[str]]) -> list[list[str]]:
    """Return the strongly connected components of several nodes, the largest first.

    *Source*: R. Tarjan, Depth-first search and linear graph algorithms, 1972.
    """
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        number[node] = lowest[node] = len(number)
        path.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in number:
                visit(other)
            if other in path:
                lowest[node] = min(lowest[node], lowest[other])
        if lowest[node] == number[node]:
            at = path.index(node)
            component = path[at:]
            del path[at:]
            if len(component) > 1:
                found.append(sorted(component))

    for node in sorted(graph):
        if node not in number:
            visit(node)
    return sorted(found, key=lambda knot: (-len(knot), knot))


def back_edges(
    graph: Mapping[str, Set[str]], weight: Callable[[str, str], int]
) -> list[tuple[str, str]]:
    """Return edges without which the graph has no cycle, of little weight together.

    In each knot nodes are put into an order, and moved in it one by one as long as that makes the
    edges against the order lighter. That is not always the least weight possible, but no edge of
    the result can be spared alone.
    """
    found = []
    for knot in knots_of(graph):
        order = _good_order(knot, graph, weight)
        at = {node: index for index, node in enumerate(order)}
        found += [
            (node, other)
            for node in knot
            for other in sorted(graph[node] & at.keys())
            if at[other] < at[node]
        ]
    return sorted(_without_spare(graph, found))


def floors_of(graph: Mapping[str, Set[str]]) -> list[list[str]]:
    """Return the nodes by their height, lowest first.

    A node stands one floor above the highest of those to which its edges lead. The graph has no
    cycle.
    """
    heights: dict[str, int] = {}

    def height(node: str) -> int:
        if node not in heights:
            heights[node] = 1 + max((height(other) for other in graph.get(node, ())), default=-1)
        return heights[node]

    floors: list[list[str]] = [[] for _ in range(1 + max(map(height, graph), default=-1))]
    for node in sorted(graph):
        floors[heights[node]].append(node)
    return floors


def without(graph: Mapping[str, Set[str]], edges: Sequence[tuple[str, str]]) -> Graph:
    """Return a graph that lacks some edges."""
    gone = set(edges)
    return {
        node: {other for other in others if (node, other) not in gone}
        for node, others in graph.items()
    }


def _good_order(
    knot: Sequence[str], graph: Mapping[str, Set[str]], weight: Callable[[str, str], int]
) -> list[str]:
    """Return an order in which the edges that lead from a node to an earlier one weigh little."""
    weights = {
        (node, other): weight(node, other) for node in knot for other in graph[node] & {*knot}
    }
    order = sorted(knot, key=lambda node: (_surplus(node, weights), node))
    while True:
        before = list(order)
        for node in knot:
            order.remove(node)
            costs = _costs(node, order, weights)
            order.insert(costs.index(min(costs)), node)
        if _total(order, weights) >= _total(before, weights):
            return before


def _surplus(node: str, weights: Mapping[tuple[str, str], int]) -> int:
    into = sum(value for (_, other), value in weights.items() if other == node)
    return into - sum(value for (start, _), value in weights.items() if start == node)


def _costs(node: str, order: Sequence[str], weights: Mapping[tuple[str, str], int]) -> list[int]:
    """Return what runs back to or from a node, for each place that it could have in an order."""
    cost = sum(weights.get((other, node), 0) for other in order)
    costs = [cost]
    for other in order:
        cost += weights.get((node, other), 0) - weights.get((other, node), 0)
        costs.append(cost)
    return costs


def _total(order: Sequence[str], weights: Mapping[tuple[str, str], int]) -> int:
    at = {node: index for index, node in enumerate(order)}
    return sum(value for (node, other), value in weights.items() if at[other] < at[node])


def _without_spare(
    graph: Mapping[str, Set[str]], edges: Sequence[tuple[str, str]]
) -> list[tuple[str, str]]:
    kept = list(edges)
    for edge in edges:
        fewer = [each for each in kept if each != edge]
        if not knots_of(without(graph, fewer)):
            kept = fewer
    return kept
