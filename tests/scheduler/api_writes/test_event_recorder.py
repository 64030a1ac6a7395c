from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest
import structlog

from scheduler.api_writes.event_recorder import MAX_TRIES, EventRecorder
from scheduler.api_writes.event_series import FINISH_S, REFRESH_S
from tests.builders import pod
from tests.fakes.clock import FakeClock
from tests.fakes.ports import FakeExecutor, fake_ports
from tests.fakes.refusals import lost, refusal
from tests.fakes.write_api import FakeWriteApi

if TYPE_CHECKING:
    from scheduler.client.errors import ApiError

POD = pod("web-0", namespace="shop").uid("u-1").build()
REFUSED = ("Warning", "FailedScheduling", "Scheduling")


def error(status: int | None, *, ambiguous: bool = False) -> ApiError:
    return lost("POST") if ambiguous else refusal("POST", status)


async def pause(_: float) -> None:
    await asyncio.sleep(0)


class Scene:
    """A recorder that has been started, its API and its clock."""

    def __init__(self, *answers: ApiError | None, **options) -> None:
        self.api = FakeWriteApi(answers)
        self.clock = FakeClock()
        self.recorder = EventRecorder(
            fake_ports(self.api, self.clock, wall=self.clock, executor=FakeExecutor(pause)),
            instance="berth-test",
            **options,
        )

    async def __aenter__(self):
        self.recorder.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.recorder.stop()

    def refuse(self, note: str = "no room", of=POD) -> None:
        self.recorder.event(of, *REFUSED, note)

    async def sent(self) -> None:
        assert await self.recorder.drain(30) == 0

    async def until(self, condition) -> None:
        async with asyncio.timeout(30):
            while not condition():  # noqa: ASYNC110 - not every condition has an event
                await asyncio.sleep(0)


def play(scene):
    """Turn a coroutine function into a test."""
    return lambda: asyncio.run(scene())


def pods(count: int):
    return [pod(f"p{number}").uid(f"u{number}").build() for number in range(count)]


# --- what is sent -----------------------------------------------------------------------------


@play
async def test_an_event_is_created_in_the_pods_namespace():
    async with Scene() as scene:
        scene.recorder.event(POD, "Normal", "Scheduled", "Binding", "assigned to n1")
        await scene.sent()
    (call,) = scene.api.calls
    assert (call.verb, call.namespace) == ("create", "shop")
    assert call.body["regarding"]["uid"] == "u-1"
    assert call.body["note"] == "assigned to n1"
    assert call.body["reportingInstance"] == "berth-test"


@play
async def test_an_event_has_the_time_at_which_it_happened():
    async with Scene() as scene:
        scene.refuse()
        scene.clock.advance(60)
        await scene.sent()
    assert scene.api.calls[0].body["eventTime"] == "1970-01-01T00:16:40.000000Z"


@play
async def test_events_of_one_instant_have_different_names():
    async with Scene() as scene:
        for number in range(100):
            scene.refuse(f"reason {number}")
        await scene.sent()
    assert len({call.name for call in scene.api.calls}) == 100


@play
async def test_a_long_note_is_cut():
    async with Scene() as scene:
        scene.refuse("x" * 5_000)
        await scene.sent()
    assert len(scene.api.calls[0].body["note"]) == 1024


# --- series -----------------------------------------------------------------------------------


@play
async def test_the_first_repetition_is_patched_into_the_event():
    async with Scene() as scene:
        scene.refuse()
        await scene.sent()
        scene.clock.advance(10)
        scene.refuse()
        await scene.sent()
    created, patched = scene.api.calls
    assert (patched.verb, patched.name) == ("patch", created.name)
    assert patched.body == {
        "series": {"count": 2, "lastObservedTime": "1970-01-01T00:16:50.000000Z"}
    }


@play
async def test_later_repetitions_wait_for_the_refresh():
    async with Scene() as scene:
        for _ in range(5):
            scene.refuse()
            await scene.sent()
        assert scene.api.verbs == ["create", "patch"]
        scene.clock.advance(REFRESH_S)
        scene.recorder.sweep()
        await scene.sent()
    assert scene.api.calls[-1].body["series"]["count"] == 5


@play
async def test_a_series_that_falls_silent_gets_its_last_count():
    async with Scene() as scene:
        for _ in range(3):
            scene.refuse()
            await scene.sent()
        scene.clock.advance(FINISH_S)
        scene.recorder.sweep()
        scene.refuse()
        await scene.sent()
    assert scene.api.verbs == ["create", "patch", "patch", "create"]
    assert scene.api.calls[2].body["series"]["count"] == 3


