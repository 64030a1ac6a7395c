from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.authoring.checked_results import (
    PolicyAnswerError,
    checked_mask,
    checked_score,
    checked_scores,
    checked_verdict,
    to_scale,
)

NAMES = ("a", "b", "c")


@pytest.mark.parametrize(
    ("answer", "kind", "told"),
    [
        pytest.param(None, "shape", "filter returned None", id="nothing"),
        pytest.param([True] * 3, "shape", "filter returned list", id="a list"),
        pytest.param(np.ones(2, bool), "shape", r"shape \(2,\), it must be \(3,\)", id="too few"),
        pytest.param(np.ones((3, 1), bool), "shape", r"\(3, 1\)", id="two axes"),
        pytest.param(np.ones(3), "dtype", "returned float64, it must return bool", id="numbers"),
    ],
)
def test_a_mask_that_is_none_is_refused(answer: object, kind: str, told: str) -> None:
    with pytest.raises(PolicyAnswerError, match=told) as caught:
        checked_mask(answer, 3)
    assert caught.value.kind == kind


@pytest.mark.parametrize(
    ("answer", "kind", "told"),
    [
        pytest.param(7, "shape", "score returned int", id="one number"),
        pytest.param(np.zeros(4), "shape", r"\(4,\)", id="too many"),
        pytest.param(np.array(["x"] * 3), "dtype", "it must return numbers", id="texts"),
        pytest.param(np.array([0, np.nan, 1]), "nan", "nan for node b", id="NaN"),
        pytest.param(np.array([0, 1, -np.inf]), "nan", "-inf for node c", id="infinite"),
    ],
)
def test_scores_that_are_none_are_refused(answer: object, kind: str, told: str) -> None:
    with pytest.raises(PolicyAnswerError, match=told) as caught:
        checked_scores(answer, 3, NAMES.__getitem__, normalized=False)
    assert caught.value.kind == kind


@pytest.mark.parametrize(
    ("scores", "told"),
    [
        pytest.param([0.0, 100.5, 3.0], "100.5 for node b", id="above"),
        pytest.param([0.0, 1.0, -0.5], "-0.5 for node c", id="below"),
    ],
)
def test_a_normalized_score_is_within_the_scale(scores: list[float], told: str) -> None:
    with pytest.raises(PolicyAnswerError, match=told):
        checked_scores(np.array(scores), 3, NAMES.__getitem__, normalized=True)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(True, None, id="yes"),
        pytest.param(np.True_, None, id="numpy's yes"),
        pytest.param(False, "the reason", id="no"),
        pytest.param("too dear", "too dear", id="a reason of its own"),
    ],
)
def test_a_verdict_is_a_bool_or_a_reason(answer: object, expected: str | None) -> None:
    assert checked_verdict(answer, "the reason") == expected


def test_a_verdict_of_nothing_is_refused() -> None:
    with pytest.raises(PolicyAnswerError, match="filter_one returned None"):
        checked_verdict(None, "")


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(None, id="nothing"),
        pytest.param("3", id="text"),
        pytest.param(float("nan"), id="NaN"),
        pytest.param(10**400, id="more than a float holds"),
    ],
)
def test_a_score_that_is_no_number_is_refused(answer: object) -> None:
    with pytest.raises(PolicyAnswerError, match="score_one returned"):
        checked_score(answer, "a", normalized=False)


def test_checked_scores_are_a_copy() -> None:
    mine = np.array([1.0, 2.0, 3.0])
    checked_scores(mine, 3, NAMES.__getitem__, normalized=False)[0] = 9.0
    assert mine.tolist() == [1.0, 2.0, 3.0]


finite = st.floats(allow_nan=False, allow_infinity=False)


@given(raw=st.lists(finite, max_size=12), higher=st.booleans())
def test_the_scale_keeps_the_order_and_has_both_ends(raw: list[float], higher: bool) -> None:
    scaled = to_scale(np.array(raw), higher_is_better=higher)
    assert all(0 <= each <= 100 for each in scaled)
    for one, mine in zip(raw, scaled, strict=True):
        for other, its in zip(raw, scaled, strict=True):
            assert mine <= its if (one < other) == higher and one != other else True
            assert mine == its or one != other
    if len(set(raw)) > 1:
        assert {scaled.min(), scaled.max()} == {0, 100}


@given(raw=st.lists(finite, min_size=1, max_size=12), higher=st.booleans(), data=st.data())
def test_the_scale_does_not_depend_on_order_or_number(
    raw: list[float], higher: bool, data: st.DataObject
) -> None:
    once = to_scale(np.array(raw), higher_is_better=higher)
    other = data.draw(st.permutations(range(len(raw))))
    again = to_scale(np.array([raw[at] for at in other] * 2), higher_is_better=higher)
    assert again.tolist() == [once[at] for at in other] * 2
