"""Runs the insight worker for the scheduler: starts it, keeps its copy up to date, asks it.

The process is started by the first question and ended when nobody asks for some minutes, so that a
copy of the cluster takes memory only while it is used.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import structlog

from cache.kept_annotations import OWN_PREFIX, kept_prefixes
from cache.value import Value
from scheduler.insight.changes import StoreChanges
from scheduler.insight.messages import (
    LENGTH_BYTES,
    MAX_ANSWER_BYTES,
    MAX_HEAD_BYTES,
    Answer,
    Assumed,
    Profiles,
    Question,
    WireProfile,
    decode,
    frame,
)
from scheduler.insight.refused import RefusedError
from scheduler.insight.worker_pipes import WorkerPipes
from scheduler.kinds import PODS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scheduler.config import EffectiveProfile
    from scheduler.informers import Informer

SYNC_EVERY_S: Final = 1.0
"""How old the worker's copy may be."""

IDLE_S: Final = 300.0
"""When the worker is ended after the last question."""

MAX_WAITING: Final = 64
"""Questions that wait or are answered; beyond that the next ones are refused."""

PAUSE_S: Final = 0.002
"""Between two slices of changes, each of about 0.1 ms: a twentieth of the loop's time."""

_LEAST_BYTES: Final = 128 << 20
"""Less is of no use: then the worker ends, and the question gets no answer."""

_CGROUP: Final = Path("/sys/fs/cgroup")

log = structlog.get_logger(__name__)


class WorkerSources(Value, frozen=True):
    """What the worker's copy is made of.

    Attributes
    ----------
    informers
        Returns the present informers.
    assumed
        Returns the nodes of assumed pods by UID.
    profiles
        Returns the profiles in force; called on a thread.
    plugin_dir
        The directory of users' plugins; None for none.
    """

    informers: Callable[[], Sequence[Informer[Any]]]
    assumed: Callable[[], dict[str, str]]
    profiles: Callable[[], Sequence[EffectiveProfile]]
    plugin_dir: Path | None = None


