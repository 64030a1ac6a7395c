from __future__ import annotations

import pytest

from plugins.framework.attempt_budget import (
    UNLIMITED,
    AttemptBudget,
    AttemptBudgetExceededError,
    ReplayedBudget,
)
from plugins.framework.cycle_state import CycleState
from plugins.required_node_affinity import required_node_affinity, required_of
from tests.builders import PodBuilder, pod, requirement, term
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


def test_what_is_exempt_is_not_paid() -> None:
    clock = FakeClock()
    budget = AttemptBudget(0.25, clock)
    clock.advance(0.1)
    with budget.exempt():
        clock.advance(10)
    clock.advance(0.14)
    budget.check()
    assert budget.used_s() == pytest.approx(0.24)
    clock.advance(0.02)
    with pytest.raises(AttemptBudgetExceededError):
        budget.check()


def test_a_look_asks_the_dear_clock_only_when_the_cheap_one_could_mean_the_end() -> None:
    cheap, dear = FakeClock(), FakeClock()
    asked = 0

    def clock() -> float:
        nonlocal asked
        asked += 1
        return dear()

    budget = AttemptBudget(0.25, clock, cheap)
    for _ in range(200):
        cheap.advance(0.001)
        budget.check()
    assert asked == 1
    dear.advance(0.1)
    cheap.advance(0.1)
    budget.check()
    assert asked == 2
    cheap.advance(0.14)
    budget.check()
    assert asked == 2
    dear.advance(0.15)
    cheap.advance(0.02)
    with pytest.raises(AttemptBudgetExceededError):
        budget.check()


def test_a_replay_runs_out_at_the_look_where_it_did() -> None:
    budget = ReplayedBudget(0.25, 3)
    budget.check()
    budget.check()
    with pytest.raises(AttemptBudgetExceededError):
        budget.check()
    forever = ReplayedBudget(0.25, None)
    for _ in range(1_000):
        forever.check()


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


def test_a_glance_counts_only_when_it_is_the_last_look() -> None:
    clock = FakeClock()
    budget = AttemptBudget(0.25, clock)
    budget.check()
    for _ in range(10):
        budget.glance()
    assert budget.checks == 1
    clock.advance(1)
    with pytest.raises(AttemptBudgetExceededError):
        budget.glance()
    replayed = ReplayedBudget(0.25, budget.checks)
    replayed.check()
    replayed.glance()
    with pytest.raises(AttemptBudgetExceededError):
        replayed.check()


def test_what_was_used_is_told_by_the_dear_clock() -> None:
    cheap, dear = FakeClock(), FakeClock()
    budget = AttemptBudget(0.25, dear, cheap)
    cheap.advance(0.1)
    assert not budget.has_used(0.0625)
    dear.advance(0.07)
    assert budget.has_used(0.0625)
    assert not UNLIMITED.has_used(float("inf"))


def many_requirements() -> PodBuilder:
    keys = [requirement(f"k{index}", "Exists") for index in range(1_000)]
    return pod("many").node_affinity(*(term(each) for each in keys))


def test_compiling_what_a_pod_demands_ends_with_the_budget() -> None:
    clock = FakeClock()
    budget = AttemptBudget(0.25, clock)
    clock.advance(1)
    with pytest.raises(AttemptBudgetExceededError):
        required_node_affinity(many_requirements().build().spec, budget)


def test_what_a_pod_demands_is_compiled_once_in_an_attempt() -> None:
    state, info = CycleState(UNLIMITED), many_requirements().info()
    assert required_of(state, info) is required_of(state, info)
