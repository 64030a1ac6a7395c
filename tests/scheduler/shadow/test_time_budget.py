from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scheduler.shadow.runner import MAX_SAVED_S, TimeBudget
from tests.fakes.clock import FakeClock


def test_there_is_time_at_first():
    assert TimeBudget(0.05, FakeClock()).allows()


def test_what_was_too_much_is_made_up_for():
    clock = FakeClock()
    budget = TimeBudget(0.1, clock)
    budget.allows()
    budget.spend(0.02)
    clock.advance(0.19)
    assert not budget.allows()
    clock.advance(0.02)
    assert budget.allows()


def test_an_idle_hour_saves_up_little():
    clock = FakeClock()
    budget = TimeBudget(1.0, clock)
    clock.advance(3600.0)
    assert budget.allows()
    budget.spend(MAX_SAVED_S + 0.001)
    assert not budget.allows()


@given(
    share=st.floats(0.01, 1.0),
    steps=st.lists(st.tuples(st.floats(0.0, 0.5), st.floats(0.0, 0.1)), max_size=60),
)
def test_over_any_time_no_more_is_spent_than_the_share(share, steps):
    clock = FakeClock(0.0)
    budget = TimeBudget(share, clock)
    spent, longest = 0.0, 0.0
    for pause_s, work_s in steps:
        clock.advance(pause_s)
        if budget.allows():
            clock.advance(work_s)
            budget.spend(work_s)
            spent += work_s
            longest = max(longest, work_s)
    assert spent <= share * clock.now_s + longest + 1e-9
