from __future__ import annotations

import asyncio

import pytest
import structlog

from scheduler.api_writes.event_recorder import MAX_TRIES
from scheduler.api_writes.event_series import FINISH_S, REFRESH_S
from tests.scheduler.api_writes.scenes import POD, EventScene, play, pods

error = EventScene.error


# --- what is sent -----------------------------------------------------------------------------


@play
async def test_an_event_is_created_in_the_pods_namespace():
    async with EventScene() as scene:
        scene.writer.event(POD, "Normal", "Scheduled", "Binding", "assigned to n1")
        await scene.written()
    (call,) = scene.api.calls
    assert (call.verb, call.namespace) == ("create", "shop")
    assert call.body["regarding"]["uid"] == "u-1"
    assert call.body["note"] == "assigned to n1"
    assert call.body["reportingInstance"] == "berth-test"


@play
async def test_an_event_about_a_group_is_created_in_its_namespace():
    async with EventScene() as scene:
        told = (POD.metadata, "scheduling.k8s.io/v1alpha2", "Warning", "FailedScheduling")
        for _ in range(2):
            scene.writer.group_event(*told, "Scheduling", "3 of 4 fit")
        await scene.written()
    created = scene.api.calls[0]
    assert (created.verb, created.namespace) == ("create", "shop")
    assert created.body["regarding"]["kind"] == "PodGroup"
    assert created.body["regarding"]["apiVersion"] == "scheduling.k8s.io/v1alpha2"
    assert scene.writer.statistics().folded == 1


@play
async def test_an_event_has_the_time_at_which_it_happened():
    async with EventScene() as scene:
        scene.refuse()
        scene.clock.advance(60)
        await scene.written()
    assert scene.api.calls[0].body["eventTime"] == "1970-01-01T00:16:40.000000Z"


@play
async def test_events_of_one_instant_have_different_names():
    async with EventScene() as scene:
        for number in range(100):
            scene.refuse(f"reason {number}")
        await scene.written()
    assert len({call.name for call in scene.api.calls}) == 100


@play
async def test_a_long_note_is_cut():
    async with EventScene() as scene:
        scene.refuse("x" * 5_000)
        await scene.written()
    assert len(scene.api.calls[0].body["note"]) == 1024


# --- series -----------------------------------------------------------------------------------


@play
async def test_the_first_repetition_is_patched_into_the_event():
    async with EventScene() as scene:
        scene.refuse()
        await scene.written()
        scene.clock.advance(10)
        scene.refuse()
        await scene.written()
    created, patched = scene.api.calls
    assert (patched.verb, patched.name) == ("patch", created.name)
    assert patched.body == {
        "series": {"count": 2, "lastObservedTime": "1970-01-01T00:16:50.000000Z"}
    }


@play
async def test_later_repetitions_wait_for_the_refresh():
    async with EventScene() as scene:
        for _ in range(5):
            scene.refuse()
            await scene.written()
        assert scene.api.verbs == ["create", "patch"]
        scene.clock.advance(REFRESH_S)
        scene.writer.sweep()
        await scene.written()
    assert scene.api.calls[-1].body["series"]["count"] == 5


@play
async def test_a_series_that_falls_silent_gets_its_last_count():
    async with EventScene() as scene:
        for _ in range(3):
            scene.refuse()
            await scene.written()
        scene.clock.advance(FINISH_S)
        scene.writer.sweep()
        scene.refuse()
        await scene.written()
    assert scene.api.verbs == ["create", "patch", "patch", "create"]
    assert scene.api.calls[2].body["series"]["count"] == 3


@play
async def test_a_finished_series_without_news_costs_no_request():
    async with EventScene() as scene:
        scene.refuse()
        await scene.written()
        scene.clock.advance(FINISH_S)
        scene.writer.sweep()
        await scene.written()
    assert scene.api.verbs == ["create"]


@play
async def test_repetitions_of_an_event_that_still_waits_go_with_it():
    async with EventScene(workers=1) as scene:
        scene.api.hold()
        scene.refuse("something else")
        await scene.until(lambda: scene.api.waiting)
        for _ in range(3):
            scene.refuse()
        await scene.until(lambda: scene.writer.statistics().folded == 2)
        scene.api.gate.set()
        await scene.written()
    assert scene.api.verbs == ["create", "create"]
    assert scene.api.calls[1].body["series"]["count"] == 3


