from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.client.errors import (
    BACKOFF_CAP_S,
    MESSAGE_LIMIT,
    RETRY_AFTER_CAP_S,
    Action,
    ApiError,
    backoff_s,
    classify,
)


def error(status: int | None, reason: str = "", **more: object) -> ApiError:
    return ApiError(status, reason, "message", **more)  # type: ignore[arg-type]


ROWS = [
    pytest.param(error(None, "Unreachable"), Action.RETRY, id="never-connected"),
    pytest.param(error(None, "Disconnected"), Action.RETRY, id="read-dropped"),
    pytest.param(error(None, "Timeout"), Action.RETRY, id="read-timed-out"),
    pytest.param(error(None, "BadResponse"), Action.RETRY, id="gateway-talks-nonsense"),
    pytest.param(error(None, "Credentials"), Action.RETRY, id="token-not-to-be-had"),
    pytest.param(error(None, "Disconnected", ambiguous=True), Action.SETTLE, id="write-dropped"),
    pytest.param(error(None, "Timeout", ambiguous=True), Action.SETTLE, id="write-timed-out"),
    pytest.param(error(500, ambiguous=True), Action.SETTLE, id="write-500"),
    pytest.param(error(503, ambiguous=True), Action.SETTLE, id="write-503"),
    pytest.param(error(504, ambiguous=True), Action.SETTLE, id="write-504"),
    pytest.param(error(500), Action.RETRY, id="read-500"),
    pytest.param(error(503), Action.RETRY, id="read-503"),
    pytest.param(error(429), Action.RETRY, id="throttled"),
    pytest.param(error(408), Action.RETRY, id="server-saw-no-request"),
    pytest.param(error(404), Action.GONE, id="not-found"),
    pytest.param(error(410), Action.GONE, id="version-too-old"),
    pytest.param(error(409), Action.CONFLICT, id="conflict"),
    pytest.param(error(403), Action.FORBIDDEN, id="forbidden"),
    pytest.param(error(401), Action.FORBIDDEN, id="unauthorized"),
    pytest.param(error(400), Action.GIVE_UP, id="bad-request"),
    pytest.param(error(422), Action.GIVE_UP, id="invalid"),
    pytest.param(
        ApiError(422, "Invalid", "metadata.uid: field is immutable"), Action.GONE, id="another-uid"
    ),
    pytest.param(error(307), Action.GIVE_UP, id="redirected"),
    pytest.param(error(None, "Fenced"), Action.GIVE_UP, id="fenced"),
    pytest.param(error(None, "ResponseTooLarge"), Action.GIVE_UP, id="answer-too-large"),
]


@pytest.mark.parametrize(("failure", "action"), ROWS)
def test_each_failure_has_its_action(failure: ApiError, action: Action) -> None:
    assert classify(failure, 0, random.Random(1)).action is action


@pytest.mark.parametrize("status", [404, 409, 410, 400])
def test_what_waiting_cannot_change_is_not_waited_for(status: int) -> None:
    assert classify(error(status), 5, random.Random(1)).delay_s == 0


@pytest.mark.parametrize("status", [401, 403, 429, 503])
def test_what_may_change_is_never_tried_again_at_once(status: int) -> None:
    assert classify(error(status), 0, random.Random(1)).delay_s > 0


@given(attempt=st.integers(0, 10_000), seed=st.integers(0, 1000))
def test_the_backoff_stays_in_its_bounds(attempt: int, seed: int) -> None:
    assert 0 < backoff_s(attempt, random.Random(seed)) <= BACKOFF_CAP_S


@given(attempt=st.integers(0, 100), seed=st.integers(0, 1000))
def test_the_backoff_grows_but_for_its_jitter(attempt: int, seed: int) -> None:
    later = backoff_s(attempt + 1, random.Random(seed))
    assert later >= backoff_s(attempt, random.Random(seed))


@given(asked_s=st.floats(0, 1e9), attempt=st.integers(0, 40), seed=st.integers(0, 1000))
def test_retry_after_is_obeyed_up_to_its_cap(asked_s: float, attempt: int, seed: int) -> None:
    verdict = classify(error(429, retry_after_s=asked_s), attempt, random.Random(seed))
    assert verdict.delay_s >= min(asked_s, RETRY_AFTER_CAP_S)
    assert verdict.delay_s <= max(RETRY_AFTER_CAP_S * 1.1, BACKOFF_CAP_S)


def test_the_same_seed_gives_the_same_delay() -> None:
    one, two = (classify(error(429), 3, random.Random(7)) for _ in range(2))
    assert one == two


def test_a_servers_message_is_cut() -> None:
    failure = ApiError(500, "InternalError", "x" * 1_000_000)
    assert len(failure.message) <= MESSAGE_LIMIT + 3


def test_the_text_names_the_request_the_status_and_the_reason() -> None:
    failure = ApiError(409, "Conflict", "pod is bound").about("POST", "/api/v1/x")
    assert str(failure) == "POST /api/v1/x: 409 Conflict: pod is bound"
