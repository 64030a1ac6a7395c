from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.reuse.best_rows import INFEASIBLE, BestRows

SCORES = st.integers(INFEASIBLE, 4)


@given(st.lists(SCORES, min_size=1, max_size=8), st.lists(st.tuples(st.integers(0, 7), SCORES)))
def test_after_any_changes_the_best_rows_are_those_of_the_scores(scores, changes):
    best = BestRows(np.array(scores, dtype=np.int64))
    for row, score in changes:
        row %= len(scores)
        scores[row] = score
        best.change(row, score)
    assert best.best == max(scores)
    expected = {r for r, s in enumerate(scores) if s == max(scores) != INFEASIBLE}
    assert {best[index] for index in range(len(best))} == expected
    assert len(best) == len(expected)


@pytest.mark.parametrize(
    ("scores", "change", "expected"),
    [
        pytest.param([5, 5, 3], (0, 4), [1], id="one of several gets worse"),
        pytest.param([5, 3, 3], (0, 1), [1, 2], id="the only one gets worse"),
        pytest.param([5, 3, 3], (2, 5), [0, 2], id="another draws level"),
        pytest.param([5, 3, 3], (1, 9), [1], id="another overtakes"),
        pytest.param([5, 3, 3], (0, INFEASIBLE), [1, 2], id="the best is out"),
        pytest.param([5], (0, INFEASIBLE), [], id="the last is out"),
        pytest.param([INFEASIBLE, INFEASIBLE], (1, 0), [1], id="the first is in"),
    ],
)
def test_best_rows(scores, change, expected):
    best = BestRows(np.array(scores, dtype=np.int64))
    best.change(*change)
    assert sorted(best[index] for index in range(len(best))) == expected
