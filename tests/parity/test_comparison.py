from __future__ import annotations

from collections import Counter

import pytest

from tests.parity.branches import ENOUGH, REQUIRED, branches_of, too_seldom
from tests.parity.comparison import differences

REJECTED = {"rejected": "Fit", "code": 2, "reasons": ["a", "b"]}
RANKED = {"scores": {"Fit": 3, "DynamicResources": 0}, "total": 3}
ANSWER = {"prefilter": None, "nodes": {"n1": REJECTED, "n2": RANKED}}


def with_node(name: str, verdict: object) -> dict[str, object]:
    return {"prefilter": None, "nodes": {"n1": REJECTED, "n2": RANKED, name: verdict}}


@pytest.mark.parametrize(
    "berth",
    [
        pytest.param(ANSWER, id="itself"),
        pytest.param({**ANSWER, "pod": "default/web"}, id="what only berth tells"),
        pytest.param(with_node("n1", {**REJECTED, "reasons": ["b", "a"]}), id="order of reasons"),
        pytest.param(with_node("n2", {"scores": {"Fit": 3}, "total": 3}), id="a plugin left out"),
    ],
)
def test_these_are_the_same(berth: dict[str, object]) -> None:
    assert differences(ANSWER, berth) == []


@pytest.mark.parametrize(
    "berth",
    [
        pytest.param({"error": "no"}, id="no answer"),
        pytest.param({"prefilter": REJECTED, "nodes": {}}, id="prefilter"),
        pytest.param({"prefilter": None, "nodes": {"n1": REJECTED}}, id="a node less"),
        pytest.param(with_node("n3", REJECTED), id="a node more"),
        pytest.param(with_node("n1", {**REJECTED, "rejected": "Other"}), id="plugin"),
        pytest.param(with_node("n1", {**REJECTED, "code": 3}), id="code"),
        pytest.param(with_node("n1", {**REJECTED, "reasons": ["a"]}), id="reasons"),
        pytest.param(with_node("n2", {"scores": {"Fit": 4}, "total": 4}), id="score"),
        pytest.param(with_node("n2", {"scores": {}, "total": 3}), id="a score less"),
        pytest.param(with_node("n2", {"scores": {"Fit": 3}, "total": 4}), id="total"),
    ],
)
def test_these_differ(berth: dict[str, object]) -> None:
    assert differences(ANSWER, berth)


def test_a_plugin_that_is_left_out_must_not_score() -> None:
    scoring = with_node("n2", {"scores": {"DynamicResources": 5}, "total": 5})
    with pytest.raises(AssertionError, match="DynamicResources is left out"):
        differences(scoring, scoring)


def test_branches_are_reasons_with_their_codes_and_scores_above_0() -> None:
    assert set(branches_of(ANSWER)) == {
        "Fit 2: a",
        "Fit 2: b",
        "score Fit",
        "some node is feasible",
    }
    assert set(branches_of({"prefilter": REJECTED, "nodes": {}})) == {
        "prefilter Fit 2: a",
        "prefilter Fit 2: b",
    }
    assert set(branches_of({"prefilter": None, "nodes": {}})) == {"no nodes"}


def test_a_branch_that_was_reached_once_too_few_is_told() -> None:
    counts = Counter(dict.fromkeys(REQUIRED, ENOUGH))
    assert too_seldom(counts) == {}
    counts["no nodes"] -= 1
    assert too_seldom(counts) == {"no nodes": ENOUGH - 1}
