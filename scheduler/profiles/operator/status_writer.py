"""Writes the status of SchedulingProfiles; only the leader does so.

kopf's own patches are not used: kopf does not know Berth's Lease, and a write that it starts may
end after another replica has become the leader. These writes pass the fence of the transport, as
all writes of Berth do.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import time
from typing import TYPE_CHECKING, Final

import structlog
from msgspec.structs import replace

from cache.value import Value
from scheduler.api_writes.settle import AGAIN, REFUSED, Failure, settle
from scheduler.client.errors import Action
from scheduler.client.timestamps import api_time
from scheduler.process.loop_inbox import LoopInbox
from scheduler.profiles.operator.history import GOOD, digests_of
from scheduler.profiles.operator.status_patch import merge_patch, wanted_digests, wanted_status

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import Any

    from scheduler.profiles import ProfileObject, ProfileStatus


class Pace(Value, frozen=True):
    """The pauses of a status writer in seconds."""

    pause_s: float = 0.25
    """Between two writes for one object: another client that reverts them must not cause a storm of
    requests."""
    standby_s: float = 1.0
    """Between two leadership checks of a standby while it has a status to write."""
    shadow_s: float = 10.0
    """Between two writes of the report of a shadow run while it grows."""


_AGAIN: Final = AGAIN | {Action.FORBIDDEN}

_WARN_EVERY_S: Final = 60.0

log = structlog.get_logger(__name__)


class ProfileStatusWriter:
    """Keeps the status of every SchedulingProfile up to date, with a task for each.

    Parameters
    ----------
    write
        Applies a merge patch to the object with a name, or to its subresource ``status``; raises
        ApiError.
    status_of
        Returns the status of a SchedulingProfile, None if it is not known; never blocks.
    may_write
        Returns whether this process is the leader.
    shadow_report
        See :class:`~scheduler.profiles.operator.crd_operator.CrdOperator`.

    Notes
    -----
    *Concurrency*: :meth:`changed` may be called from any thread; the rest is loop-confined.
    """

    def __init__(
        self,
        write: Callable[[str, str, Mapping[str, Any]], Awaitable[None]],
        status_of: Callable[[str], ProfileStatus | None],
        may_write: Callable[[], bool],
        shadow_report: Callable[[str], Mapping[str, object] | None],
        pace: Pace | None = None,
    ) -> None:
        self._write = write
        self._status_of = status_of
        self._may_write = may_write
        self._shadow_report = shadow_report
        self._pace = pace or Pace()
        self._rng = random.Random()
        self._loop = asyncio.get_running_loop()
        self._inbox: LoopInbox[frozenset[str]] = LoopInbox(self._loop, self._receive)
        self._changes: dict[str, asyncio.Event] = {}
        """Set when the status of a SchedulingProfile may have to change, by name."""
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._shown: dict[str, tuple[ProfileObject, ProfileObject]] = {}
        """By name: the object that the watch delivered last, and this object with the changes that
        were written since."""
        self._is_stopped = False
        self._warned_s = -math.inf
        self.written = 0
        """Number of successful writes."""
        self.failed = 0
        """Number of failed attempts."""

    def changed(self, names: frozenset[str]) -> None:
        """Schedule a write for SchedulingProfiles whose status or object has changed."""
        self._inbox.put(names)

    async def stop(self) -> None:
        """Stop writing."""
        self._is_stopped = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _receive(self, names: frozenset[str]) -> None:
        for name in () if self._is_stopped else names:
            self._changes.setdefault(name, asyncio.Event()).set()
            if name not in self._tasks:
                task = self._loop.create_task(self._follow(name), name=f"profile-status-{name}")
                self._tasks[name] = task

    async def _follow(self, name: str) -> None:
        """Write the status of a SchedulingProfile whenever it changes, until it is deleted."""
        change = self._changes[name]
        while self._status_of(name) is not None:
            change.clear()
            try:
                await self._settle(name)
            except Exception:
                # Only a bug of Berth can cause this; it must not end the task.
                log.exception("status of a scheduling profile could not be written", profile=name)
            await asyncio.sleep(self._pace.pause_s)
            grows = self._shadow_report(name) is not None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._pace.shadow_s if grows else None):
                    await change.wait()
        for state in (self._changes, self._tasks, self._shown):
            state.pop(name, None)

    async def _settle(self, name: str) -> None:
        part = "status"

        async def attempt() -> None:
            nonlocal part
            while not self._may_write():  # noqa: ASYNC110 - leadership has no event to wait for
                await asyncio.sleep(self._pace.standby_s)
            known = self._status_of(name)
            newest = None if known is None else known.version.object
            if known is None or newest is None:
                return
            delivered, shown = self._shown.get(name, (None, newest))
            if delivered is not newest:
                shown = newest
            now = api_time(time.time())
            wanted = wanted_status(shown, known, self._shadow_report(name), now)
            patch, digests = merge_patch(shown.status, wanted), wanted_digests(shown, wanted)
            if not patch and digests == digests_of(shown.annotations):
                return
            same, annotations = {"uid": shown.uid}, {GOOD: " ".join(digests)}
            part = "status"
            if patch:
                await self._write(name, "status", {"metadata": same, "status": patch})
            part = "annotation"
            if digests != digests_of(shown.annotations):
                await self._write(name, "", {"metadata": {**same, "annotations": annotations}})
            annotations = {**shown.annotations, **annotations}
            shown = replace(shown, status=wanted, annotations=annotations)
            self._shown[name] = (newest, shown)
            self.written += 1

        def on_failure(failure: Failure) -> str:
            self.failed += 1
            self._warn(name, failure, part)
            # If the object was deleted or replaced, the watch delivers that as the next version.
            return "" if failure.action in _AGAIN else REFUSED

        # The write is idempotent, so an unknown outcome needs no read.
        end = await settle(attempt, on_failure, self._sleep, self._rng)
        if isinstance(end, Failure) and end.error.reason == "Fenced":
            self._changes[name].set()

    async def _sleep(self, delay_s: float) -> None:
        await asyncio.sleep(max(delay_s, self._pace.standby_s))

    def _warn(self, name: str, failure: Failure, part: str) -> None:
        now_s = time.monotonic()
        if now_s - self._warned_s >= _WARN_EVERY_S and failure.action is not Action.GONE:
            self._warned_s = now_s
            log.warning(
                f"{part} of a scheduling profile not written",
                profile=name,
                error=str(failure.error),
                consequence=_CONSEQUENCES[part],
            )


_CONSEQUENCES: Final = {
    "status": "its status is out of date",
    "annotation": "a replica that starts while the present generation is bad cannot run the last "
    "good one; needs permission to patch schedulingprofiles.scheduling.berth.dev",
}
