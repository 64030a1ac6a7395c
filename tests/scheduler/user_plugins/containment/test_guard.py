"""What becomes of calls into a user's plugin that go wrong."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from plugins.authoring import ABSENT, PolicyAnswerError
from scheduler.user_plugins.containment.circuit_breaker import BreakerRules, State
from scheduler.user_plugins.containment.crash_note import Note
from scheduler.user_plugins.containment.guard import ContainedGuard, PluginFailedError
from scheduler.user_plugins.containment.options import ContainmentOptions
from scheduler.user_plugins.containment.plugin_code import PluginCode
from scheduler.user_plugins.containment.watchdog import Watchdog
from tests.fakes.clock import FakeClock

RULES = BreakerRules(failures=3, window_s=60.0, open_s=30.0)
OPTIONS = ContainmentOptions(breaker=RULES)
CODE = PluginCode("Cheap", "digest", __file__)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def note() -> Note:
    return Note(None)


@pytest.fixture
def guard(clock, note) -> ContainedGuard:
    return ContainedGuard(CODE, note, OPTIONS, clock=clock)


def fails() -> int:
    raise KeyError("example.com/rack")


def ask(guard: ContainedGuard, function=lambda: 7, point: str = "score"):
    """What came of a call: its answer, or what it raised as text."""
    try:
        return guard.call("Cheap", point, function)
    except PluginFailedError as error:
        return str(error)


def break_it(guard: ContainedGuard) -> None:
    for _ in range(RULES.failures):
        ask(guard, fails)


def test_an_answer_comes_through(guard):
    assert ask(guard) == 7


def test_a_failure_names_method_exception_and_line_of_the_users_file(guard):
    line = fails.__code__.co_firstlineno + 1
    assert ask(guard, fails) == (
        f"score: KeyError: 'example.com/rack' (test_guard.py, line {line})"
    )


def test_a_wrong_answer_is_told_in_its_own_words(guard):
    def wrong() -> int:
        raise PolicyAnswerError("shape", "score returned None")

    assert ask(guard, wrong).startswith("score: score returned None (test_guard.py, line ")
    assert guard.report().failures == {"shape": 1}


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(SystemExit(3), id="it ends the process"),
        pytest.param(KeyboardInterrupt(), id="it plays Ctrl-C"),
        pytest.param(GeneratorExit(), id="what no Exception is"),
        pytest.param(RecursionError("too deep"), id="it calls itself"),
    ],
)
def test_nothing_that_it_raises_ends_the_thread(guard, error):
    def raises() -> int:
        raise error

    assert type(error).__name__ in ask(guard, raises)


def test_after_some_failures_it_is_passed_over(guard):
    break_it(guard)
    assert ask(guard) is ABSENT
    assert guard.report().passed_over == 1


def test_its_pods_wait_instead_if_it_says_so(clock, note):
    guard = ContainedGuard(PluginCode("Cheap", failure_policy="Fail"), note, OPTIONS, clock=clock)
    break_it(guard)
    clock.advance(10.0)
    assert ask(guard) == "switched off for another 20 s: score: KeyError: 'example.com/rack'"


def test_it_is_asked_again_when_its_time_is_over(guard, clock):
    break_it(guard)
    clock.advance(30.0)
    assert ask(guard) == 7
    assert guard.report().state is State.CLOSED


def test_answers_before_and_after_are_told_apart(guard, clock):
    before = guard.calls
    break_it(guard)
    passed_over = guard.calls
    clock.advance(30.0)
    ask(guard)
    assert len({before, passed_over, guard.calls}) == 3


def test_a_slow_answer_counts_all_the_same(guard, clock):
    def slow() -> int:
        clock.advance(1.0)
        return 7

    assert ask(guard, slow) == 7
    assert guard.report().failures == {"slow": 1}


def test_one_slow_call_alone_does_not_switch_it_off(guard, clock):
    ask(guard, lambda: clock.advance(1000.0))
    assert guard.report().state is State.CLOSED


def test_a_plugin_that_sleeps_is_switched_off_at_its_second_call(guard, clock):
    for _ in range(2):
        ask(guard, lambda: clock.advance(1.0))
    assert guard.report().state is State.OPEN
    assert "takes 125 ms on average, more than its 10 ms" not in guard.report().trouble
    assert "ms on average, more than its 10 ms" in guard.report().trouble


def test_a_first_call_may_take_longer_it_makes_the_columns(guard, clock):
    ask(guard, lambda: clock.advance(0.15))
    for _ in range(100):
        ask(guard, lambda: clock.advance(0.001))
    assert guard.report().failures == {}


def test_quick_calls_after_a_slow_one_are_no_failures(guard, clock):
    ask(guard, lambda: clock.advance(1.0))
    for _ in range(20):
        ask(guard, lambda: clock.advance(0.001))
    assert guard.report().failures == {"slow": 1}


def test_the_note_says_what_is_at_work(guard, note):
    seen = []
    ask(guard, lambda: seen.append(note.at_work()))
    assert [(each.plugin, each.digest, each.point) for each in seen] == [
        ("Cheap", "digest", "score")
    ]
    assert note.at_work() is None


def test_the_note_is_clean_after_a_failure(guard, note):
    ask(guard, fails)
    assert note.at_work() is None


def test_trouble_is_told_for_a_while_and_then_forgotten(guard, clock):
    assert guard.report().trouble == ""
    ask(guard, fails)
    assert guard.report().trouble.startswith("fails: score: KeyError")
    clock.advance(RULES.window_s)
    assert guard.report().trouble == ""


def test_trouble_says_that_it_is_passed_over(guard):
    break_it(guard)
    assert guard.report().trouble.startswith("fails, and it is skipped: score: KeyError")


def test_whoever_wants_to_know_is_told_of_failures_and_of_their_end(clock, note):
    told = []

    class Looks(Watchdog):
        def look(self) -> None:
            told.append(1)

    guard = ContainedGuard(CODE, note, OPTIONS, Looks(note, timeout_s=0.0), clock)
    ask(guard)
    assert not told
    break_it(guard)
    assert len(told) == RULES.failures
    clock.advance(30.0)
    ask(guard)
    assert len(told) == RULES.failures + 1


def test_code_that_is_left_out_is_never_called(clock, note):
    guard = ContainedGuard(CODE, note, OPTIONS, clock=clock, left_out="filter did not come back")
    assert ask(guard, fails) is ABSENT
    assert guard.report().left_out
    assert guard.report().trouble == ("is left out, and it is skipped: filter did not come back")


def test_pods_of_code_that_is_left_out_wait_if_it_says_so(clock, note):
    code = PluginCode("Cheap", "digest", failure_policy="Fail")
    guard = ContainedGuard(code, note, OPTIONS, clock=clock, left_out="it hangs")
    assert ask(guard, fails) == "left out: it hangs"


def test_one_huge_array_fails_with_its_size(guard):
    assert "Unable to allocate" in ask(guard, lambda: np.zeros(1 << 50))
    assert guard.report().failures == {"memory": 1}


def test_a_plugin_that_raises_for_ever_costs_little_while_it_is_off(guard):
    break_it(guard)
    assert all(ask(guard, sys.exit) is ABSENT for _ in range(100))
