"""Ends what schedules and writes, in order, so that the next leader finds everything settled."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from cache.scheduler_cache import SchedulerCache
    from scheduler.binding_cycle import BindingCycles
    from scheduler.event_recorder import EventRecorder
    from scheduler.pod_status_writer import PodStatusWriter
    from scheduler.preemption_executor import PreemptionExecutor
    from scheduler.queueing import SchedulingQueue
    from scheduler.reaper import Reaper
    from scheduler.schedule_one import SchedulingLoop

log = structlog.get_logger(__name__)


class Shutdown:
    """Ends the threads that schedule, and settles what they have begun.

    Notes
    -----
    *Concurrency*: loop-confined; one of its methods is called, once.
    """

    def __init__(
        self,
        cache: SchedulerCache,
        queue: SchedulingQueue,
        scheduling: SchedulingLoop,
        reaper: Reaper,
        bindings: BindingCycles,
        preemptions: PreemptionExecutor,
        status_writer: PodStatusWriter,
        recorder: EventRecorder,
    ) -> None:
        self._cache = cache
        self._queue = queue
        self._scheduling = scheduling
        self._reaper = reaper
        self._bindings = bindings
        self._preemptions = preemptions
        self._status_writer = status_writer
        self._recorder = recorder

    async def settle(self, time_s: float) -> int:
        """Pop no more pods, and settle what is under way within ``time_s``.

        Returns
        -------
        The exit status: 1 when something was left unsettled.
        """
        until_s = time.monotonic() + time_s

        def left_s() -> float:
            return max(until_s - time.monotonic(), 0.0)

        log.info("stopping", bindings=self._bindings.in_flight)
        self._queue.close()
        ended = await asyncio.to_thread(self._scheduling.join, left_s())
        left = await self._bindings.end(left_s())
        await self._preemptions.drain(left_s())
        await asyncio.to_thread(self._reaper.stop, left_s())
        await self._status_writer.drain(min(left_s(), time_s / 3))
        await self._recorder.drain(min(left_s(), time_s / 3))
        while self._cache.counts().assumed_pods and left_s():  # noqa: ASYNC110 - the cache is silent
            # What our own watch has seen, that of the next leader has seen or is about to.
            await asyncio.sleep(0.01)
        log.info("stopped", unsettled_bindings=left)
        return 0 if ended and not left else 1

    async def abandon(self) -> int:
        """Pop no more pods, and settle nothing: nothing can be written any more.

        The next leader finds out what became of the bindings under way. Returns the exit status.
        """
        self._queue.close()
        await asyncio.to_thread(self._reaper.stop, 0.0)
        return 1
