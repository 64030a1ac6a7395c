from __future__ import annotations

import json

import pytest

from scheduler.what_if import forecast_json, without_names, without_others
from scheduler.what_if.result import MAX_NAMES, MAX_PLACEMENTS
from scheduler.what_if.tally import Tally, listed
from scheduler.what_if.text_form import as_text
from tests.scheduler.what_if.clusters import ask, budget, cluster_of, machine, manifest, running


def test_a_reader_without_rights_sees_counts_and_no_names():
    cluster = cluster_of(
        machine("node-one"),
        machine("node-two"),
        running("secret", "node-one", app="web"),
        running("other", "node-one", "4"),
        budget(0, "secret-budget", app="web"),
    )
    found = ask(cluster, drain=["node-one"], objects=[manifest("mine")])
    text = forecast_json(without_names(found)).decode()
    assert not [name for name in ("node-one", "node-two", "secret", "other") if name in text]
    answer = json.loads(text)
    assert (answer["placed"], answer["refused"]) == (found.placed, found.refused)
    assert answer["parts"][-1]["subject"] == "default/mine"


def test_a_reader_of_nodes_sees_no_pods_of_others():
    cluster = cluster_of(
        machine("node-one"),
        running("secret", "node-one", "4", app="web"),
        budget(0, "secret-budget", app="web"),
    )
    found = ask(cluster, objects=[manifest("mine", priority=9)])
    assert found.preempted[0].pod == "default/secret"
    shown = without_others(found)
    text = forecast_json(shown).decode() + as_text(shown)
    assert "secret" not in text
    assert "1 pod would be preempted." in text
    assert shown.nodes == {"node-one": 1}


def test_the_list_of_placements_is_bounded_and_the_count_is_not():
    tally = Tally("pods", "web")
    for number in range(MAX_PLACEMENTS + 5):
        tally.place(f"web-{number}", "n1")
    part = tally.part()
    assert (part.placed, len(part.placements), part.placements_omitted) == (
        MAX_PLACEMENTS + 5,
        MAX_PLACEMENTS,
        5,
    )


def test_pods_with_one_reason_are_counted_together():
    tally = Tally("pods", "web")
    for number in range(100):
        tally.refuse(f"web-{number}", "no room")
    (refusal,) = tally.part().refusals
    assert (refusal.pods, len(refusal.sample)) == (100, 10)


def test_reasons_are_bounded_and_the_count_is_not():
    tally = Tally("pending", "")
    for number in range(MAX_NAMES + 5):
        tally.refuse(f"web-{number}", f"reason {number}")
    part = tally.part()
    assert (part.refused, len(part.refusals)) == (MAX_NAMES + 5, MAX_NAMES + 1)
    assert part.refusals[0].pods == 5


@pytest.mark.parametrize(
    ("names", "text"),
    [
        pytest.param(["a"], "a", id="one"),
        pytest.param(list("abcde"), "a, b, c, d, e", id="a few"),
        pytest.param(list("abcdefg"), "a, b, c, d, e and 2 more", id="many"),
    ],
)
def test_many_names_are_cut(names, text):
    assert listed(names) == text
