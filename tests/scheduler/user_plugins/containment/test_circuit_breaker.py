"""When a breaker opens, for how long, and what it takes to close it."""

from __future__ import annotations

import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

import scheduler.user_plugins.containment.circuit_breaker as module
from scheduler.user_plugins.containment.circuit_breaker import (
    TRANSITIONS,
    Breaker,
    BreakerRules,
    ImpossibleStimulusError,
    State,
    Stimulus,
)

RULES = BreakerRules(failures=3, window_s=60.0, open_s=30.0, max_open_s=100.0)


def opened(rules: BreakerRules = RULES) -> Breaker:
    """A breaker that opened at 0."""
    breaker = Breaker(rules)
    for _ in range(rules.failures):
        breaker.fail(0.0)
    assert breaker.state is State.OPEN
    return breaker


def drawn() -> dict[tuple[State, Stimulus], str]:
    """The table of the module's docstring."""
    lines = [line.split() for line in (module.__doc__ or "").splitlines() if line[:4] == "    "]
    head, *rows = [line for line in lines if len(line) == 5]
    stimuli = [Stimulus(name) for name in head[1:]]
    return {
        (State(row[0]), stimulus): cell
        for row in rows
        for stimulus, cell in zip(stimuli, row[1:], strict=True)
    }


@pytest.mark.parametrize(
    ("state", "stimulus"),
    [
        pytest.param(*pair, id=f"{pair[0].value}-{pair[1].value}")
        for pair in product(State, Stimulus)
    ],
)
def test_the_drawing_is_the_table(state, stimulus):
    cell = drawn()[state, stimulus]
    assert TRANSITIONS.get((state, stimulus)) == (None if cell == "." else State(cell))


def test_the_drawing_says_what_each_stimulus_is():
    told = re.findall(r"^    (\w+)  +\w+ .*[^.]$", module.__doc__ or "", re.MULTILINE)
    assert {each.value for each in Stimulus} <= set(told)


def test_a_stimulus_that_cannot_come_is_a_mistake():
    with pytest.raises(ImpossibleStimulusError, match="failed while open"):
        opened().fail(1.0)


def test_failures_within_the_window_open_it():
    breaker = Breaker(RULES)
    assert [breaker.fail(at) for at in (0.0, 30.0, 59.0)] == [False, False, True]


def test_failures_far_apart_do_not():
    breaker = Breaker(RULES)
    assert [breaker.fail(at) for at in (0.0, 40.0, 80.0, 120.0)] == [False] * 4


def test_answers_in_between_do_not_excuse_failures():
    breaker = Breaker(RULES)
    for at in (0.0, 1.0):
        breaker.fail(at)
        breaker.succeed(at)
    assert breaker.fail(2.0)


def test_a_heavy_failure_counts_for_several():
    breaker = Breaker(RULES)
    assert [breaker.fail(0.0, 2), breaker.fail(1.0)] == [False, True]


def test_an_open_breaker_admits_nobody_until_its_time_is_over():
    breaker = opened()
    assert [breaker.admits(at) for at in (0.0, 29.9, 30.0)] == [False, False, True]


def test_one_answer_closes_a_half_open_breaker():
    breaker = opened()
    breaker.admits(30.0)
    assert breaker.state is State.HALF_OPEN
    breaker.succeed(30.0)
    assert breaker.state is State.CLOSED


def test_each_time_it_is_open_twice_as_long_up_to_a_limit():
    breaker, times, now = opened(), [], 0.0
    for _ in range(4):
        times.append(breaker.open_until - now)
        now = breaker.open_until
        assert breaker.admits(now)
        breaker.fail(now)
    assert times == [30.0, 60.0, 100.0, 100.0]


def test_on_probation_one_failure_is_enough():
    breaker = opened()
    breaker.admits(30.0)
    breaker.succeed(30.0)
    assert breaker.fail(89.0)
    assert breaker.open_until == 89.0 + 60.0


def test_a_window_without_failures_clears_the_record():
    breaker = opened()
    breaker.admits(30.0)
    breaker.succeed(30.0)
    assert [breaker.fail(91.0 + at) for at in (0.0, 1.0, 2.0)] == [False, False, True]
    assert breaker.open_until == 93.0 + 30.0


def test_whoever_keeps_answers_can_tell_times_apart():
    breaker = opened()
    seen = [breaker.changes]
    breaker.admits(30.0)
    seen.append(breaker.changes)
    breaker.succeed(30.0)
    breaker.fail(31.0)
    seen.append(breaker.changes)
    assert seen == sorted(set(seen))


@given(st.lists(st.tuples(st.booleans(), st.floats(0.0, 200.0))))
def test_any_history_keeps_to_the_table(history):
    breaker, now = Breaker(RULES), 0.0
    for good, pause_s in history:
        now += pause_s
        if not breaker.admits(now):
            assert now < breaker.open_until <= now + RULES.max_open_s
            continue
        if good:
            breaker.succeed(now)
        else:
            breaker.fail(now)
        assert (breaker.state is State.OPEN) <= (not good)
