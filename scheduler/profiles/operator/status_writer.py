"""Writes into SchedulingProfiles what became of them; the leader does, nobody else.

Not by kopf's own patches: kopf knows nothing of our Lease, and a write that it starts may end after
somebody else leads. These go the way of all our writes, through the fence of the transport.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import structlog

from scheduler.client.errors import Action, ApiError, classify
from scheduler.client.timestamps import api_time
from scheduler.process.loop_inbox import LoopInbox
from scheduler.profiles.operator.history import GOOD
from scheduler.profiles.operator.status_patch import merge_patch, wanted_seals, wanted_status

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import Any

    from scheduler.profiles import PolicyStatus
    from scheduler.profiles.operator.scheduling_profile import ProfileObject

PAUSE_S: Final = 0.25
"""Between two writes about one object: whoever writes against us shall not make it a storm."""

STANDBY_S: Final = 1.0
"""How often a standby looks whether it leads, while there is something to write."""

SHADOW_S: Final = 10.0
"""How often the report of a shadow run is written while it grows."""

_COMPLAINT_S: Final = 60.0

log = structlog.get_logger(__name__)


class ProfileStatusWriter:
    """Keeps the status of every SchedulingProfile up to date.

    Parameters
    ----------
    loop
        The I/O loop.
    write
        Patches the object with a name by a merge patch, or with ``status`` that subresource of
        it; raises ApiError.
    policy_status
        What the policies say of a SchedulingProfile; never waits.
    may_write
        Whether this process leads.
    shadow_report
        See :class:`~scheduler.profiles.operator.crd_operator.CrdOperator`.

    Notes
    -----
    *Concurrency*: :meth:`take` and :meth:`changed` from any thread, the rest belongs to the loop.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        write: Callable[[str, str, Mapping[str, Any]], Awaitable[None]],
        policy_status: Callable[[str], PolicyStatus | None],
        may_write: Callable[[], bool],
        shadow_report: Callable[[str], Mapping[str, object] | None],
        *,
        pause_s: float = PAUSE_S,
        standby_s: float = STANDBY_S,
        shadow_s: float = SHADOW_S,
        rng: random.Random | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._loop = loop
        self._write = write
        self._policy_status = policy_status
        self._may_write = may_write
        self._shadow_report = shadow_report
        self._pause_s = pause_s
        self._standby_s = standby_s
        self._shadow_s = shadow_s
        self._rng = rng or random.Random()
        self._clock = clock
        self._wall_clock = wall_clock
        self._inbox: LoopInbox[ProfileObject | str | frozenset[str]] = LoopInbox(
            loop, self._receive
        )
        self._found: dict[str, ProfileObject] = {}
        self._due: dict[str, float] = {}
        """When to look at a SchedulingProfile, by name."""
        self._failures: dict[str, int] = {}
        self._written_s: dict[str, float] = {}
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._complained_s = float("-inf")
        self.written = 0
        """Statuses that the API server took."""
        self.failed = 0
        """Attempts that it did not."""

    def take(self, found: ProfileObject | str) -> None:
        """Take note of a version that was taken in, or of the name of an object that is gone."""
        self._inbox.put(found)

    def changed(self, names: frozenset[str]) -> None:
        """Take note that the policies say something else of these."""
        self._inbox.put(names)

    def start(self) -> None:
        """Begin to write."""
        self._task = self._loop.create_task(self._run(), name="profile-status")

    async def stop(self) -> None:
        """Write nothing more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    # --- what is to be done -------------------------------------------------------------------

    def _receive(self, what: ProfileObject | str | frozenset[str]) -> None:
        now_s = self._clock()
        if isinstance(what, str):
            self._found.pop(what, None)
            self._due.pop(what, None)
            self._failures.pop(what, None)
            self._written_s.pop(what, None)
            return
        if isinstance(what, frozenset):
            for name in what & self._found.keys():
                self._look_at(name, now_s)
        else:
            self._found[what.name] = what
            self._look_at(what.name, now_s)

    def _look_at(self, name: str, due_s: float) -> None:
        """Look at an object at a time, or before, but not too soon after it was written last."""
        earliest_s = self._written_s.get(name, float("-inf")) + self._pause_s
        self._due[name] = min(max(due_s, earliest_s), self._due.get(name, float("inf")))
        self._news.set()

    async def _run(self) -> None:
        while True:
            self._news.clear()
            if self._due and not self._may_write():
                await asyncio.sleep(self._standby_s)
                continue
            now_s = self._clock()
            name = min(self._due, key=self._due.__getitem__, default=None)
            if name is None or self._due[name] > now_s:
                wait_s = None if name is None else self._due[name] - now_s
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait_s):
                        await self._news.wait()
                continue
            del self._due[name]
            try:
                await self._settle(name)
            except Exception:
                # Reached only by a mistake of ours, which shall not end the writer.
                log.exception("status of a scheduling profile could not be made", profile=name)

    async def _settle(self, name: str) -> None:
        found, now_s = self._found.get(name), self._clock()
        if found is None:
            return
        report = self._shadow_report(name)
        if report is not None:
            self._look_at(name, now_s + self._shadow_s)
        now = api_time(self._wall_clock())
        wanted = wanted_status(found, self._policy_status(name), report, now)
        patch = {} if wanted is None else merge_patch(found.status, wanted)
        if wanted is None:
            return
        seals = wanted_seals(found, wanted)
        if not patch and seals == found.seals:
            return
        same = {"uid": found.uid}
        annotations = {GOOD: " ".join(seals)}
        part = "status"
        try:
            if patch:
                await self._write(name, "status", {"metadata": same, "status": patch})
            part = "annotation"
            if seals != found.seals:
                await self._write(name, "", {"metadata": {**same, "annotations": annotations}})
        except ApiError as error:
            self._failed(name, error, part)
            return
        self._failures.pop(name, None)
        self.written += 1
        self._written_s[name] = self._clock()
        if self._found.get(name) is found:
            self._found[name] = replace(found, status=wanted, seals=seals)

    def _failed(self, name: str, error: ApiError, part: str) -> None:
        self.failed += 1
        attempt = self._failures.get(name, 0)
        self._failures[name] = attempt + 1
        action, delay_s = classify(error, attempt, self._rng)
        # To write it twice is as good as once, so there is nothing to settle. Where the object is
        # gone or another one now, the next version says so.
        if action in (Action.RETRY, Action.SETTLE, Action.FORBIDDEN) or error.reason == "Fenced":
            self._look_at(name, self._clock() + max(delay_s, self._standby_s))
        if self._clock() - self._complained_s >= _COMPLAINT_S and action is not Action.GONE:
            self._complained_s = self._clock()
            log.warning(
                f"{part} of a scheduling profile not written",
                profile=name,
                error=str(error),
                consequence=_CONSEQUENCES[part],
            )


_CONSEQUENCES: Final = {
    "status": "its status is out of date",
    "annotation": "a replica that starts while the present generation is bad runs none of it; "
    "needs the right to patch schedulingprofiles.scheduling.berth.dev",
}
