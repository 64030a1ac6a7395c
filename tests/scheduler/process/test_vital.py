"""Whatever has to run reports its death."""

from __future__ import annotations

import asyncio

import pytest

from scheduler.process.vital import VitalThread, watch_task


def deaths_of_thread(run) -> list[tuple[str, str]]:
    deaths: list[tuple[str, str]] = []
    thread = VitalThread(run, "scheduling", lambda name, error: deaths.append((name, repr(error))))
    thread.start()
    thread.join(30)
    assert not thread.is_alive()
    return deaths


def raising(error: BaseException):
    def run() -> None:
        raise error

    return run


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(RuntimeError("broken"), id="mistake"),
        pytest.param(SystemExit(0), id="a plugin calls sys.exit"),
        pytest.param(MemoryError(), id="no memory"),
    ],
)
def test_a_thread_that_dies_says_so(error):
    assert deaths_of_thread(raising(error)) == [("scheduling", repr(error))]


def test_a_thread_that_has_done_its_work_does_not():
    assert deaths_of_thread(lambda: None) == []


def deaths_of_task(work, *, cancel: bool = False) -> list[tuple[str, str]]:
    async def play() -> list[tuple[str, str]]:
        deaths: list[tuple[str, str]] = []
        task = asyncio.get_running_loop().create_task(work(), name="informer-pods")
        watch_task(task, lambda name, error: deaths.append((name, repr(error))))
        await asyncio.sleep(0)
        if cancel:
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await asyncio.sleep(0)
        return deaths

    return asyncio.run(play())


def test_a_task_that_fails_says_so():
    async def work() -> None:
        raise RuntimeError("broken")

    assert deaths_of_task(work) == [("informer-pods", "RuntimeError('broken')")]


def test_a_task_that_returns_although_it_should_not_says_so():
    async def work() -> None:
        pass

    assert deaths_of_task(work) == [("informer-pods", "RuntimeError('it returned')")]


def test_a_task_that_is_cancelled_does_not():
    async def work() -> None:
        await asyncio.Event().wait()

    assert deaths_of_task(work, cancel=True) == []
