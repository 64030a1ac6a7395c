"""Compare the cache with the watches every few minutes, without a request.

The comparison runs on the event loop, where no change can come between the watches and the cache, a
millisecond at a time with pauses: a scheduling cycle is never delayed for longer than that.
"""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import TYPE_CHECKING, Final

import structlog

from cache.comparer import compare_in_steps
from scheduler.process.periodic_task import PeriodicTask

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cache.comparer import Comparison
    from cache.objects import Node, Pod
    from cache.scheduler_cache import SchedulerCache

DEFAULT_PERIOD_S: Final = 300.0

_AGAIN_S: Final = 30.0
"""After a comparison that found something. What was between a list that is being taken in and the
cache is gone by then, and the alert, which waits for five minutes, is not raised for it."""

_SLICE_S: Final = 0.001
_PAUSE_S: Final = 0.02
"""With the slice a twentieth of a core, for seconds every few minutes."""

_PATIENCE_S: Final = 0.25
"""How long each slice waits for a moment without pods to schedule. A cluster that is never at rest
is compared all the same, in some minutes."""

_TOLD: Final = 20

log = structlog.get_logger(__name__)


class CacheAudit:
    """Compares again and again.

    Parameters
    ----------
    nodes, pods
        All that the watches know.
    at_rest
        Whether nothing is being scheduled at this moment.
    found
        Told how many mismatches a comparison has found.

    Attributes
    ----------
    rounds
        Comparisons that have been completed.

    Notes
    -----
    *Concurrency*: loop-confined.
    """

    def __init__(
        self,
        cache: SchedulerCache,
        nodes: Callable[[], Sequence[Node]],
        pods: Callable[[], Sequence[Pod]],
        at_rest: Callable[[], bool],
        found: Callable[[int], None],
        *,
        period_s: float = DEFAULT_PERIOD_S,
    ) -> None:
        self._cache = cache
        self._nodes = nodes
        self._pods = pods
        self._at_rest = at_rest
        self._found = found
        self._period_s = period_s
        self._task = PeriodicTask(self._compare)
        self.rounds = 0

    def start(self) -> None:
        """Compare every period from now on; never, if the period is 0."""
        self._task.start(self._period_s)

    async def stop(self) -> None:
        """Compare no more."""
        await self._task.stop()

    async def round(self) -> Comparison:
        """Compare once, beside everything else that the loop does.

        *Cost*: see :func:`cache.comparer.compare_in_steps`; taking it down copies two lists.
        """
        # Nothing between these: the watches fill their stores and the cache on this loop.
        mark, nodes, pods = self._cache.mark(), self._nodes(), self._pods()
        steps = compare_in_steps(self._cache, mark, nodes, pods)
        while True:
            await self._pause()
            until = perf_counter() + _SLICE_S
            try:
                while perf_counter() < until:
                    next(steps)
            except StopIteration as end:
                comparison: Comparison = end.value
                break
        self.rounds += 1
        self._found(len(comparison.mismatches))
        return comparison

    async def _pause(self) -> None:
        await asyncio.sleep(_PAUSE_S)
        now = asyncio.get_running_loop().time
        until = now() + _PATIENCE_S
        while not self._at_rest() and now() < until:  # noqa: ASYNC110 - nobody tells of it
            await asyncio.sleep(_PAUSE_S)

    async def _compare(self) -> float:
        pause_s = self._period_s
        began = perf_counter()
        try:
            comparison = await self.round()
        except Exception:
            log.exception("cache cannot be compared")
            return pause_s
        if comparison.mismatches:
            pause_s = min(_AGAIN_S, self._period_s)
            log.error(
                "cache differs from the watches",
                mismatches=len(comparison.mismatches),
                found=[str(each) for each in comparison.mismatches[:_TOLD]],
            )
        log.debug(
            "cache compared",
            nodes=comparison.compared,
            passed_over=comparison.passed_over,
            mismatches=len(comparison.mismatches),
            seconds=round(perf_counter() - began, 3),
        )
        return pause_s
