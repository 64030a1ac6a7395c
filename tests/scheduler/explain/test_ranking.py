from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scheduler.explain import NodeScores, Ranking

SCORES = st.dictionaries(
    st.text("abc", min_size=1), st.tuples(st.integers(0, 3), st.integers(0, 3))
)


@given(SCORES)
def test_the_best_come_first_and_equals_by_name(given_scores):
    fit = np.array([each[0] for each in given_scores.values()], dtype=np.int64)
    image = np.array([each[1] for each in given_scores.values()], dtype=np.int64)
    ranking = Ranking(list(given_scores), {"Fit": fit, "Image": image}, fit + image, {})
    expected = sorted(given_scores.items(), key=lambda item: (-sum(item[1]), item[0]))
    assert list(ranking.items()) == [
        (name, NodeScores({"Fit": one, "Image": other}, one + other))
        for name, (one, other) in expected
    ]
    assert ranking.totals.tolist() == [sum(each) for _, each in expected]
    assert [NodeScores(scores, total) for _, scores, total, _ in ranking.rows()] == list(
        ranking.values()
    )


def test_without_scores_all_are_equal():
    ranking = Ranking(["b", "a"], {}, np.zeros(2, dtype=np.int64), {})
    assert [(name, scores, total) for name, scores, total, _ in ranking.rows()] == [
        ("a", {}, 0),
        ("b", {}, 0),
    ]
