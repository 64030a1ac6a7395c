"""LoadAware: nodes are filled up to a target by what they really do."""

from __future__ import annotations

import pytest

from plugins.examples.load_aware import LoadAware
from tests.builders import node, pod
from tests.plugins.examples.asking import Asked, Measured


def ten(name):
    return node(name).capacity(cpu="10")


def asks(name="new", cpu="1"):
    return pod(name).request(cpu=cpu)


def stage(measured, *names, **args):
    """Return the plugin asked about nodes of 10 CPUs, and what measures them."""
    handle = Measured(measured)
    given = {"target": 0.4, **args}
    return Asked(LoadAware, *map(ten, names), handle=handle, **given), handle


@pytest.mark.parametrize(
    ("measured", "points"),
    [
        pytest.param(0.0, 55, id="idle: a tenth is used with the pod"),
        pytest.param(0.3, 100, id="the target is reached"),
        pytest.param(0.4, 33, id="beyond it"),
        pytest.param(0.9, 0, id="all is used"),
        pytest.param(1.5, 0, id="more than all"),
    ],
)
def test_points_grow_to_the_target_and_fall_behind_it(measured, points):
    asked, _ = stage({"a": measured}, "a")
    assert asked.scores(asks()) == {"a": points}


def test_a_small_share_of_the_request_is_expected_where_it_is_said():
    asked, _ = stage({"a": 0.3}, "a", usageOfRequest=0.5)
    assert asked.scores(asks(cpu="2")) == {"a": 100}


def test_a_pod_that_requests_nothing_is_expected_to_use_something():
    asked, _ = stage({"a": 0.3}, "a", defaultMilliCpu=1000)
    assert asked.scores(pod("new")) == {"a": 100}


def test_measurements_count_and_requests_do_not():
    asked, _ = stage({"a": 0.3, "b": 0.1}, "a", "b")
    asked.place(asks("there", "9").on("b"))
    assert asked.scores(asks()) == {"a": 100, "b": 70}


@pytest.mark.parametrize(
    "measured", [pytest.param(None, id="all"), pytest.param({"b": 0.3}, id="one node")]
)
def test_what_is_unknown_is_judged_by_requests(measured):
    asked, _ = stage(measured, "a", "b")
    asked.place(asks("there", "3").on("a"))
    assert asked.scores(asks())["a"] == 100


def test_measurements_that_have_become_stale_do_not_count():
    asked, handle = stage({"a": 0.9}, "a")
    asked.place(asks("there", "3").on("a"))
    assert asked.scores(asks())["a"] == 0
    handle.read(None)
    assert asked.scores(asks())["a"] == 100


def test_pods_that_came_after_a_measurement_are_added_to_it():
    asked, _ = stage({"a": 0.3, "b": 0.25}, "a", "b")
    assert asked.scores(asks()) == {"a": 100, "b": 92}
    asked.place(asks("first").on("a"))
    assert asked.scores(asks()) == {"a": 33, "b": 92}


def test_a_new_measurement_has_seen_them():
    asked, handle = stage({"a": 0.3}, "a")
    asked.scores(asks())
    asked.place(asks("first").on("a"))
    handle.read({"a": 0.31})
    assert asked.scores(asks("x", "900m")) == {"a": 100}


def test_pods_that_go_take_nothing_off_a_measurement():
    asked, _ = stage({"a": 0.3}, "a")
    asked.place(asks("there", "3").on("a"))
    before = asked.scores(asks())
    asked.take_away(asks("there", "3").on("a"))
    assert asked.scores(asks()) == before


def test_nodes_that_come_and_go_make_no_measurement_new():
    asked, _ = stage({"a": 0.3, "b": 0.1, "c": 0.0}, "b", "a")
    asked.scores(asks())
    asked.place(asks("first").on("a"))
    asked.remove_node("b")
    asked.add(ten("c"))
    assert asked.scores(asks()) == {"a": 33, "c": 55}


def test_a_node_that_comes_between_measurements_is_followed_from_then_on():
    asked, _ = stage({"a": 0.3, "b": 0.3}, "a")
    asked.scores(asks())
    asked.add(ten("b"))
    asked.scores(asks())
    asked.place(asks("first").on("b"))
    assert asked.scores(asks()) == {"a": 100, "b": 33}


def test_nodes_that_are_gone_are_forgotten_in_the_end():
    asked, _ = stage({"a": 0.3}, "a")
    for round_of in range(4):
        passing = [f"{round_of}-{number}" for number in range(600)]
        asked.add(*map(ten, passing))
        asked.scores(asks())
        for name in passing:
            asked.remove_node(name)
        assert asked.scores(asks()) == {"a": 100}
    assert len(asked.plugin.user._slots) < 1200


def test_some_nodes_get_what_they_get_among_all():
    asked, _ = stage({"a": 0.3, "b": 0.2, "c": 0.1}, "a", "b", "c")
    everywhere = asked.scores(asks())
    asked.place(asks("first").on("b"))
    among = asked.scores(asks())
    assert asked.scores(asks(), "c", "b") == {name: among[name] for name in ("c", "b")}
    assert among["c"] == everywhere["c"]


def test_a_burst_between_two_measurements_fills_several_nodes():
    asked, _ = stage({"a": 0.1, "b": 0.1, "c": 0.1}, "a", "b", "c")
    where = []
    for number in range(9):
        scores = asked.scores(asks())
        best = max(scores, key=scores.__getitem__)
        asked.place(asks(f"{number}").on(best))
        where.append(best)
    assert sorted(where) == ["a"] * 3 + ["b"] * 3 + ["c"] * 3


@pytest.mark.parametrize(
    ("args", "path"),
    [
        pytest.param({"target": 0.0}, "target", id="nothing wanted"),
        pytest.param({"target": 1.0}, "target", id="all wanted"),
        pytest.param({"target": float("nan")}, "target", id="no number"),
        pytest.param({"usage_of_request": -0.5}, "usageOfRequest", id="less than none"),
        pytest.param({"default_milli_cpu": -1}, "defaultMilliCpu", id="less than nothing"),
    ],
)
def test_arguments_that_make_no_sense_are_named(args, path):
    (problem,) = LoadAware.Args(**args).problems()
    assert problem.path == path
