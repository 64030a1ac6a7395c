"""Run work on an event loop and on threads of the operating system."""

from __future__ import annotations

import asyncio
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, TypeVar

from scheduler.process.vital import VitalThread, no_death, watch_task

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from cache.locks import Lock
    from scheduler.process.vital import OnDeath

T = TypeVar("T")


class ThreadLocks:
    """What threads of the operating system meet at: the objects of :mod:`threading` themselves.

    They are handed out as they are, so they cost what they cost anyway. See
    :class:`scheduler.process.ports.Locks`.

    Notes
    -----
    *Concurrency*: thread-safe.
    """

    def __init__(self) -> None:
        self.lock: Callable[[], Lock] = threading.Lock
        self.event = threading.Event
        self.queue: Callable[[], SimpleQueue[Any]] = SimpleQueue

    def condition(self, lock: Lock) -> threading.Condition:
        """Return a condition of a lock that was made here."""
        return threading.Condition(lock)  # type: ignore[arg-type] # made by threading.Lock


THREAD_LOCKS: Final = ThreadLocks()


class ThreadExecutor(ThreadLocks):
    """The executor of the program. See :class:`scheduler.process.ports.Executor`.

    Parameters
    ----------
    loop
        The I/O loop.
    on_death
        Called with the name of a thread or a task that ends without being told to, and why.

    Notes
    -----
    *Concurrency*: thread-safe.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, on_death: OnDeath = no_death) -> None:
        super().__init__()
        self.loop = loop
        self._on_death = on_death

    async def sleep(self, seconds: float) -> None:
        """Wait, on the loop."""
        await asyncio.sleep(seconds)

    def thread(self, run: Callable[[], None], name: str) -> VitalThread:
        """Return a daemon thread whose death is reported."""
        return VitalThread(run, name, self._on_death)

    def watch(self, task: asyncio.Task[None]) -> None:
        """Report a task that ends without having been cancelled."""
        watch_task(task, self._on_death)

    def call_on_loop(self, call: Callable[[], None]) -> None:
        """Have something called on the loop, soon."""
        self.loop.call_soon_threadsafe(call)

    def wait_on_loop(self, coroutine: Coroutine[Any, Any, T], timeout_s: float) -> T:
        """Run a coroutine on the loop and wait for its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(timeout_s)

    async def to_thread(self, call: Callable[..., T], *args: Any) -> T:
        """Return what a function returns on a thread."""
        return await asyncio.to_thread(call, *args)