@play
async def test_a_finished_series_without_news_costs_no_request():
    async with Scene() as scene:
        scene.refuse()
        await scene.sent()
        scene.clock.advance(FINISH_S)
        scene.recorder.sweep()
        await scene.sent()
    assert scene.api.verbs == ["create"]


@play
async def test_repetitions_of_an_event_that_still_waits_go_with_it():
    async with Scene(workers=1) as scene:
        scene.api.hold()
        scene.refuse("something else")
        await scene.until(lambda: scene.api.waiting)
        for _ in range(3):
            scene.refuse()
        await scene.until(lambda: scene.recorder.statistics().folded == 2)
        scene.api.gate.set()
        await scene.sent()
    assert scene.api.verbs == ["create", "create"]
    assert scene.api.calls[1].body["series"]["count"] == 3


@play
async def test_a_repetition_during_the_request_is_not_lost():
    async with Scene() as scene:
        scene.api.hold()
        scene.refuse()
        await scene.until(lambda: scene.api.waiting)
        scene.refuse()
        await scene.until(lambda: scene.recorder.statistics().folded)
        assert scene.api.waiting == 1
        scene.api.gate.set()
        await scene.sent()
    assert scene.api.verbs == ["create", "patch"]


@play
async def test_an_event_that_has_expired_is_created_again_with_its_count():
    async with Scene(None, error(404)) as scene:
        scene.refuse()
        await scene.sent()
        scene.refuse()
        await scene.sent()
    assert scene.api.verbs == ["create", "patch", "create"]
    assert scene.api.calls[2].body["series"]["count"] == 2
    assert scene.recorder.statistics().failed == 0


# --- failures ---------------------------------------------------------------------------------

LOST = error(None, ambiguous=True)


@pytest.mark.parametrize(
    ("answers", "verbs"),
    [
        pytest.param([error(503)], ["create"] * 2, id="not available"),
        pytest.param([error(429)] * 3, ["create"] * 4, id="too many requests"),
        pytest.param([error(None)], ["create"] * 2, id="unreachable"),
        pytest.param([LOST], ["create"] * 2, id="lost, not carried out"),
        pytest.param([LOST, error(409)], ["create"] * 2, id="lost, carried out"),
    ],
)
def test_an_event_is_sent_in_spite_of(answers, verbs):
    async def scene():
        async with Scene(*answers) as scene:
            scene.refuse()
            await scene.sent()
        assert scene.api.verbs == verbs
        assert scene.recorder.statistics().sent == 1
        assert scene.recorder.statistics().failed == 0

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("answers", "calls"),
    [
        pytest.param([error(403)], 1, id="the namespace is being terminated"),
        pytest.param([error(404)], 1, id="the namespace is gone"),
        pytest.param([error(422)], 1, id="invalid"),
        pytest.param([error(503)] * MAX_TRIES, MAX_TRIES, id="refused to the end"),
    ],
)
def test_an_event_is_given_up_and_counted(answers, calls):
    async def scene():
        async with Scene(*answers) as scene:
            scene.refuse()
            await scene.sent()
            assert len(scene.api.calls) == calls
            assert scene.recorder.statistics().failed == 1
            scene.refuse("the next one")
            await scene.sent()
        assert scene.recorder.statistics().sent == 1

    asyncio.run(scene())


@play
async def test_what_was_given_up_is_created_and_not_patched_the_next_time():
    async with Scene(error(403)) as scene:
        scene.refuse()
        await scene.sent()
        scene.refuse()
        await scene.sent()
    assert scene.api.verbs == ["create", "create"]


@play
async def test_where_all_events_are_refused_each_is_sent_once_until_one_is_accepted():
    elsewhere = pod("b", namespace="other").uid("u-b").build()
    answers = [*[error(500)] * (MAX_TRIES + 2), error(500), None, None, error(500), None]
    async with Scene(*answers, workers=1) as scene:
        calls = []
        for note, of in (
            ("1", POD),
            ("2", POD),
            ("3", POD),
            ("4", elsewhere),
            ("5", POD),
            ("6", POD),
        ):
            before = len(scene.api.calls)
            scene.refuse(note, of=of)
            await scene.sent()
            calls.append(len(scene.api.calls) - before)
    assert calls == [MAX_TRIES, 1, 1, 2, 1, 2]


