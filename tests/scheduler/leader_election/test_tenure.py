from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.leader_election import ElectionTimes, Standing, Tenure, boot_clock, tenure
from tests.fakes.clock import FakeClock

TIMES = ElectionTimes(lease_s=15.0, renew_s=10.0, retry_s=2.0)


def leading(clock: FakeClock) -> Tenure:
    made = Tenure(TIMES, clock)
    made.won(clock())
    return made


def in_standing(standing: Standing, clock: FakeClock) -> Tenure:
    made = Tenure(TIMES, clock)
    moves = {
        Standing.STANDBY: [],
        Standing.LEADING: ["won"],
        Standing.CLOSING: ["won", "close"],
        Standing.RELEASED: ["won", "close", "released"],
        Standing.LOST: ["won", "lose"],
    }
    for move in moves[standing]:
        act(made, move, clock())
    assert made.standing is standing
    return made


def act(made: Tenure, move: str, now: float) -> None:
    if move in ("won", "renewed"):
        getattr(made, move)(now)
    else:
        getattr(made, move)()


@pytest.mark.parametrize(
    ("standing", "move"),
    [
        pytest.param(standing, move, id=f"{standing.value}-{move}")
        for standing, move in itertools.product(
            Standing, ["won", "renewed", "close", "released", "lose"]
        )
    ],
)
def test_each_stimulus_does_what_the_table_says(standing: Standing, move: str) -> None:
    clock = FakeClock()
    made = in_standing(standing, clock)
    act(made, move, clock())
    named = {"close": "closed", "lose": "lost"}.get(move, move)
    assert made.standing is tenure.MOVES.get((standing, named), standing)


def test_the_drawing_shows_the_table() -> None:
    drawn = set()
    for line in (tenure.__doc__ or "").splitlines():
        for froms, what, to in re.findall(r"([a-z, ]+) --(\w+)--> (?=(\w+))", line):
            drawn |= {
                (Standing(each.strip()), what, Standing(to)) for each in froms.strip().split(", ")
            }
    assert drawn == {(before, what, after) for (before, what), after in tenure.MOVES.items()}


@pytest.mark.parametrize(
    ("standing", "granted"),
    [
        pytest.param(Standing.STANDBY, 0.0, id="a standby writes nothing"),
        pytest.param(Standing.LEADING, 3.0, id="a leader writes"),
        pytest.param(Standing.CLOSING, 0.0, id="whoever hands over starts no more writes"),
        pytest.param(Standing.RELEASED, 0.0, id="nor once that is done"),
        pytest.param(Standing.LOST, 0.0, id="nor who was deposed"),
    ],
)
def test_who_may_write(standing: Standing, granted: float) -> None:
    assert in_standing(standing, FakeClock()).grant_s(3.0) == granted


@pytest.mark.parametrize(
    ("after_s", "asked_s", "granted_s"),
    [
        pytest.param(0.0, 30.0, 15.0, id="never past the end of the lease"),
        pytest.param(9.0, 30.0, 6.0, id="less as time goes by"),
        pytest.param(9.0, 2.0, 2.0, id="what was asked for, if there is room"),
        pytest.param(10.0, 0.001, 0.0, id="nothing from the renew deadline on"),
        pytest.param(3600.0, 30.0, 0.0, id="nothing after an hour's pause"),
    ],
)
def test_what_a_write_is_granted(after_s: float, asked_s: float, granted_s: float) -> None:
    clock = FakeClock()
    made = leading(clock)
    clock.advance(after_s)
    assert made.grant_s(asked_s) == granted_s


def test_a_write_that_asks_too_late_is_how_the_loss_is_noticed() -> None:
    clock = FakeClock()
    made = leading(clock)
    clock.advance(10.0)
    made.grant_s(1.0)
    assert made.standing is Standing.LOST


def test_a_renewal_whose_answer_comes_too_late_does_not_count() -> None:
    clock = FakeClock()
    made = leading(clock)
    clock.advance(9.0)
    sent_s = clock()
    clock.advance(1.0)
    made.renewed(sent_s)
    assert made.standing is Standing.LOST


def test_a_renewal_counts_from_when_it_was_sent() -> None:
    clock = FakeClock()
    made = leading(clock)
    clock.advance(4.0)
    sent_s = clock()
    clock.advance(5.0)
    made.renewed(sent_s)
    assert made.left_s == 5.0


def test_a_lease_won_by_an_answer_that_came_too_late_is_not_led_by() -> None:
    clock = FakeClock()
    made = Tenure(TIMES, clock)
    sent_s = clock()
    clock.advance(10.0)
    made.won(sent_s)
    assert made.standing is Standing.STANDBY


@given(
    st.lists(
        st.tuples(st.sampled_from(["renewed", "grant"]), st.floats(0, 12), st.floats(0.001, 60)),
        max_size=30,
    )
)
def test_no_write_that_is_granted_can_end_after_the_lease(
    steps: list[tuple[str, float, float]],
) -> None:
    """I6."""
    clock = FakeClock()
    made = leading(clock)
    renewed_s = clock()
    for what, pause_s, timeout_s in steps:
        clock.advance(pause_s)
        now = clock()
        if what == "renewed":
            made.renewed(now)
            if made.standing is Standing.LEADING:
                renewed_s = now
            continue
        granted_s = made.grant_s(timeout_s)
        if granted_s > 0:
            assert now - renewed_s < TIMES.renew_s
            assert now + granted_s <= renewed_s + TIMES.lease_s + 1e-9


def test_the_clock_counts_on_while_a_machine_sleeps() -> None:
    before = boot_clock()
    assert boot_clock() >= before
