from __future__ import annotations

import numpy as np

from cache.columns import NodesView
from cache.label_columns import sum_by_value
from plugins.domain_counts import DomainCounts
from tests.builders import node

NODES = NodesView.of(
    [
        node("n0").label("zone", "a").info(),
        node("n1").label("zone", "b").info(),
        node("n2").info(),
        node("n3").label("zone", "a").info(),
    ]
)


def counted() -> DomainCounts:
    column, ids = NODES.label("zone")
    sums = sum_by_value(column, ids, np.array([1, 10, 100, 1000]))
    return DomainCounts("zone", column, sums)


def test_amounts_are_summed_over_the_nodes_of_a_domain() -> None:
    counts = counted()
    assert [counts.of(value) for value in ("a", "b", "c")] == [1001, 10, 0]
    assert counts.total == 1011


def test_each_node_gets_the_count_of_its_domain() -> None:
    assert counted().at(NODES).tolist() == [1001, 10, 0, 1001]


def test_a_change_is_seen_in_every_form() -> None:
    counts = counted()
    counts.change("b", 5)
    counts.change("unheard-of", 1)
    assert (counts.of("b"), counts.of("unheard-of"), counts.total) == (15, 1, 1017)
    assert counts.at(NODES).tolist() == [1001, 15, 0, 1001]


def test_a_copy_changes_for_itself() -> None:
    counts = counted()
    counts.copy().change("a", 1)
    assert counts.of("a") == 1001


def test_columns_of_other_nodes_are_read_by_their_values() -> None:
    other = NodesView.of(
        [node("m0").label("zone", "b").info(), node("m1").label("zone", "x").info()]
    )
    counts = counted()
    counts.change("x", 2)
    assert counts.at(other).tolist() == [10, 2]


def test_counts_made_of_changes_alone_start_at_zero() -> None:
    counts = DomainCounts("zone")
    counts.change("a", 1)
    assert counts.at(NODES).tolist() == [1, 0, 0, 1]