@play
async def test_an_event_that_shall_wait_for_long_is_given_up():
    later = refusal("POST", 429, details={"retryAfterSeconds": 60})
    async with Scene(later) as scene:
        scene.refuse()
        await scene.sent()
        assert (len(scene.api.calls), scene.recorder.statistics().failed) == (1, 1)


@play
async def test_a_count_that_is_refused_is_not_tried_again_and_again():
    async with Scene(None, *[error(403)] * 5) as scene:
        for _ in range(2):
            scene.refuse()
            await scene.sent()
    assert scene.api.verbs == ["create", "patch"]
    assert scene.recorder.statistics().failed == 1


@play
async def test_a_mistake_of_ours_costs_one_event():
    async with Scene(ValueError("no such path")) as scene:
        scene.refuse()
        scene.refuse("the next one")
        await scene.sent()
    statistics = scene.recorder.statistics()
    assert (statistics.failed, statistics.sent) == (1, 1)


# --- bounds -----------------------------------------------------------------------------------


@play
async def test_beyond_the_capacity_the_newest_are_dropped_and_counted():
    async with Scene(capacity=10, workers=1) as scene:
        scene.api.hold()
        everyone = pods(30)
        scene.refuse(of=everyone[0])
        await scene.until(lambda: scene.api.waiting)
        for one in everyone[1:]:
            scene.refuse(of=one)
        assert scene.recorder.statistics().dropped == 19
        scene.api.gate.set()
        await scene.sent()
    assert [call.body["regarding"]["name"] for call in scene.api.calls] == [
        f"p{number}" for number in range(11)
    ]


@play
async def test_there_is_room_again_once_events_are_sent():
    async with Scene(capacity=2) as scene:
        for one in pods(6):
            scene.refuse(of=one)
            await scene.sent()
    assert scene.recorder.statistics().dropped == 0


@play
async def test_events_from_other_threads_are_all_sent_or_dropped():
    async with Scene(capacity=200) as scene:
        everyone = pods(500)

        def record(half) -> None:
            for one in half:
                scene.refuse(of=one)

        threads = [threading.Thread(target=record, args=(everyone[start::2],)) for start in (0, 1)]
        for thread in threads:
            thread.start()
        await scene.until(lambda: not any(thread.is_alive() for thread in threads))
        await scene.sent()
    statistics = scene.recorder.statistics()
    assert statistics.sent + statistics.dropped == 500
    assert statistics.sent == len(scene.api.calls)


@pytest.mark.parametrize(
    ("waiting", "pressure", "in_flight"),
    [
        pytest.param(20, False, 16, id="no pressure: all workers"),
        pytest.param(20, True, 1, id="pressure, short queue: one worker"),
        pytest.param(35, True, 2, id="pressure, a third full: two workers"),
        pytest.param(90, True, 4, id="pressure, nearly full: four workers"),
    ],
)
def test_how_many_workers_go_on(waiting, pressure, in_flight):
    async def scene():
        async with Scene(capacity=100, pressure=lambda: pressure) as scene:
            scene.api.hold()
            for one in pods(waiting):
                scene.refuse(of=one)
            # Enough turns of the loop for every worker to come as far as it gets.
            for _ in range(50):
                await asyncio.sleep(0)
            assert scene.api.waiting == in_flight

    asyncio.run(scene())


@play
async def test_events_get_through_in_spite_of_lasting_pressure():
    async with Scene(pressure=lambda: True) as scene:
        for one in pods(50):
            scene.refuse(of=one)
        await scene.until(lambda: scene.recorder.statistics().sent >= 47)


# --- the end ----------------------------------------------------------------------------------


@play
async def test_draining_heeds_no_pressure():
    async with Scene(pressure=lambda: True) as scene:
        for one in pods(50):
            scene.refuse(of=one)
        assert await scene.recorder.drain(30) == 0
    assert scene.recorder.statistics().sent == 50


@play
async def test_draining_ends_when_time_is_up():
    async with Scene() as scene:
        scene.api.hold()
        for one in pods(7):
            scene.refuse(of=one)
        assert await scene.recorder.drain(0.01) == 7


@play
async def test_after_the_end_events_are_dropped():
    async with Scene() as scene:
        await scene.recorder.stop()
        scene.refuse()
    assert scene.recorder.statistics().dropped == 1
    assert not scene.api.calls


def test_dropped_events_are_told_about_once():
    async def scene():
        async with Scene(capacity=0) as scene:
            scene.refuse()
            scene.recorder.sweep()
            scene.recorder.sweep()

    with structlog.testing.capture_logs() as lines:
        asyncio.run(scene())
    assert [line["count"] for line in lines] == [1]
