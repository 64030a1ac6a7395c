"""Stop scheduling and writing in order, so that the next leader finds every write settled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from scheduler.assembly import Acting
    from scheduler.cycle.schedule_one import SchedulingLoop
    from scheduler.process.ports import Ports
    from scheduler.runtime.known_pods import KnownPods

log = structlog.get_logger(__name__)


class Shutdown:
    """Ends the threads that schedule, and settles what they have begun.

    Notes
    -----
    *Concurrency*: loop-confined; one of its methods is called, once.
    """

    def __init__(
        self,
        ports: Ports[object],
        pods: KnownPods,
        scheduling: SchedulingLoop,
        acting: Acting,
    ) -> None:
        self._executor = ports.executor
        self._clock = ports.clock.monotonic
        self._cache = pods.cache
        self._queue = pods.queue
        self._scheduling = scheduling
        self._reaper = acting.reaper
        self._bindings = acting.bindings
        self._preemptions = acting.preemptions
        self._status_writer = acting.reports.statuses
        self._recorder = acting.reports.events
        self._group_rounds = acting.groups.rounds
        self._group_statuses = acting.groups.statuses

    async def settle(self, time_s: float) -> int:
        """Pop no more pods, and settle what is under way within ``time_s``.

        Returns
        -------
        The exit status: 1 when something was left unsettled.
        """
        until_s = self._clock() + time_s

        def left_s() -> float:
            return max(until_s - self._clock(), 0.0)

        log.info("stopping", bindings=self._bindings.in_flight)
        self._queue.close()
        ended = await self._executor.to_thread(self._scheduling.join, left_s())
        await self._group_rounds.stop()
        left = await self._bindings.end(left_s())
        await self._preemptions.drain(left_s())
        await self._executor.to_thread(self._reaper.stop, left_s())
        await self._status_writer.drain(min(left_s(), time_s / 3))
        await self._group_statuses.drain(min(left_s(), time_s / 3))
        await self._recorder.drain(min(left_s(), time_s / 3))
        while self._cache.counts().assumed_pods and left_s():
            # What our own watch has seen, that of the next leader has seen or is about to.
            await self._executor.sleep(0.01)
        log.info("stopped", unsettled_bindings=left)
        return 0 if ended and not left else 1

    async def abandon(self) -> int:
        """Pop no more pods, and settle nothing: nothing can be written any more.

        The next leader finds out what became of the bindings under way. Returns the exit status.
        """
        self._queue.close()
        await self._group_rounds.stop()
        await self._executor.to_thread(self._reaper.stop, 0.0)
        return 1
