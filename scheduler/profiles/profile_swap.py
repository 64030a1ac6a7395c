"""Swaps the running profiles between two cycles and updates the queue and the pods accordingly."""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import TYPE_CHECKING, Final, Protocol

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


class ConfigurationJournal(Protocol):
    """Records which profiles decide."""

    def configured(self, version: int, frameworks: Sequence[FrameworkRunner]) -> None:
        """Record the profiles that are about to decide, and their version."""
        ...


PATIENCE_S: Final = 60.0
"""Timeout for the I/O loop to run the swap; longer than any swap takes."""

log = structlog.get_logger(__name__)


class ProfileSwap:
    """Replaces all running profiles at once.

    The swap runs on the I/O loop, which handles the watches' events one after another: no event of
    a pod is handled between the swap and the pass over all pods that Berth has to schedule from now
    on. The scheduling thread is not stopped; a cycle ends with the profile that it began with.

    Parameters
    ----------
    pods
        Returns all pods that the watch has reported.
    journal
        Records the profiles; None for no journal.

    Attributes
    ----------
    executor
        Provides the I/O loop.
    profiles
        The profiles that decide now.

    Notes
    -----
    *Concurrency*: may be called from any thread except the scheduling thread.

    *Cost*: proportional to the pods of the queue; to all pods of the cluster if a schedulerName is
    served for the first time.
    """

    def __init__(
        self,
        executor: Executor,
        profiles: Profiles,
        queue: SchedulingQueue,
        handlers: EventHandlers,
        pods: Callable[[], Iterable[Pod]],
        journal: ConfigurationJournal | None = None,
    ) -> None:
        self.executor = executor
        self._journal = journal
        self.profiles = profiles
        self._queue = queue
        self._nominated = NominatedNodes(queue.nominator.frozen)
        self._handlers = handlers
        self._pods = pods

    def __call__(self, frameworks: Sequence[FrameworkRunner]) -> None:
        """Swap the profiles, and return when the swap is done, or the loop has ended."""
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
            log.warning("profiles not swapped yet: the I/O loop is busy or has ended")

    def _apply(self, frameworks: Sequence[FrameworkRunner]) -> None:
        began = perf_counter()
        profiles = self.profiles
        before = {profile.profile_name: profile for profile in profiles}
        for framework in frameworks:
            framework.nominated = self._nominated
        if self._journal is not None and frameworks:
            self._journal.configured(profiles.version + 1, frameworks)
        profiles.swap(frameworks)
        served = profiles.names()
        changed = {
            profile.profile_name
            for profile in profiles
            if before.get(profile.profile_name) != profile
        }
        self._queue.policy_changed(frozenset(changed), served)
        added = served - before.keys()
        waiting = self._handlers.take_in(self._pods(), added) if added else 0
        log.debug(
            "profiles swapped",
            running={profile.profile_name: profile.policy.text for profile in profiles},
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
