"""Run a task on the event loop periodically, with a pause before each run."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class PeriodicTask:
    """Runs a coroutine function until it is stopped.

    Parameters
    ----------
    work
        Does it once and returns the pause until the next time, in seconds. It contains its own
        failures: an exception ends the task.
    sleep
        Waits for so many seconds.

    Notes
    -----
    *Concurrency*: loop-confined.
    """

    def __init__(
        self,
        work: Callable[[], Awaitable[float]],
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._work = work
        self._sleep = sleep
        self._task: asyncio.Task[None] | None = None

    def start(self, pause_s: float) -> None:
        """Begin after a pause; never, if that is 0."""
        if pause_s > 0:
            self._task = asyncio.get_running_loop().create_task(self._run(pause_s))

    async def stop(self) -> None:
        """Cancel what is under way, and wait for its end."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self, pause_s: float) -> None:
        while True:
            await self._sleep(pause_s)
            pause_s = await self._work()
