from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.cycle import best_rows
from scheduler.cycle.best_rows import INFEASIBLE, BestRows

SCORES = st.integers(INFEASIBLE, 4)


CHANGES = st.lists(st.tuples(st.integers(0, 7), SCORES), max_size=6)


def ever_picked(best: BestRows, picks: int = 60) -> set[int]:
    chance = random.Random(5)
    try:
        return {best.pick(chance.randrange) for _ in range(picks)}
    except LookupError:
        return set()


def of_highest_score(scores: list[int]) -> set[int]:
    return {row for row, score in enumerate(scores) if score == max(scores) != INFEASIBLE}


@given(st.lists(SCORES, min_size=1, max_size=8), st.lists(st.tuples(CHANGES, st.booleans())))
def test_after_any_changes_the_best_rows_are_those_of_the_scores(scores, rounds):
    best = BestRows(np.array(scores, dtype=np.int64))
    for changes, at_once in rounds:
        changed = {row % len(scores): score for row, score in changes}
        if at_once:
            rows = np.fromiter(changed, np.intp, len(changed))
            best.change_all(rows, np.fromiter(changed.values(), np.int64, len(changed)))
        else:
            for row, score in changed.items():
                best.change(row, score)
        for row, score in changed.items():
            scores[row] = score
        assert ever_picked(best) == of_highest_score(scores)
        assert best.scores.tolist() == scores


def test_rows_that_got_worse_leave_the_others_as_likely_as_before():
    best = BestRows(np.array([7] * 100, dtype=np.int64))
    best.change_all(np.arange(0, 90), np.full(90, 3))
    chance = random.Random(5)
    picked = [best.pick(chance.randrange) for _ in range(2000)]
    assert set(picked) == set(range(90, 100))
    assert min(picked.count(row) for row in range(90, 100)) > 120


@given(st.lists(st.integers(0, 4), min_size=2, max_size=8), CHANGES)
def test_the_second_best_row_is_the_best_but_for_the_picked_one(scores, changes):
    best = BestRows(np.array(scores, dtype=np.int64))
    for row, score in changes:
        best.change(row % len(scores), score)
    after = best.scores.tolist()
    try:
        picked = best.pick(random.Random(5).randrange)
    except LookupError:
        return
    others = {row: score for row, score in enumerate(after) if row != picked}
    second = best.second(picked)
    assert best.scores.tolist() == after
    if max(others.values()) == INFEASIBLE:
        assert second is None
    else:
        assert second is not None
        assert second[1] == max(others.values()) == others[second[0]]


def test_the_second_best_of_many_rows_is_only_found_among_equals(monkeypatch):
    monkeypatch.setattr(best_rows, "MAX_SEARCHED", 3)
    best = BestRows(np.array([5, 5, 3, 3], dtype=np.int64))
    assert best.second(0) == (1, 5)
    best.change(1, 4)
    assert best.second(0) is None


@pytest.mark.parametrize(
    ("scores", "change", "expected"),
    [
        pytest.param([5, 5, 3], (0, 4), {1}, id="one of several gets worse"),
        pytest.param([5, 3, 3], (0, 1), {1, 2}, id="the only one gets worse"),
        pytest.param([5, 3, 3], (2, 5), {0, 2}, id="another draws level"),
        pytest.param([5, 3, 3], (1, 9), {1}, id="another overtakes"),
        pytest.param([5, 3, 3], (0, INFEASIBLE), {1, 2}, id="the best is out"),
        pytest.param([5], (0, INFEASIBLE), set(), id="the last is out"),
        pytest.param([INFEASIBLE, INFEASIBLE], (1, 0), {1}, id="the first is in"),
    ],
)
def test_best_rows(scores, change, expected):
    best = BestRows(np.array(scores, dtype=np.int64))
    best.change(*change)
    assert ever_picked(best) == expected
