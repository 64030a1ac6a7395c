from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.informers import pages_come_from_cache, reflector_states
from scheduler.informers.reflector_states import (
    STEPS,
    Delay,
    Outcome,
    ReflectorMachine,
    State,
    ending_of,
)

S, P, W = State.STREAMING_LIST, State.PAGED_LIST, State.WATCHING


def test_the_drawing_shows_the_table() -> None:
    drawing = reflector_states.__doc__ or ""
    drawn = {
        (State[start], Outcome[outcome.upper()], State[end])
        for start, outcomes, end in re.findall(r"(\w+) --([a-z_, ]+)--> (\w+)", drawing)
        for outcome in outcomes.split(", ")
    }
    assert drawn == {(start, outcome, step.state) for (start, outcome), step in STEPS.items()}


IMPOSSIBLE = {
    (S, Outcome.LOSSY): "nothing is lost before there is something",
    (P, Outcome.LOSSY): "nothing is lost before there is something",
    (P, Outcome.ENDED): "a page is whole or has failed",
    (W, Outcome.SYNCED): "a watch is no list",
}


@pytest.mark.parametrize("outcome", Outcome, ids=lambda outcome: outcome.name)
@pytest.mark.parametrize("state", State, ids=lambda state: state.name)
def test_every_pair_has_a_step_or_a_reason_why_not(state: State, outcome: Outcome) -> None:
    assert ((state, outcome) in STEPS) != ((state, outcome) in IMPOSSIBLE)


@pytest.mark.parametrize(
    ("pair", "step"),
    [pytest.param(pair, step, id=f"{pair[0].name}-{pair[1].name}") for pair, step in STEPS.items()],
)
def test_only_progress_goes_without_a_delay(
    pair: tuple[State, Outcome], step: reflector_states.Step
) -> None:
    free = {(S, Outcome.SYNCED), (P, Outcome.SYNCED), (W, Outcome.ENDED), (S, Outcome.UNSUPPORTED)}
    assert (step.delay is Delay.NONE) == (pair in free)


def test_a_new_list_begins_with_a_stream_again() -> None:
    machine = ReflectorMachine()
    machine.step(Outcome.UNSUPPORTED)
    machine.step(Outcome.SYNCED)
    machine.step(Outcome.EXPIRED)
    assert machine.state is S


def test_where_pages_are_cheap_every_list_comes_in_pages() -> None:
    machine = ReflectorMachine(lists_in_pages=True)
    assert machine.state is P
    machine.step(Outcome.SYNCED)
    assert machine.state is W
    machine.step(Outcome.EXPIRED)
    assert machine.state is P


@pytest.mark.parametrize(
    ("version", "cheap"),
    [
        ("v1.33.9", False),
        ("v1.34.0", True),
        ("v1.36.3", True),
        ("v1.35.0-eks-1234", True),
        ("v2.0.0", True),
        ("unknown", False),
        ("", False),
    ],
)
def test_pages_are_cheap_where_the_server_reads_them_from_its_cache(
    version: str, cheap: bool
) -> None:
    assert pages_come_from_cache(version) == cheap


def test_a_streaming_list_that_never_completes_becomes_pages() -> None:
    machine = ReflectorMachine()
    machine.step(Outcome.ENDED)
    assert machine.state is S
    machine.step(Outcome.ENDED)
    assert machine.state is P


def test_a_server_that_is_down_is_no_reason_for_pages() -> None:
    machine = ReflectorMachine()
    for _ in range(100):
        machine.step(Outcome.FAILED)
    assert machine.state is S


def test_a_version_that_is_never_reached_is_given_up_after_three_tries() -> None:
    machine = ReflectorMachine()
    tries = 0
    while not machine.most_recent:
        machine.step(Outcome.TOO_LARGE)
        tries += 1
    assert tries == 3


def test_a_synced_list_asks_for_no_more_than_its_version_again() -> None:
    machine = ReflectorMachine()
    machine.step(Outcome.EXPIRED)
    assert machine.most_recent
    machine.step(Outcome.SYNCED)
    assert not machine.most_recent


def test_a_rewind_is_believed_after_five_reads_of_the_most_recent_state() -> None:
    machine = ReflectorMachine()
    machine.step(Outcome.REWOUND)  # of a read that may have been stale: asks for the most recent
    refused = 0
    while not machine.believes_rewind:
        machine.step(Outcome.REWOUND)
        refused += 1
    assert refused == 4


def test_lists_that_may_be_stale_are_never_a_reason_to_believe_a_rewind() -> None:
    machine = ReflectorMachine()
    machine.step(Outcome.REWOUND)
    machine.most_recent = False
    assert not machine.believes_rewind


@given(st.lists(st.sampled_from(Outcome)))
def test_a_failed_list_keeps_on_listing_until_synced(outcomes: list[Outcome]) -> None:
    machine = ReflectorMachine()
    for outcome in outcomes:
        if (machine.state, outcome) in IMPOSSIBLE:
            continue
        before = machine.state
        machine.step(outcome)
        assert (machine.state is W) == (
            outcome is Outcome.SYNCED
            or (before is W and outcome in (Outcome.ENDED, Outcome.FAILED, Outcome.DENIED))
        )


TOO_LARGE = "Too large resource version: 900, current: 800"


@pytest.mark.parametrize(
    ("status", "reason", "message", "outcome"),
    [
        pytest.param(410, "Expired", "", Outcome.EXPIRED, id="expired"),
        pytest.param(410, "Gone", "", Outcome.EXPIRED, id="gone"),
        pytest.param(0, "Expired", "", Outcome.EXPIRED, id="expired without a code"),
        pytest.param(504, "Timeout", TOO_LARGE, Outcome.TOO_LARGE, id="too large"),
        pytest.param(
            500, "InternalError", TOO_LARGE, Outcome.TOO_LARGE, id="too large, old server"
        ),
        pytest.param(504, "Timeout", "", Outcome.FAILED, id="timeout"),
        pytest.param(401, "Unauthorized", "", Outcome.DENIED, id="unauthorized"),
        pytest.param(403, "Forbidden", "", Outcome.DENIED, id="forbidden"),
        pytest.param(400, "BadRequest", "", Outcome.UNSUPPORTED, id="bad request"),
        pytest.param(422, "Invalid", "", Outcome.UNSUPPORTED, id="invalid"),
        pytest.param(404, "NotFound", "", Outcome.FAILED, id="resource not served"),
        pytest.param(429, "TooManyRequests", "", Outcome.FAILED, id="throttled"),
        pytest.param(500, "InternalError", "", Outcome.FAILED, id="internal error"),
        pytest.param(None, "Unreachable", "", Outcome.FAILED, id="no answer"),
    ],
)
def test_what_follows_from_an_error(
    status: int | None, reason: str, message: str, outcome: Outcome
) -> None:
    assert ending_of(status, reason, message, None).outcome is outcome
