"""An event loop in virtual time: one callback is one step of the simulation.

Callbacks of one loop run in the order in which they were asked for, as asyncio promises; what is
seeded is when each loop goes on, and when messages arrive.
"""

from __future__ import annotations

import asyncio
from asyncio import events
from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from contextvars import Context

    from tests.storm.machine import Machine
    from tests.storm.network import Network


class SimLoop(asyncio.AbstractEventLoop):
    """The loop of one process.

    Attributes
    ----------
    network
        What connections are made by.
    failures
        Exceptions that nobody has taken.
    """

    def __init__(self, machine: Machine) -> None:
        self.name = f"{machine.name}/loop"
        self.dead = False
        self.network: Network
        self.failures: list[str] = []
        self._machine = machine
        self._callbacks: deque[asyncio.Handle] = deque()
        self._is_ready = False

    # --- the core's side ----------------------------------------------------------------------

    def step(self) -> None:
        """Run one callback."""
        callbacks = self._callbacks
        handle = callbacks.popleft()
        if not handle._cancelled:
            events._set_running_loop(self)
            try:
                handle._run()
            finally:
                events._set_running_loop(None)
        if not callbacks:
            self._is_ready = False
            self._machine.unready(self)

    # --- asyncio's side -----------------------------------------------------------------------

    def time(self) -> float:
        return self._machine.now()

    def call_soon(
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._put(handle)
        return handle

    def call_soon_threadsafe(
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        self._machine.simulation.at(self._machine.real_s(when), _Due(self, timer))
        return timer

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        pass

    def _put(self, handle: asyncio.Handle) -> None:
        if self.dead:
            return
        self._callbacks.append(handle)
        if not self._is_ready:
            self._is_ready = True
            self._machine.ready(self)

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(
        self, coro: Coroutine[Any, Any, Any], *, name: str | None = None, **more: Any
    ) -> asyncio.Task[Any]:
        return asyncio.Task(coro, loop=self, name=name, **more)

    async def create_connection(self, factory: Any, *where: Any, **more: Any) -> Any:
        made = await self.network.connect(self._machine, factory)
        if more.get("ssl") is not None:
            try:
                more["ssl"].handshake()
            except OSError:
                made[0].abort()
                raise
        return made

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return not self.dead

    def is_closed(self) -> bool:
        return self.dead

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if not self.dead:
            self.failures.append(f"{context.get('message')}: {context.get('exception')!r}")


class _Due:
    """A timer whose time has come."""

    __slots__ = ("_loop", "_timer")

    def __init__(self, loop: SimLoop, timer: asyncio.TimerHandle) -> None:
        self._loop = loop
        self._timer = timer

    def __call__(self) -> None:
        if not self._timer._cancelled:
            self._loop._put(self._timer)
