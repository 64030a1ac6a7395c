"""Define what the scheduler needs from outside: API server, time, randomness and execution.

The code that assembles the parts (see :mod:`scheduler.assembly`) passes these in. The program, the
tests and a simulation differ in nothing else.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from cache.value import Value

if TYPE_CHECKING:
    import asyncio
    import random
    from collections.abc import Callable, Coroutine

    from cache.locks import Lock

T = TypeVar("T")
ApiT_co = TypeVar("ApiT_co", covariant=True)


class Clock(Value, frozen=True):
    """The clocks.

    Attributes
    ----------
    monotonic
        Seconds that never go back.
    wall
        Seconds since the epoch.
    thread_cpu
        CPU seconds of the calling thread.
    """

    monotonic: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    thread_cpu: Callable[[], float] = time.thread_time


SYSTEM_CLOCK = Clock()


class Condition(Protocol):
    """As :class:`threading.Condition`: its methods are called while its lock is held."""

    def wait(self, timeout: float | None = None) -> bool:
        """Release the lock, wait for a notification, and take the lock again."""
        ...

    def notify(self, n: int = 1) -> None:
        """Wake one thread that waits."""
        ...

    def notify_all(self) -> None:
        """Wake all threads that wait."""
        ...


class Event(Protocol):
    """As :class:`threading.Event`."""

    def is_set(self) -> bool:
        """Tell whether it is set."""
        ...

    def set(self) -> None:
        """Set it, and wake whoever waits."""
        ...

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set; return False when time is up first."""
        ...


class Queue(Protocol[T]):
    """As :class:`queue.SimpleQueue`."""

    def put(self, item: T) -> None:
        """Put something in; never waits."""
        ...

    def get(self, block: bool = True, timeout: float | None = None) -> T:
        """Take out what was put in first, waiting while there is nothing.

        Raises
        ------
        queue.Empty
            When time is up first.
        """
        ...


class Thread(Protocol):
    """As :class:`threading.Thread`."""

    @property
    def ident(self) -> int | None:
        """None before it was started."""

    def start(self) -> None:
        """Start it."""
        ...

    def is_alive(self) -> bool:
        """Tell whether it was started and has not ended."""
        ...

    def join(self, timeout: float | None = None) -> None:
        """Wait until it has ended, or time is up."""
        ...


class Locks(Protocol):
    """Makes what threads meet at.

    Threads do not wait for each other by anything that was not made here, so that an executor may
    decide at each of these places which one goes on.
    """

    def lock(self) -> Lock:
        """Return a lock, which is not reentrant."""
        ...

    def condition(self, lock: Lock) -> Condition:
        """Return a condition of a lock that was made here."""
        ...

    def event(self) -> Event:
        """Return an event that is not set."""
        ...

    def queue(self) -> Queue[Any]:
        """Return an empty queue without a bound."""
        ...


class Executor(Locks, Protocol):
    """Runs things side by side: an event loop, threads, and all that threads meet at."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The I/O loop."""

    def thread(self, run: Callable[[], None], name: str) -> Thread:
        """Return a thread that does ``run`` once it is started.

        It does not keep the process alive. If it ends by an exception, the process ends.
        """
        ...

    def watch(self, task: asyncio.Task[None]) -> None:
        """Have the process end if a task of the loop ends without having been cancelled."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait, on the loop."""
        ...

    def call_on_loop(self, call: Callable[[], None]) -> None:
        """Have something called on the loop, soon. Any thread.

        Raises
        ------
        RuntimeError
            When the loop is closed.
        """
        ...

    def wait_on_loop(self, coroutine: Coroutine[Any, Any, T], timeout_s: float) -> T:
        """Run a coroutine on the loop and wait for its result. Any thread but the loop's.

        Raises
        ------
        TimeoutError
            When it takes longer.
        Exception
            What the coroutine raises.
        """
        ...

    async def to_thread(self, call: Callable[..., T], *args: Any) -> T:
        """Return what a function returns that would keep the loop for too long."""
        ...


class Ports(Value, Generic[ApiT_co], frozen=True):
    """The outside, as a part of the scheduler sees it.

    Attributes
    ----------
    api
        The API server, or those of its calls that the part needs.
    executor
        Threads and the I/O loop.
    clock
        The time.
    rng
        Randomness, for delays; used on the loop.
    """

    api: ApiT_co
    executor: Executor
    clock: Clock
    rng: random.Random
