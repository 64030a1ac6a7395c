"""What extenders add to scores."""

from __future__ import annotations

import pytest

from scheduler.config import Extender
from tests.scheduler.extenders.scripted_extender import Points, Reply, says

BY_NAME = {"prioritize_verb": "prioritize", "node_cache_capable": True}


def test_scores_are_weighted_scaled_and_added(stage):
    server = stage.serve(prioritize=says([{"Host": "a", "Score": 2}, {"Host": "b", "Score": 10}]))
    decision = stage.decide(Extender(server.url, weight=3, **BY_NAME), points=Points(a=1, b=7))
    assert (decision.node_name, decision.score) == ("b", 7 + 10 * 3 * 10)


def test_several_extenders_add_up(stage):
    first = stage.serve(prioritize=says([{"Host": "a", "Score": 5}, {"Host": "b", "Score": 6}]))
    second = stage.serve(prioritize=says([{"Host": "a", "Score": 5}]))
    configs = [Extender(server.url, weight=1, **BY_NAME) for server in (first, second)]
    decision = stage.decide(*configs)
    assert (decision.node_name, decision.score) == ("a", 100)


def test_whole_nodes_are_shown_to_one_that_knows_none(stage):
    server = stage.serve(prioritize=says([{"Host": "c", "Score": 1}]))
    decision = stage.decide(Extender(server.url, prioritize_verb="prioritize", weight=1))
    ((_, asked),) = server.asked
    assert (decision.node_name, len(asked["Nodes"]["items"])) == ("c", 3)


@pytest.mark.parametrize(
    ("answer", "score"),
    [
        pytest.param(b'[{"host":"b","SCORE":3}]', 30, id="keys in another case"),
        pytest.param(b"null", 0, id="null"),
        pytest.param(b'[null,{"Host":"b","Score":3}]', 30, id="a null among them"),
        pytest.param(b'[{"Host":"b","Score":3},{"Host":"b","Score":4}]', 70, id="twice"),
        pytest.param(b'[{"Host":"z","Score":9}]', 0, id="a node that was not sent"),
        pytest.param(b'[{"Host":"b","Score":9223372036854775807}]', 1 << 62, id="absurd"),
        pytest.param(b'[{"Host":"b","Score":1.5}]', 0, id="a fraction is garbage"),
        pytest.param(b'[{"Host":"b","Score":9223372036854775808}]', 0, id="too large"),
        pytest.param(b"{}", 0, id="no list"),
        pytest.param(b"<html>", 0, id="no JSON"),
        pytest.param(b"", 0, id="nothing"),
    ],
)
def test_an_answer_gives_points(stage, answer, score):
    server = stage.serve(prioritize=lambda asked: Reply(answer))
    decision = stage.decide(Extender(server.url, weight=1, **BY_NAME))
    assert (decision.is_placed, decision.score) == (True, score)


def test_one_that_fails_gives_no_points_and_stops_nothing(stage):
    bad = stage.serve(prioritize=lambda asked: Reply(status=503))
    good = stage.serve(prioritize=says([{"Host": "b", "Score": 1}]))
    configs = [Extender(server.url, weight=1, **BY_NAME) for server in (bad, good)]
    decision = stage.decide(*configs)
    assert (decision.node_name, decision.score) == ("b", 10)


def test_a_pod_that_cannot_be_read_costs_the_points(stage):
    stage.objects.pod_is_gone = True
    server = stage.serve(prioritize=says([{"Host": "b", "Score": 1}]))
    decision = stage.decide(Extender(server.url, weight=1, **BY_NAME))
    assert (decision.is_placed, decision.score) == (True, 0)


def test_with_one_feasible_node_nothing_is_scored(stage):
    server = stage.serve(prioritize=says([]))
    stage.decide(Extender(server.url, weight=1, **BY_NAME), names="a")
    assert server.asked == []
