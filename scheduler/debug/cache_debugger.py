"""Write the cache and the queue, and compare the cache with the watches.

*Source*: pkg/scheduler/backend/cache/debugger (1.36), which writes both into the log on SIGUSR2.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import structlog

from cache.comparer import compare
from scheduler.debug.cache_audit import CacheAudit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cache.comparer import Mismatch
    from cache.objects import Pod
    from cache.scheduler_cache import CacheDump
    from scheduler.informers.watched import Watched
    from scheduler.process.ports import Executor
    from scheduler.queueing.pending_pods import PendingPod
    from scheduler.runtime.known_pods import KnownPods

MAX_TOLD: Final = 1_000
"""Pods of a room, and mismatches, that are written out; the others are only counted."""

log = structlog.get_logger(__name__)


def _nowhere_else(_: Pod) -> bool:
    return False


class CacheDebugger:
    """Writes out cache and queue, and compares the cache with the watches.

    Parameters
    ----------
    executor
        Has the threads on which is done what takes long.
    clock
        Seconds of the queue's monotonic clock.
    pods
        What is written out, and compared with the watches.
    watched
        What the watches know.
    under_way
        Gives the pod whose cycle is under way, and for how many seconds; an empty text and 0 when
        none is.

    Notes
    -----
    *Concurrency*: loop-confined; what takes long is done on a thread. One at a time.
    """

    def __init__(
        self,
        executor: Executor,
        clock: Callable[[], float],
        pods: KnownPods,
        watched: Watched,
        under_way: Callable[[], tuple[str, float]],
        is_elsewhere: Callable[[Pod], bool] = _nowhere_else,
    ) -> None:
        self._executor = executor
        self._cache = pods.cache
        self._queue = pods.queue
        self._nodes = watched.nodes.list
        self._all_pods = watched.pods.list
        self._is_elsewhere = is_elsewhere
        self._clock = clock
        self._under_way = under_way
        self._busy = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self.mismatches: float | None = None
        """What the last comparison found; None before the first."""
        self.comparisons = 0

    def found(self, mismatches: int) -> None:
        """Keep what a comparison has found, whoever made it."""
        self.mismatches = float(mismatches)
        self.comparisons += 1

    def _pods(self) -> Sequence[Pod]:
        """Return the pods that the cache shall have, besides those that are assumed."""
        if self._is_elsewhere is _nowhere_else:
            return self._all_pods()
        return [pod for pod in self._all_pods() if not self._is_elsewhere(pod)]

    def audit(self, at_rest: Callable[[], bool], period_s: float) -> CacheAudit:
        """Return what compares every `period_s` by itself, preferably when `at_rest` says so."""
        return CacheAudit(
            self._cache, self._nodes, self._pods, at_rest, self.found, period_s=period_s
        )

    async def report(self) -> dict[str, Any]:
        """Return cache, queue and comparison as plain data.

        *Cost*: that of a copy of the cache on the loop and of building one anew on a thread.
        """
        async with self._busy:
            # The watches fill their stores and the cache on this loop, one after the other:
            # between the two copies neither can move.
            dump, nodes, pods = self._cache.dump(), self._nodes(), self._pods()
            found = await self._executor.to_thread(compare, dump, nodes, pods)
            self.found(len(found))
            return await self._executor.to_thread(self._written, dump, found)

    def tell(self) -> None:
        """Write the report into the log, soon: what SIGUSR2 asks for."""
        task = asyncio.get_running_loop().create_task(self._tell())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _tell(self) -> None:
        try:
            report = await self.report()
        except Exception:
            log.exception("cache cannot be written out")
            return
        for node in report["cache"]["nodes"]:
            log.info("cached node", **node)
        log.info("cycle under way", **report["cycle"])
        for room, pods in report["queue"].items():
            log.info("queued pods", room=room, count=pods["count"], pods=pods["pods"])
        log.info(
            "cache compared", mismatches=report["comparison"]["count"], found=report["comparison"]
        )

    def _written(self, dump: CacheDump, found: Sequence[Mismatch]) -> dict[str, Any]:
        pending = self._queue.pending()
        pod, under_way_s = self._under_way()
        rooms = ("active", "backoff", "unschedulable", "gated", "in_flight")
        return {
            "cache": {
                "nodes": [
                    {
                        "name": name,
                        "imaginary": node.node is None,
                        "pods": len(node.pods),
                        "requested": dict(node.requested),
                        "allocatable": dict(node.allocatable),
                        "generation": node.generation,
                    }
                    for name, node in sorted(dump.nodes.items())
                ],
                "pods": len(dump.states),
                "assumed": dict(dump.assumed),
            },
            "cycle": {"pod": pod, "under_way_s": round(under_way_s, 3)},
            "queue": {room: self._room(getattr(pending, room)) for room in rooms},
            "comparison": {
                "count": len(found),
                "mismatches": [str(each) for each in found[:MAX_TOLD]],
            },
        }

    def _room(self, pods: Sequence[PendingPod]) -> dict[str, Any]:
        now_s = self._clock()
        return {
            "count": len(pods),
            "pods": [
                {
                    "pod": each.info.key,
                    "attempts": each.attempts,
                    "queued_for_s": round(now_s - each.since_s, 3),
                    "refused_by": sorted(each.unschedulable_plugins | each.pending_plugins),
                    "gated_by": each.gated_by,
                }
                for each in pods[:MAX_TOLD]
            ],
        }
