"""Other profiles take over between two cycles, and whoever kept what the old ones said is told."""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import TYPE_CHECKING, Final

import structlog

from scheduler.runtime.nominated_nodes import NominatedNodes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cache.objects import Pod
    from scheduler.event_handlers.pods_and_nodes import EventHandlers
    from scheduler.process.ports import Executor
    from scheduler.queueing import SchedulingQueue
    from scheduler.runtime.framework_runner import FrameworkRunner
    from scheduler.runtime.profile_map import Profiles

PATIENCE_S: Final = 60.0
"""For the I/O loop to come by; longer than it ever takes."""

log = structlog.get_logger(__name__)


class ProfileSwap:
    """Puts profiles in place of others, all at once.

    On the I/O loop, where the watches' events are handled one after another: no event of a pod
    comes between the swap and the look at all pods that it makes ours. The scheduling thread may
    be anywhere; a cycle that has begun ends with the profile that it began with.

    Parameters
    ----------
    pods
        All pods that the watch knows.

    Attributes
    ----------
    executor
        Has the I/O loop.
    profiles
        Those that decide at the moment.

    Notes
    -----
    *Concurrency*: any thread but the scheduling thread. *Cost*: proportional to the pods of the
    queue; to all pods of the cluster where a schedulerName is served for the first time.
    """

    def __init__(
        self,
        executor: Executor,
        profiles: Profiles,
        queue: SchedulingQueue,
        handlers: EventHandlers,
        pods: Callable[[], Iterable[Pod]],
    ) -> None:
        self.executor = executor
        self.profiles = profiles
        self._queue = queue
        self._nominated = NominatedNodes(queue.nominator)
        self._handlers = handlers
        self._pods = pods

    def __call__(self, frameworks: Sequence[FrameworkRunner]) -> None:
        """Swap, and return when all is as it should be; at once when the loop has ended."""
        if _is_on(self.executor.loop):
            self._apply(frameworks)
            return
        applied = self.executor.event()

        def apply() -> None:
            try:
                self._apply(frameworks)
            finally:
                applied.set()

        try:
            self.executor.call_on_loop(apply)
        except RuntimeError:
            return
        if not applied.wait(PATIENCE_S):
            log.warning("the profiles are not swapped yet: the I/O loop is busy or has ended")

    def _apply(self, frameworks: Sequence[FrameworkRunner]) -> None:
        began = perf_counter()
        profiles = self.profiles
        before = {each.profile_name: each for each in profiles}
        for framework in frameworks:
            framework.nominated = self._nominated
        profiles.swap(frameworks)
        served = profiles.names()
        changed = {each.profile_name for each in profiles if before.get(each.profile_name) != each}
        self._queue.policy_changed(frozenset(changed), served)
        added = served - before.keys()
        waiting = self._handlers.take_in(self._pods(), added) if added else 0
        log.debug(
            "profiles swapped",
            running={each.profile_name: each.policy.text for each in profiles},
            changed=sorted(changed),
            left=sorted(before.keys() - served),
            pods_taken_in=waiting,
            duration_s=perf_counter() - began,
        )


def _is_on(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False
