from __future__ import annotations

import pytest

from plugins.framework.attempt_budget import (
    UNLIMITED,
    AttemptBudget,
    AttemptBudgetExceededError,
)
from plugins.framework.cycle_state import CycleState
from tests.fakes.clock import FakeClock


def test_a_budget_holds_until_it_is_used_up() -> None:
    clock = FakeClock()
    budget = AttemptBudget(0.25, clock)
    clock.advance(0.24)
    budget.check()
    clock.advance(0.01)
    with pytest.raises(AttemptBudgetExceededError, match=r"budget of 0\.25 s") as raised:
        budget.check()
    assert raised.value.limit_s == 0.25


def test_without_a_limit_no_clock_is_read() -> None:
    def clock() -> float:
        raise AssertionError("read")

    AttemptBudget(float("inf"), clock).check()


def test_what_contains_failures_of_plugins_does_not_contain_this() -> None:
    assert not issubclass(AttemptBudgetExceededError, Exception)


def test_a_what_if_spends_the_budget_of_its_cycle() -> None:
    budget = AttemptBudget(1.0)
    assert CycleState(budget).copy().budget is budget
    assert CycleState().budget is UNLIMITED
