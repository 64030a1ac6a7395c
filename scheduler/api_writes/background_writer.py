"""Send writes in the background, by a few workers on the event loop.

    caller -> inbox -> receive -> queue -> a few workers -> API server

A caller needs a few hundred nanoseconds and never waits. A write above the limit of the queue is
dropped and counted. While many binds are in flight, one worker continues and the others pause, the
less the fuller the queue is.
"""

from __future__ import annotations

import asyncio
import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Final, Generic, TypeVar

import structlog

from scheduler.api_writes.failing_namespaces import FailingNamespaces
from scheduler.api_writes.settle import REFUSED
from scheduler.process.loop_inbox import LoopInbox

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from scheduler.api_writes.settle import Failure
    from scheduler.process.ports import Ports

ValueT = TypeVar("ValueT")
ItemT = TypeVar("ItemT")

_HOLD_BACK_S: Final = 0.05
"""With 10 ms, 15 workers that looked up took a twentieth of the CPU of a burst."""

_PRESSED_WORKERS: Final = 4
"""So many go on at most while binds press."""

_COMPLAINT_S: Final = 60.0

log = structlog.get_logger(__name__)


class BackgroundWriter(ABC, Generic[ValueT, ItemT]):
    """Receives values from any thread, and writes items that were made of them.

    Parameters
    ----------
    ports
        The outside; ``rng`` is for the delays between attempts.
    max_tries
        Attempts at one item, where not all writes of its namespace fail.
    capacity
        Values that may wait; when there are more, the newest are dropped.
    workers
        Requests under way at one time.
    pressure
        Whether binds need the connection more than these writes do; asked often, so keep it cheap.

    Notes
    -----
    *Concurrency*: :meth:`_put` is thread-safe, the rest belongs to the loop.
    """

    NAME: ClassVar[str]
    """Of its tasks."""
    LEFT: ClassVar[str]
    """What the log says when draining ends too early."""

    def __init__(
        self,
        ports: Ports[object],
        max_tries: int,
        capacity: int,
        workers: int,
        pressure: Callable[[], bool] = lambda: False,
    ) -> None:
        self._executor = ports.executor
        self._clock = ports.clock.monotonic
        self._wall_clock = ports.clock.wall
        self._rng = ports.rng
        self._max_tries = max_tries
        self._capacity = capacity
        self._workers = workers
        self._pressure = pressure
        self._failing = FailingNamespaces()
        self._inbox: LoopInbox[ValueT] = LoopInbox(ports.executor.loop, self._arrived)
        self._queue: asyncio.Queue[ItemT] = asyncio.Queue()
        self._active: set[ItemT] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._is_draining = False
        self._complained_at_s = -math.inf
        # Guards the numbers that callers of _put() change.
        self._lock = ports.executor.lock()
        self._on_the_way = 0
        self._dropped = 0
        self._is_stopped = False
        self._failed = 0

    @abstractmethod
    def _receive(self, value: ValueT) -> None:
        """Take a value, on the loop; what is to be written goes to :meth:`_enqueue`."""

    @abstractmethod
    async def _write(self, item: ItemT) -> None:
        """Write an item. Must not raise."""

    @property
    def queued(self) -> int:
        """How many wait or are under way."""
        return self._on_the_way + self._queue.qsize() + len(self._active)

    # --- life ---------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to send."""
        for index in range(self._workers):
            self._spawn(self._work(index), str(index))

    def _spawn(self, coroutine: Coroutine[None, None, None], name: str) -> None:
        task = self._executor.loop.create_task(coroutine, name=f"{self.NAME}-{name}")
        self._tasks.append(task)
        self._executor.watch(task)

    async def drain(self, timeout_s: float) -> int:
        """Wait until all that was handed over is written, whatever the pressure.

        Returns
        -------
        How many were still not when time was up.
        """
        self._is_draining = True
        await asyncio.sleep(0)  # what was put into the inbox before arrives meanwhile
        try:
            async with asyncio.timeout(timeout_s):
                await self._queue.join()
        except TimeoutError:
            log.warning(self.LEFT, count=self.queued)
        self._is_draining = False
        return self.queued

    async def stop(self) -> None:
        """Stop sending; afterwards everything handed over is dropped and counted."""
        with self._lock:
            self._is_stopped = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []

    # --- the way of a value -------------------------------------------------------------------

    def _put(self, value: ValueT, *, needs_room: bool = True) -> None:
        """Hand a value over, or drop and count it. Never waits, never raises."""
        with self._lock:
            waiting = self._on_the_way + self._queue.qsize()
            if self._is_stopped or (needs_room and waiting >= self._capacity):
                self._dropped += 1
                return
            self._on_the_way += 1
        self._inbox.put(value)

    def _arrived(self, value: ValueT) -> None:
        with self._lock:
            self._on_the_way -= 1
        self._receive(value)

    def _enqueue(self, item: ItemT) -> None:
        self._queue.put_nowait(item)

    async def _work(self, index: int) -> None:
        while True:
            item = await self._queue.get()
            self._active.add(item)
            while self._holds_back(index):
                # The last to be let on looks up least often: to look costs time, too.
                await self._executor.sleep(_HOLD_BACK_S * index)
            await self._write(item)
            self._active.discard(item)
            self._queue.task_done()

    def _holds_back(self, index: int) -> bool:
        """Tell whether this worker should leave the connection to the binds."""
        if index == 0 or self._is_draining or not self._pressure():
            return False
        # Of four workers, the second goes on in spite of it once a quarter of the capacity is
        # taken, the last one at three quarters.
        pressed = min(self._workers, _PRESSED_WORKERS)
        return index * self._capacity > self._queue.qsize() * pressed

    def _give_up(self, namespace: str, given_up: Failure) -> str:
        """Count an item that is given up; return why, once a minute: there may be thousands."""
        self._failed += 1
        is_refused, error = given_up.why == REFUSED, given_up.error
        if not is_refused:
            self._failing.gave_up(namespace, error)
        now_s = self._clock()
        if now_s - self._complained_at_s < _COMPLAINT_S:
            return ""
        self._complained_at_s = now_s
        return str(error) if is_refused else f"no success in {self._max_tries} attempts"
