from __future__ import annotations

import asyncio
import queue
import threading

import pytest

from scheduler.process.thread_executor import THREAD_LOCKS, ThreadExecutor

PATIENCE_S = 30.0


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        pytest.param(THREAD_LOCKS.lock(), type(threading.Lock()), id="lock"),
        pytest.param(THREAD_LOCKS.event(), threading.Event, id="event"),
        pytest.param(THREAD_LOCKS.queue(), queue.SimpleQueue, id="queue"),
        pytest.param(
            THREAD_LOCKS.condition(THREAD_LOCKS.lock()), threading.Condition, id="condition"
        ),
    ],
)
def test_what_threads_meet_at_is_the_standard_library_s_own(made: object, kind: type) -> None:
    assert type(made) is kind


def test_a_thread_that_dies_is_reported() -> None:
    deaths: list[str] = []
    loop = asyncio.new_event_loop()
    executor = ThreadExecutor(loop, lambda name, error: deaths.append(f"{name}: {error}"))

    def die() -> None:
        raise SystemExit("no more")

    thread = executor.thread(die, "worker")
    thread.start()
    thread.join(PATIENCE_S)
    loop.close()
    assert deaths == ["worker: no more"]


def test_another_thread_waits_for_what_the_loop_answers() -> None:
    async def answer() -> str:
        await asyncio.sleep(0)
        return "answer"

    async def ask() -> str:
        executor = ThreadExecutor(asyncio.get_running_loop())
        return await executor.to_thread(executor.wait_on_loop, answer(), PATIENCE_S)

    assert asyncio.run(ask()) == "answer"
