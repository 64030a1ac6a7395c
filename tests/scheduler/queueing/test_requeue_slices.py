from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import TYPE_CHECKING

from scheduler.queueing.requeue_slices import WakeUpSlices

if TYPE_CHECKING:
    from collections.abc import Callable


class Backlog:
    """Work of so many slices; each lasts until its time is over."""

    def __init__(self, slices: int) -> None:
        self.left = slices
        self.now_s = 0.0
        self.between: list[str] = []
        self.done = asyncio.Event()

    def judge(self, is_over: Callable[[], bool]) -> bool:
        while not is_over():
            self.now_s += 0.0001
        self.left -= 1
        self.between.append("slice")
        if self.left <= 0:
            self.done.set()
        return self.left > 0


async def _empty(backlog: Backlog) -> None:
    slices = WakeUpSlices(asyncio.get_running_loop(), lambda: backlog.now_s)
    for _ in range(5):
        slices.wake_later(backlog.judge)
    while not backlog.done.is_set():
        backlog.between.append("other work")
        await asyncio.sleep(0)
    await asyncio.sleep(0)


async def _run(slices: int) -> Backlog:
    backlog = Backlog(slices)
    await asyncio.wait_for(_empty(backlog), 60)
    return backlog


def test_slices_follow_until_nothing_is_left_and_the_loop_works_between_them() -> None:
    backlog = asyncio.run(_run(3))
    assert backlog.left == 0
    at = [index for index, what in enumerate(backlog.between) if what == "slice"]
    assert all("other work" in backlog.between[a:b] for a, b in pairwise(at))


def test_asked_for_many_times_there_is_one_slice() -> None:
    assert asyncio.run(_run(1)).between.count("slice") == 1


def test_once_the_loop_is_closed_nothing_happens() -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    slices = WakeUpSlices(loop)
    slices.wake_later(lambda is_over: True)
    slices.wake_later(lambda is_over: True)
