"""What every background writer promises, asked of both."""

from __future__ import annotations

import asyncio
import threading
from functools import partial

import pytest

from scheduler.api_writes import event_recorder, pod_status_writer
from tests.builders import pod
from tests.fakes.refusals import refusal
from tests.scheduler.api_writes.scenes import POD, EventScene, StatusScene, pods

MAX_TRIES = {EventScene: event_recorder.MAX_TRIES, StatusScene: pod_status_writer.MAX_TRIES}


def of_both(test):
    """Turn a coroutine function of a kind of scene into a test of Events and of pod statuses."""
    cases = [pytest.param(EventScene, id="events"), pytest.param(StatusScene, id="pod statuses")]

    @pytest.mark.parametrize("kind", cases)
    def run(kind):
        asyncio.run(test(kind))

    return run


@of_both
async def test_where_all_are_refused_each_is_sent_once_until_one_is_accepted(kind):
    error, max_tries = partial(kind.error, 500), MAX_TRIES[kind]
    elsewhere = pod("b", namespace="other").uid("u-b").build()
    refused = [error() for _ in range(max_tries + 2)]
    calls = []
    async with kind(*refused, error(), None, None, error(), None, workers=1) as scene:
        for number, of in enumerate((POD, POD, POD, elsewhere, POD, POD), start=1):
            before = len(scene.api.calls)
            scene.refuse(str(number), of=of)
            await scene.written()
            calls.append(len(scene.api.calls) - before)
    assert calls == [max_tries, 1, 1, 2, 1, 2]


@of_both
async def test_what_shall_wait_for_long_is_given_up(kind):
    later = refusal(kind.VERB, 429, details={"retryAfterSeconds": 60})
    async with kind(later) as scene:
        scene.refuse()
        await scene.written()
        assert (len(scene.api.calls), scene.writer.statistics().failed) == (1, 1)


@of_both
async def test_beyond_the_capacity_the_newest_are_dropped_and_counted(kind):
    async with kind(capacity=10, workers=1) as scene:
        scene.api.hold()
        everyone = pods(30)
        scene.refuse(of=everyone[0])
        await scene.until(lambda: scene.api.waiting)
        for one in everyone[1:]:
            scene.refuse(of=one)
        assert scene.writer.statistics().dropped == 19
        scene.api.gate.set()
        await scene.written()
    names = [call.body.get("regarding", {}).get("name", call.name) for call in scene.api.calls]
    assert names == [f"p{number}" for number in range(11)]


@of_both
async def test_what_comes_from_other_threads_is_all_written_or_dropped(kind):
    async with kind(capacity=200) as scene:
        everyone = pods(500)

        def refuse(half) -> None:
            for one in half:
                scene.refuse(of=one)

        threads = [threading.Thread(target=refuse, args=(everyone[start::2],)) for start in (0, 1)]
        for thread in threads:
            thread.start()
        await scene.until(lambda: not any(thread.is_alive() for thread in threads))
        await scene.written()
    assert len(scene.api.calls) + scene.writer.statistics().dropped == 500


@of_both
async def test_what_comes_from_another_thread_is_all_written_where_there_is_room(kind):
    async with kind() as scene:
        thread = threading.Thread(target=lambda: [scene.refuse(of=one) for one in pods(300)])
        thread.start()
        await scene.until(lambda: not thread.is_alive())
        await scene.written()
    assert len(scene.api.calls) == 300


@of_both
async def test_draining_ends_when_time_is_up(kind):
    async with kind() as scene:
        scene.api.hold()
        for one in pods(7):
            scene.refuse(of=one)
        assert await scene.writer.drain(0.01) == 7


@of_both
async def test_after_the_end_all_is_dropped(kind):
    async with kind() as scene:
        await scene.writer.stop()
        scene.refuse()
    assert scene.writer.statistics().dropped == 1
    assert not scene.api.calls
