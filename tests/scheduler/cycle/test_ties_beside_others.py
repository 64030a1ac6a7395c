"""Among equal nodes, those on which other schedulers bind are left to them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from cache.columns import NodesView
from scheduler.cycle.best_rows import BestRows
from scheduler.cycle.host_selection import HostSelector
from scheduler.journal.ties import RecordedTies
from tests.builders import node

NODES = NodesView.of([node(f"n{index}").info() for index in range(8)])
EQUAL = np.full(8, 7, dtype=np.int64)
CHOICES = 200

SELECTORS = pytest.mark.parametrize(
    "made", [pytest.param(HostSelector, id="ordinary"), pytest.param(RecordedTies, id="journal")]
)


class Rates:
    """How often others bind on each node."""

    def __init__(self, **by_node: float) -> None:
        self.by_node = by_node

    def is_any(self):
        return bool(self.by_node)

    def rates(self, node_names):
        return [self.by_node.get(name, 0.0) for name in node_names]

    def sizes(self):
        return {}


def chosen(selector: HostSelector, scores=EQUAL) -> Counter[int]:
    """Count which rows are chosen, in both forms."""
    best = BestRows(scores.copy())
    found: Counter[int] = Counter()
    for _ in range(CHOICES):
        found[selector.select(scores, NODES)] += 1
        found[selector.select_row(best, NODES.columns)] += 1
    return found


@SELECTORS
def test_nodes_on_which_others_bind_are_left_to_them(made):
    selector = made(1)
    selector.others = Rates(n0=5, n1=5, n2=5, n3=5)
    found = chosen(selector)
    assert sum(found[row] for row in range(4)) < 2 * CHOICES / 8
    assert all(found[row] for row in range(4, 8))


@SELECTORS
def test_no_node_with_a_lower_score_is_chosen_for_that(made):
    selector, scores = made(1), EQUAL.copy()
    scores[2:] = 6
    selector.others = Rates(n0=5, n1=9)
    assert set(chosen(selector, scores)) == {0, 1}


@SELECTORS
def test_where_nobody_else_binds_choices_are_those_of_the_seed(made):
    beside = made(1)
    beside.others = Rates()
    assert chosen(beside) == chosen(made(1))


@SELECTORS
def test_choices_for_groups_depend_on_the_seed_and_the_name_alone(made):
    beside, alone = made(1), made(1)
    beside.others = Rates(n0=5)
    with beside.seeded("group"), alone.seeded("group"):
        assert chosen(beside) == chosen(alone)


def test_a_replay_with_the_same_rates_chooses_alike():
    rates = Rates(n0=5, n1=2, n3=9)
    found = []
    for _ in range(2):
        selector = RecordedTies(1)
        selector.others = rates
        selector.begin(42)
        found.append(chosen(selector))
    assert found[0] == found[1]