class InsightWorker:
    """The worker, as the scheduler sees it.

    Notes
    -----
    *Concurrency*: loop-confined.

    *Cost*: nothing while nobody asks. The first question sends all objects in slices, about 2 us of
    the loop for each; later ones what has changed.
    """

    def __init__(self, sources: WorkerSources) -> None:
        self._sources = sources
        self._changes = StoreChanges(sources.informers)
        self._process: WorkerPipes | None = None
        self._reading: asyncio.Task[None] | None = None
        self._syncing = asyncio.Lock()
        self._synced_s = float("-inf")
        self._sent_profiles: Sequence[EffectiveProfile] | None = None
        self._answers: dict[int, asyncio.Future[Answer]] = {}
        self._last_id = 0
        self._idle: asyncio.TimerHandle | None = None

    def follow(self) -> None:
        """Follow the informers; to be called before they start, when they have nothing yet."""
        self._changes.follow()

    async def ask(
        self,
        kind: str,
        limit_s: float,
        *,
        shows_nodes: bool,
        shows_pods: bool,
        pod: str = "",
        uid: str = "",
        body: bytes = b"",
        only_text: bool = False,
    ) -> bytes:
        """Return the answer to a question, as JSON; the parameters are those of a Question.

        Parameters
        ----------
        uid
            Of the pod: a change of it is in the answer even if it came a moment ago.

        Raises
        ------
        RefusedError
            There is no answer: too many questions wait, it takes too long, or what is asked for
            has a mistake.
        """
        if len(self._answers) >= MAX_WAITING:
            raise RefusedError(503, "TooManyRequests", "too many questions wait", 2.0)
        self._last_id += 1
        question = Question(
            self._last_id, kind, limit_s, shows_nodes, shows_pods, pod, body, only_text
        )
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._answers[question.id] = future
        self._put_off_idle()
        try:
            async with self._syncing:
                await self._sync(uid)
                await self._send(frame(question))
            answer = await future
        except (ConnectionError, OSError) as error:
            await self.stop()
            raise RefusedError(503, "InternalError", "the insight worker ended", 2.0) from error
        finally:
            self._answers.pop(question.id, None)
        if answer.status != 200:
            raise _refusal(answer)
        return answer.body

    async def stop(self) -> None:
        """End the worker; what waits for an answer is refused."""
        self._changes.end()
        await self._end_process()
        if self._idle is not None:
            self._idle.cancel()
        self._refuse_all()

    # --- the copy -----------------------------------------------------------------------------

    async def _sync(self, uid: str) -> None:
        """Bring the worker's copy up to date, unless that was done a moment ago."""
        if self._process is None or self._process.has_ended:
            await self._start()
        is_fresh = time.monotonic() - self._synced_s < SYNC_EVERY_S
        if is_fresh and not self._changes.includes(PODS.name, uid):
            return
        profiles = await asyncio.to_thread(self._sources.profiles)
        if profiles != self._sent_profiles:
            self._sent_profiles = profiles
            wire = tuple(WireProfile.of(each) for each in profiles)
            await self._send(frame(Profiles(wire)))
        for part in self._changes.slices():
            await self._send(part)
            await asyncio.sleep(PAUSE_S)
        # No await since the last slice: what is assumed belongs to these very stores.
        await self._send(frame(Assumed(self._sources.assumed())))
        self._synced_s = time.monotonic()

    async def _start(self) -> None:
        await self._end_process()
        settings = {
            "memory_bytes": _memory_limit(),
            "plugin_dir": str(self._sources.plugin_dir or ""),
            "keep_annotations": [each for each in kept_prefixes() if each != OWN_PREFIX],
        }
        # Threads of a numeric library could not be forked.
        alone = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
        command = [sys.executable, "-m", "scheduler.insight.worker_process"]
        self._process = await WorkerPipes.start(
            [*command, msgspec.json.encode(settings).decode()], {**os.environ, **alone}
        )
        self._reading = asyncio.create_task(self._read(self._process))
        self._changes.begin()
        self._synced_s, self._sent_profiles = float("-inf"), None
        log.info("insight worker started", process=self._process.pid)

    async def _end_process(self) -> None:
        process, self._process = self._process, None
        reading, self._reading = self._reading, None
        self._synced_s, self._sent_profiles = float("-inf"), None
        if reading is not None:
            # First: the end of this process must not refuse what the next one is asked.
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        if process is not None:
            await process.end()

    async def _send(self, data: bytes) -> None:
        process = self._process
        if process is None:
            raise ConnectionResetError("the worker has ended")
        process.sink.write(data)
        await process.sink.drain()

    # --- answers ------------------------------------------------------------------------------

    async def _read(self, process: WorkerPipes) -> None:
        """Hand out answers until the worker ends; then nobody waits for it any longer."""
        reader = process.source
        try:
            while True:
                length = int.from_bytes(await reader.readexactly(LENGTH_BYTES), "big")
                if length > MAX_ANSWER_BYTES + MAX_HEAD_BYTES:
                    raise ConnectionResetError("an answer is too large")
                found = decode(await reader.readexactly(length))
                if isinstance(found, Answer):
                    self._answered(found)
        except (asyncio.IncompleteReadError, ConnectionError):
            log.warning("insight worker ended")
            self._refuse_all()
            self._changes.end()

    def _answered(self, found: Answer) -> None:
        future = self._answers.get(found.id)
        if future is not None and not future.done():
            future.set_result(found)

    def _refuse_all(self) -> None:
        for future in self._answers.values():
            if not future.done():
                future.set_exception(ConnectionResetError("the worker has ended"))

    def _put_off_idle(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        loop = asyncio.get_running_loop()
        self._idle = loop.call_later(IDLE_S, lambda: loop.create_task(self._end_if_idle()))

    async def _end_if_idle(self) -> None:
        if self._answers:
            self._put_off_idle()
        else:
            await self.stop()


def _refusal(answer: Answer) -> RefusedError:
    reasons = {400: "BadRequest", 422: "Invalid", 504: "Timeout", 507: "TooLarge"}
    reason = reasons.get(answer.status, "InternalError")
    return RefusedError(answer.status, reason, answer.body.decode("utf-8", "replace"))


def _memory_limit() -> int:
    """Return half of the memory that the container has left, or 0 where it has no limit.

    The other half is for what forks change of their copies. A container whose memory runs out is
    ended with the scheduler in it.
    """
    try:
        most = int((_CGROUP / "memory.max").read_text(encoding="ascii"))
        used = int((_CGROUP / "memory.current").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0
    return max((most - used) // 2, _LEAST_BYTES)
