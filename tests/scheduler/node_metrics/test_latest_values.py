"""Values of node metrics, and from when on they count for nothing."""

from __future__ import annotations

import pytest

from scheduler.node_metrics import NodeMetricsBoard
from tests.fakes.clock import FakeClock


@pytest.fixture
def clock():
    return FakeClock(100.0)


@pytest.fixture
def board(clock):
    return NodeMetricsBoard(clock)


def by_node(board):
    reading = board.latest("load")
    return None if reading is None else reading.by_node


def test_the_latest_values_count(board):
    board.publish("load", {"a": 1.0}, taken_s=90, stale_after_s=60)
    board.publish("load", {"a": 2.0}, taken_s=99, stale_after_s=60)
    assert by_node(board) == {"a": 2.0}


def test_other_values_have_another_version(board):
    board.publish("load", {"a": 1.0}, taken_s=90, stale_after_s=60)
    before = board.latest("load").version
    board.publish("load", {"a": 1.0}, taken_s=99, stale_after_s=60)
    assert board.latest("load").version != before


@pytest.mark.parametrize(
    ("age_s", "counts"),
    [pytest.param(60.0, True, id="just not too old"), pytest.param(60.1, False, id="too old")],
)
def test_what_is_too_old_counts_for_nothing(board, clock, age_s, counts):
    board.publish("load", {"a": 1.0}, taken_s=100, stale_after_s=60)
    clock.advance(age_s)
    assert (by_node(board) is not None) is counts


def test_values_that_come_after_a_silence_count_again(board, clock):
    board.publish("load", {"a": 1.0}, taken_s=100, stale_after_s=60)
    clock.advance(1000)
    board.publish("load", {"a": 3.0}, taken_s=clock(), stale_after_s=60)
    assert by_node(board) == {"a": 3.0}


def test_what_is_expected_and_has_not_come_is_unknown(board):
    board.expect("load")
    assert board.latest("load") is None


def test_expecting_takes_nothing_away(board):
    board.publish("load", {"a": 1.0}, taken_s=100, stale_after_s=60)
    board.expect("load")
    assert by_node(board) == {"a": 1.0}


def test_a_name_that_nobody_asks_for_is_told_once(board, capsys):
    board.expect("load")
    for _ in range(3):
        assert board.latest("laod") is None
    assert capsys.readouterr().out.count("no such node metric") == 1


def test_how_old_each_metric_is(board, clock):
    board.expect("temperature")
    board.publish("load", {"a": 1.0}, taken_s=100, stale_after_s=60)
    clock.advance(70)
    assert board.ages_s() == {"load": 70.0}


def test_for_how_many_nodes_something_is_known(board, clock):
    board.expect("temperature")
    board.publish("load", {"a": 1.0, "b": 2.0}, taken_s=100, stale_after_s=60)
    assert board.known_nodes() == {"temperature": 0, "load": 2}
