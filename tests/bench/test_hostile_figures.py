from __future__ import annotations

import pytest

from tests.bench.hostile import chosen
from tests.bench.hostile_figures import Figures, Round, page
from tests.bench.results import today
from tests.hostile.catalogue import SPECS


def played(contender: str = "berth", **changes: object) -> Round:
    fields = {
        "spec": "labels-10000",
        "about": "10 000 labels",
        "nodes": 1000,
        "contender": contender,
        "commit": "abc",
        "session": 0,
        "behind_ms": [3.0, 40.0],
        "pods": 2,
        "limit_s": 30.0,
        "attempts": {"scheduled": (3, 2.0), "unschedulable": (1, 1500.0)},
        "rss_mib": 90.0,
        "rss_after_mib": 80.0,
        "recovered": True,
    }
    return Round(**{**fields, **changes})


def test_figures_survive_the_file(tmp_path) -> None:
    figures = Figures(sessions=[today("now")], rounds=[played()])
    figures.save(tmp_path / "hostile.json")
    assert Figures.load(tmp_path / "hostile.json") == figures
    assert (tmp_path / "hostile.md").read_text() == page(figures)


def test_a_round_that_is_measured_again_makes_way() -> None:
    figures = Figures(rounds=[played(), played("kube-scheduler")])
    figures.add("rounds", played(behind_ms=[1.0, 1.0]))
    assert {each.contender: each.worst_ms for each in figures.rounds} == {
        "berth": 1.0,
        "kube-scheduler": 40.0,
    }


@pytest.mark.parametrize(
    ("changes", "cells"),
    [
        pytest.param({}, "| 40 ms | 1.5 s |", id="all bound"),
        pytest.param({"behind_ms": [3.0]}, "| > 30 s | 1.5 s |", id="one was not bound"),
        pytest.param({"attempts": None}, "| 40 ms | \u2013 |", id="it did not answer"),
        pytest.param({"attempts": {"scheduled": (2, 2.0)}}, "| 40 ms | 2.0 ms |", id="no other"),
        pytest.param(
            {"attempts": {"scheduled": (3, 102.0)}}, "| 40 ms | 300 ms |", id="all placed"
        ),
    ],
)
def test_a_row_shows_the_slowest_pod_and_the_attempt(changes, cells: str) -> None:
    text = page(Figures(sessions=[today("now")], rounds=[played(**changes)]))
    assert f"| 10 000 labels {cells}" in text


def test_older_states_come_first_and_the_peer_last() -> None:
    rounds = [played("kube-scheduler"), played("berth"), played("berth@1234")]
    text = page(Figures(sessions=[today("now")], rounds=rounds))
    assert text.index("behind, berth@1234") < text.index("behind, berth |")
    assert text.index("behind, berth |") < text.index("behind, kube-scheduler")


def test_specs_are_chosen_by_the_beginning_of_their_names() -> None:
    assert chosen("") == list(SPECS)
    assert {spec.name.partition("-")[0] for spec in chosen("spread,labels")} == {"spread", "labels"}
    with pytest.raises(ValueError, match="no spec begins with 'nobody'"):
        chosen("nobody")