@play
async def test_a_repetition_during_the_request_is_not_lost():
    async with EventScene() as scene:
        scene.api.hold()
        scene.refuse()
        await scene.until(lambda: scene.api.waiting)
        scene.refuse()
        await scene.until(lambda: scene.writer.statistics().folded)
        assert scene.api.waiting == 1
        scene.api.gate.set()
        await scene.written()
    assert scene.api.verbs == ["create", "patch"]


@play
async def test_an_event_that_has_expired_is_created_again_with_its_count():
    async with EventScene(None, error(404)) as scene:
        scene.refuse()
        await scene.written()
        scene.refuse()
        await scene.written()
    assert scene.api.verbs == ["create", "patch", "create"]
    assert scene.api.calls[2].body["series"]["count"] == 2
    assert scene.writer.statistics().failed == 0


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
        async with EventScene(*answers) as scene:
            scene.refuse()
            await scene.written()
        assert scene.api.verbs == verbs
        assert scene.writer.statistics().sent == 1
        assert scene.writer.statistics().failed == 0

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
        async with EventScene(*answers) as scene:
            scene.refuse()
            await scene.written()
            assert len(scene.api.calls) == calls
            assert scene.writer.statistics().failed == 1
            scene.refuse("the next one")
            await scene.written()
        assert scene.writer.statistics().sent == 1

    asyncio.run(scene())


@play
async def test_what_was_given_up_is_created_and_not_patched_the_next_time():
    async with EventScene(error(403)) as scene:
        scene.refuse()
        await scene.written()
        scene.refuse()
        await scene.written()
    assert scene.api.verbs == ["create", "create"]


@play
async def test_a_count_that_is_refused_is_not_tried_again_and_again():
    async with EventScene(None, *[error(403)] * 5) as scene:
        for _ in range(2):
            scene.refuse()
            await scene.written()
    assert scene.api.verbs == ["create", "patch"]
    assert scene.writer.statistics().failed == 1


@play
async def test_a_mistake_of_ours_costs_one_event():
    async with EventScene(ValueError("no such path")) as scene:
        scene.refuse()
        scene.refuse("the next one")
        await scene.written()
    statistics = scene.writer.statistics()
    assert (statistics.failed, statistics.sent) == (1, 1)


# --- bounds -----------------------------------------------------------------------------------


@play
async def test_there_is_room_again_once_events_are_sent():
    async with EventScene(capacity=2) as scene:
        for one in pods(6):
            scene.refuse(of=one)
            await scene.written()
    assert scene.writer.statistics().dropped == 0


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
        async with EventScene(capacity=100, pressure=lambda: pressure) as scene:
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
    async with EventScene(pressure=lambda: True) as scene:
        for one in pods(50):
            scene.refuse(of=one)
        await scene.until(lambda: scene.writer.statistics().sent >= 47)


# --- the end ----------------------------------------------------------------------------------


@play
async def test_draining_heeds_no_pressure():
    async with EventScene(pressure=lambda: True) as scene:
        for one in pods(50):
            scene.refuse(of=one)
        assert await scene.writer.drain(30) == 0
    assert scene.writer.statistics().sent == 50


def test_dropped_events_are_told_about_once():
    async def scene():
        async with EventScene(capacity=0) as scene:
            scene.refuse()
            scene.writer.sweep()
            scene.writer.sweep()

    with structlog.testing.capture_logs() as lines:
        asyncio.run(scene())
    assert [line["count"] for line in lines] == [1]


@play
async def test_a_series_that_others_displace_gets_its_last_count():
    async with EventScene() as scene:
        for number in range(3):
            scene.writer.event(POD, "Normal", "Scheduled", "Binding", "first")
            if number < 2:
                await scene.written()
        for number in range(1_024):
            scene.writer.event(POD, "Normal", "Scheduled", "Binding", f"other {number}")
        await scene.written()
    counts = [call.body["series"]["count"] for call in scene.api.calls if "series" in call.body]
    assert counts == [2, 3]
