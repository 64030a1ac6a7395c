"""Write about many objects in the background, each of them at most once in a while.

_schedule() -> due some time after the last write -> a few workers -> _settle()
            -> put off: nobody answered, so it begins again later
"""

from __future__ import annotations

import asyncio
import heapq
from abc import abstractmethod
from typing import TYPE_CHECKING, Final, TypeVar

import structlog

from scheduler.api_writes.background_writer import BackgroundWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from scheduler.process.ports import Ports

ValueT = TypeVar("ValueT")
KeyT = TypeVar("KeyT", bound="Hashable")

_TICK_S: Final = 0.25
"""How late an object may be written that became due while another was waited for."""

_POLL_S: Final = 0.05

log = structlog.get_logger(__name__)


class PacedWriter(BackgroundWriter[ValueT, KeyT]):
    """Writes objects by key, one write of an object at a time and none too soon after another.

    Parameters
    ----------
    ports, max_tries, capacity, workers, pressure
        As :class:`~scheduler.api_writes.background_writer.BackgroundWriter`.

    Notes
    -----
    *Concurrency*: as there; all that is added belongs to the loop.
    """

    PACE_S: Final = 1.0
    """The least time between two writes of one object."""

    def __init__(
        self,
        ports: Ports[object],
        max_tries: int,
        capacity: int,
        workers: int,
        pressure: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__(ports, max_tries, capacity, workers, pressure)
        self._scheduled: set[KeyT] = set()
        """Those that wait for their time, wait for a worker, or are being written."""
        self._later: list[tuple[float, int, KeyT]] = []
        self._numbers = 0
        self._some_later = asyncio.Event()

    @abstractmethod
    async def _settle(self, key: KeyT) -> float | None:
        """Write an object; return the seconds after which to begin again, None if it is settled."""

    @abstractmethod
    def _is_waiting(self, key: KeyT) -> bool:
        """Tell whether there is something to be written about an object."""

    @abstractmethod
    def _written_at_s(self, key: KeyT) -> float:
        """Return when an object was written last (monotonic seconds)."""

    @property
    def queued(self) -> int:
        """How many objects wait or are under way."""
        return self._on_the_way + len(self._scheduled)

    def start(self) -> None:
        """Begin to send."""
        super().start()
        self._spawn(self._pace(), "pace")

    async def written(self, key: KeyT, timeout_s: float = 2 * PACE_S) -> bool:
        """Wait until everything handed over about an object is settled, or time is up."""
        await asyncio.sleep(0)  # what was put into the inbox before arrives meanwhile
        return await self._wait(lambda: key not in self._scheduled, timeout_s)

    async def drain(self, timeout_s: float) -> int:
        """Wait until nothing is left to be written; return how many are left when time is up."""
        self._is_draining = True
        await asyncio.sleep(0)  # what was put into the inbox before arrives meanwhile
        if not await self._wait(lambda: not self._scheduled, timeout_s):
            log.warning(self.LEFT, count=self.queued)
        self._is_draining = False
        return self.queued

    async def _wait(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        until_s = self._clock() + timeout_s
        while not condition():
            if self._clock() >= until_s:
                return False
            await self._executor.sleep(_POLL_S)
        return True

    def _schedule(self, key: KeyT) -> None:
        """Have an object written as soon as its pace allows it."""
        if key in self._scheduled:
            return
        self._scheduled.add(key)
        due_s = self._written_at_s(key) + self.PACE_S
        if due_s > self._clock():
            self._put_off(key, due_s)
        else:
            self._enqueue(key)

    def _put_off(self, key: KeyT, due_s: float) -> None:
        self._numbers += 1
        heapq.heappush(self._later, (due_s, self._numbers, key))
        self._some_later.set()

    async def _pace(self) -> None:
        while True:
            if not self._later:
                self._some_later.clear()
                await self._some_later.wait()
            due_s, _, key = self._later[0]
            pause_s = due_s - self._clock()
            if pause_s > 0:
                # An earlier one may come meanwhile.
                await self._executor.sleep(min(pause_s, _TICK_S))
            else:
                heapq.heappop(self._later)
                self._enqueue(key)

    async def _write(self, item: KeyT) -> None:
        pause_s = None
        try:
            pause_s = await self._settle(item)
        except Exception:
            # Reached only by a mistake of ours, which shall not end the worker.
            self._failed += 1
            log.exception("status could not be written", object=str(item))
        if pause_s is not None:
            self._put_off(item, self._clock() + pause_s)
            return
        self._scheduled.discard(item)
        if self._is_waiting(item):
            self._schedule(item)
