"""The outside of the scheduler's parts, with a clock, pauses and an API that a test chooses."""

from __future__ import annotations

import asyncio
import random
import time
from typing import TYPE_CHECKING, Any

from scheduler.process.ports import Clock, Ports
from scheduler.process.thread_executor import ThreadExecutor
from scheduler.process.vital import no_death

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from scheduler.process.vital import OnDeath


class FakeExecutor(ThreadExecutor):
    """Real threads and a real loop, with pauses of one's own.

    Parameters
    ----------
    sleep
        How parts wait on the loop.
    on_loop
        How something is handed to the loop from another thread; None for the loop's own way.
    """

    def __init__(
        self,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        on_loop: Callable[[Callable[[], None]], object] | None = None,
        on_death: OnDeath = no_death,
    ) -> None:
        super().__init__(_running_loop(), on_death)
        self._sleep = sleep
        self._on_loop = on_loop

    async def sleep(self, seconds: float) -> None:
        await self._sleep(seconds)

    def call_on_loop(self, call: Callable[[], None]) -> None:
        if self._on_loop is None:
            super().call_on_loop(call)
        else:
            self._on_loop(call)


def fake_ports(
    api: Any = None,
    clock: Callable[[], float] = time.monotonic,
    *,
    wall: Callable[[], float] = time.time,
    thread_cpu: Callable[[], float] = time.thread_time,
    executor: ThreadExecutor | None = None,
) -> Ports[Any]:
    """Return ports with the same random numbers every time."""
    return Ports(api, executor or FakeExecutor(), Clock(clock, wall, thread_cpu), random.Random(1))


def _running_loop() -> Any:
    """Return the running loop, None where nothing of the kind is needed."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
