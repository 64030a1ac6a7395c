"""One write: sent again, settled by asking, or given up."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

import pytest

from scheduler.api_writes.settle import (
    AGAIN,
    MAX_PAUSE_S,
    NO_MAX_PAUSE,
    REFUSED,
    RETRIES,
    THROTTLED,
    Failure,
    settle,
    why_given_up,
)
from scheduler.client.errors import Action, ApiError
from tests.fakes.refusals import lost, refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

LOST = lost("PATCH")
MAX_TRIES = 3


def error(status: int | None, **more: Any) -> ApiError:
    return refusal("PATCH", status, **more)


class Scene:
    """One write, what it is answered, and what is found when it is asked about."""

    def __init__(self, answers: Sequence[ApiError], found: Sequence[str | None] | None) -> None:
        self.answers = list(answers)
        self.found = None if found is None else list(found)
        self.story: list[str] = []
        """``call``, ``pause`` and ``ask`` in order."""

    async def call(self) -> str:
        self.story.append("call")
        if self.answers:
            raise self.answers.pop(0)
        return "accepted"

    async def pause(self, seconds: float) -> None:
        assert seconds > 0
        self.story.append("pause")

    async def ask(self, failure: Failure) -> str | None:
        assert self.found is not None
        self.story.append("ask")
        return self.found.pop(0)

    def play(self) -> str | Failure:
        return asyncio.run(
            settle(
                self.call,
                lambda failure: why_given_up(failure, MAX_TRIES),
                self.pause,
                random.Random(1),
                None if self.found is None else self.ask,
            )
        )


@pytest.mark.parametrize(
    ("answers", "found", "story"),
    [
        pytest.param([], [], "call", id="accepted"),
        pytest.param([error(429)], [], "call pause call", id="not taken up"),
        pytest.param([LOST], [None], "call pause ask call", id="lost, not carried out"),
        pytest.param([LOST], None, "call pause call", id="lost, and nothing is lost by a second"),
    ],
)
def test_a_write_is_sent_until_it_is_accepted(answers, found, story):
    scene = Scene(answers, found)
    assert scene.play() == "accepted"
    assert " ".join(scene.story) == story


@pytest.mark.parametrize(
    ("answers", "found", "story"),
    [
        pytest.param([LOST], ["done"], "call pause ask", id="lost"),
        pytest.param([error(503)], ["done"], "call pause ask", id="in doubt"),
        pytest.param([LOST, error(409)], [None, "done"], "call pause ask call ask", id="conflict"),
        pytest.param([error(404)], ["done"], "call ask", id="not found"),
        pytest.param(
            [LOST] * MAX_TRIES,
            [*[None] * (MAX_TRIES - 1), "done"],
            "call pause ask " * (MAX_TRIES - 1) + "call pause ask",
            id="the last one took effect",
        ),
    ],
)
def test_a_write_that_took_effect_all_the_same_is_not_sent_again(answers, found, story):
    scene = Scene(answers, found)
    assert scene.play() == "done"
    assert " ".join(scene.story) == story


@pytest.mark.parametrize(
    ("answers", "found", "why", "story"),
    [
        pytest.param([error(403)], [], REFUSED, "call", id="forbidden"),
        pytest.param([error(422)], [], REFUSED, "call", id="invalid"),
        pytest.param([error(404)], [None], REFUSED, "call ask", id="not found, and still there"),
        pytest.param([error(409)], None, REFUSED, "call", id="conflict, nobody to ask"),
        pytest.param(
            [error(429)] * MAX_TRIES, [], RETRIES, "call pause call pause call", id="too often"
        ),
        pytest.param(
            [error(503, details={"retryAfterSeconds": 60})],
            [None],
            THROTTLED,
            "call pause ask",
            id="to wait for long, in doubt",
        ),
    ],
)
def test_a_write_is_given_up_once_it_is_known_to_have_no_effect(answers, found, why, story):
    scene = Scene(answers, found)
    last = answers[-1]
    end = scene.play()
    assert isinstance(end, Failure)
    assert (end.why, end.error, end.tries) == (why, last, len(answers))
    assert " ".join(scene.story) == story


def test_a_mistake_of_ours_is_no_failure_of_the_write():
    scene = Scene([ValueError("no such path")], [])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="no such path"):
        scene.play()


@pytest.mark.parametrize(
    ("action", "delay_s", "options", "expected"),
    [
        pytest.param(Action.RETRY, 1.0, {}, "", id="again"),
        pytest.param(Action.CONFLICT, 0.0, {}, REFUSED, id="a conflict is no reason for a second"),
        pytest.param(
            Action.CONFLICT, 0.0, {"again": AGAIN | {Action.CONFLICT}}, "", id="unless it is"
        ),
        pytest.param(Action.RETRY, MAX_PAUSE_S + 1, {}, THROTTLED, id="for long"),
        pytest.param(
            Action.RETRY, MAX_PAUSE_S + 1, {"max_pause_s": NO_MAX_PAUSE}, "", id="time enough"
        ),
    ],
)
def test_when_a_write_is_given_up(action, delay_s, options, expected):
    failure = Failure(ApiError(429, "Busy", "later", retry_after_s=delay_s), action, delay_s, 1)
    assert why_given_up(failure, 2, **options) == expected


def test_a_long_backoff_of_our_own_is_no_reason_to_give_up():
    failure = Failure(error(429), Action.RETRY, MAX_PAUSE_S + 1, 8)
    assert why_given_up(failure, 12) == ""
