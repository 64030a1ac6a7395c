"""The condition that says why a pod waits, written when it changes and not otherwise.

    unscheduled() -> inbox -> waiting, one for each UID -> a few workers -> API server

A newer status of a pod takes the place of one that still waits, and no two requests about one pod
are under way at a time, so the last word is the last one written. Of a pod that has a node, if only
an assumed one, nothing is written: the API server itself writes ``PodScheduled=True`` and takes the
nomination away with the binding, and what came after would stay in a pod that runs. For the same
reason a binding waits for the end of a request that was under way before, see
:meth:`PodStatusWriter.quiet`.

Source: pkg/scheduler/framework/api_calls/pod_status_patch.go and
pkg/scheduler/backend/api_dispatcher/call_queue.go (1.36), whose gate SchedulerAsyncAPICalls is off
by default: then the scheduling thread itself waits for each answer.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

import structlog

from scheduler.client.errors import Action, ApiError, classify
from scheduler.failing_namespaces import FailingNamespaces
from scheduler.handover import LoopInbox
from scheduler.pod_condition import WantedStatus, WrittenStatuses, cut_message, status_patch
from scheduler.vital import no_death, watch_task

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from cache.objects import Pod, PodMeta
    from scheduler.vital import OnDeath

MAX_TRIES: Final = 8
"""Attempts at one status; about half a minute with the client's backoff. By then the pod has been
tried again and has a newer one."""

MAX_PAUSE_S: Final = 10.0
"""A status that shall wait for longer (Retry-After) is given up: the next attempt writes it."""

_COMPLAINT_S: Final = 60.0

log = structlog.get_logger(__name__)


class PodStatusApi(Protocol):
    """The one call that statuses need; raises ApiError."""

    async def patch_pod_status(
        self, namespace: str, name: str, uid: str, patch: Mapping[str, Any]
    ) -> None:
        """Change a pod's status by a strategic merge patch, if it still has this UID."""
        ...


@dataclass(frozen=True, slots=True)
class PodStatusStatistics:
    """What became of the statuses handed over so far; all but the first are totals."""

    queued: int
    """Waiting or under way."""
    written: int
    """Accepted by the API server."""
    unchanged: int
    """Not sent, because the pod says so already."""
    replaced: int
    """Not sent, because a newer one of the same pod came, or the pod has found a node."""
    dropped: int
    """Not taken in, because too many were waiting."""
    failed: int
    """Refused, or too many attempts."""
    gone: int
    """The pod no longer existed."""


class PodStatusWriter:
    """Writes ``PodScheduled=False`` into pods, with the reason.

    Parameters
    ----------
    loop
        The I/O loop.
    is_placed
        Tells of a UID whether the pod has a node, assumed or bound.
    capacity
        Pods that may wait; when there are more, the newest are dropped.
    workers
        Requests under way at one time.
    clock, wall_clock
        Monotonic seconds, and seconds since the epoch.
    rng, sleep
        For the delays between attempts.
    on_death
        Called with the name of a worker that ends without being stopped.

    Notes
    -----
    *Concurrency*: :meth:`unscheduled`, :meth:`nominate` and :meth:`statistics` are thread-safe,
    the rest belongs to the loop.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        api: PodStatusApi,
        is_placed: Callable[[str], bool],
        *,
        capacity: int = 10_000,
        workers: int = 4,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
        rng: random.Random | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        on_death: OnDeath = no_death,
    ) -> None:
        self._loop = loop
        self._api = api
        self._is_placed = is_placed
        self._capacity = capacity
        self._workers = workers
        self._clock = clock
        self._wall_clock = wall_clock
        self._rng = rng or random.Random()
        self._sleep = sleep
        self._on_death = on_death
        self._failing = FailingNamespaces()
        self._inbox: LoopInbox[WantedStatus] = LoopInbox(loop, self._receive)
        self._ready: asyncio.Queue[str] = asyncio.Queue()
        self._waiting: dict[str, WantedStatus] = {}
        self._active: set[str] = set()
        self._requests: dict[str, asyncio.Event] = {}
        """The pods with a request under way, by UID; set when it has ended."""
        self._written_lately = WrittenStatuses(capacity)
        self._tasks: list[asyncio.Task[None]] = []
        self._complained_at_s: float | None = None
        # Guards the numbers that callers of unscheduled() change.
        self._lock = threading.Lock()
        self._on_the_way = 0
        self._dropped = 0
        self._is_stopped = False
        self._written = self._unchanged = self._replaced = self._failed = self._gone = 0

    # --- callers ------------------------------------------------------------------------------

    def unscheduled(
        self, pod: Pod, reason: str, message: str, nominated_node_name: str | None = None
    ) -> None:
        """Let the pod's status say that, and why, it has no node. Never waits, never raises.

        Parameters
        ----------
        pod
            The latest version known.
        reason
            ``Unschedulable`` or ``SchedulerError``.
        nominated_node_name
            The node the pod is nominated for; the empty string clears a nomination, None leaves
            what there is.
        """
        self._put(WantedStatus(pod, reason, cut_message(message), nominated_node_name))

    def nominate(self, pod: Pod, node_name: str) -> None:
        """Let the pod's status name a nominated node, or none. Never waits, never raises.

        Parameters
        ----------
        pod
            The latest version known.
        node_name
            The empty string takes the nomination away.
        """
        self._put(WantedStatus(pod, "", "", node_name))

    def _put(self, wanted: WantedStatus) -> None:
        with self._lock:
            is_new = wanted.metadata.uid not in self._waiting
            waiting = self._on_the_way + len(self._waiting)
            if self._is_stopped or (is_new and waiting >= self._capacity):
                self._dropped += 1
                return
            self._on_the_way += 1
        self._inbox.put(wanted)

    async def nominate_now(self, pod: Pod, node_name: str) -> None:
        """Set an assumed pod's nominated node name. Tried once, and never raises.

        Source: pkg/scheduler/schedule_one.go, bindingCycle (1.36): that it fails is no reason not
        to bind.
        """
        wanted, metadata = WantedStatus(pod, "", "", node_name), pod.metadata
        await self.quiet(metadata.uid)
        shown = self._written_lately.shown_by(pod, self._clock())
        patch, will_show = status_patch(wanted, shown, self._wall_clock())
        if not patch:
            return
        try:
            await self._send(metadata, patch)
        except ApiError as error:
            self._written_lately.forget(metadata.uid)
            log.warning(
                "nominated node name could not be written",
                pod=wanted.key,
                node=node_name,
                error=str(error),
            )
        else:
            # The watch may tell of it later than the binding fails: it must be known then.
            self._written_lately.remember(metadata.uid, will_show, self._clock())

    async def quiet(self, uid: str) -> None:
        """Wait until no request about a pod is under way.

        If the pod has been placed before, none will begin any more: what is written next about
        it, a binding for example, is written last. A request lasts as long as the client lets it.
        """
        while (request := self._requests.get(uid)) is not None:
            await request.wait()

    def statistics(self) -> PodStatusStatistics:
        """Return what became of the statuses handed over so far."""
        return PodStatusStatistics(
            queued=self._on_the_way + len(self._waiting) + len(self._active),
            written=self._written,
            unchanged=self._unchanged,
            replaced=self._replaced,
            dropped=self._dropped,
            failed=self._failed,
            gone=self._gone,
        )

    # --- life ---------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to send."""
        self._tasks = [
            self._loop.create_task(self._work(), name=f"pod-status-{index}")
            for index in range(self._workers)
        ]
        for task in self._tasks:
            watch_task(task, self._on_death)

    async def drain(self, timeout_s: float) -> int:
        """Wait until all statuses are written; return how many are not when time is up."""
        await asyncio.sleep(0)  # what was put into the inbox before arrives meanwhile
        try:
            await asyncio.wait_for(self._ready.join(), timeout_s)
        except TimeoutError:
            log.warning("pod statuses left unwritten", count=self.statistics().queued)
        return self.statistics().queued

    async def stop(self) -> None:
        """Stop sending; afterwards everything handed over is dropped and counted."""
        with self._lock:
            self._is_stopped = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []

    # --- what waits ---------------------------------------------------------------------------

    def _receive(self, wanted: WantedStatus) -> None:
        with self._lock:
            self._on_the_way -= 1
        uid = wanted.metadata.uid
        older = self._waiting.get(uid)
        if older is not None:
            self._replaced += 1
            self._waiting[uid] = wanted.after(older)
            return
        self._waiting[uid] = wanted
        if uid not in self._active:
            self._ready.put_nowait(uid)

    # --- sending ------------------------------------------------------------------------------

    async def _work(self) -> None:
        while True:
            uid = await self._ready.get()
            wanted = self._waiting.pop(uid, None)
            if wanted is not None:
                self._active.add(uid)
                try:
                    await self._write(wanted)
                except Exception:
                    # Reached only by a mistake of ours, which shall not end the worker.
                    self._failed += 1
                    log.exception("pod status could not be written", pod=wanted.key)
                finally:
                    self._active.discard(uid)
                if uid in self._waiting:
                    self._ready.put_nowait(uid)
            self._ready.task_done()

    async def _write(self, wanted: WantedStatus) -> None:
        metadata = wanted.metadata
        if self._is_placed(metadata.uid):
            self._replaced += 1
            return
        shown = self._written_lately.shown_by(wanted.pod, self._clock())
        patch, will_show = status_patch(wanted, shown, self._wall_clock())
        if not patch:
            self._unchanged += 1
            return
        last: ApiError | None = None
        for attempt in range(self._failing.tries(metadata.namespace, MAX_TRIES)):
            try:
                await self._send(metadata, patch)
            except ApiError as error:
                last = error
                # Whatever it says now, nobody knows that it is what we wrote.
                self._written_lately.forget(metadata.uid)
                action, delay_s = classify(error, attempt, self._rng)
                if action in (Action.GONE, Action.CONFLICT) or is_another_pod(error):
                    self._gone += 1
                    return
                if action not in (Action.RETRY, Action.SETTLE):
                    self._give_up(wanted, error)
                    return
                if delay_s > MAX_PAUSE_S and error.retry_after_s is not None:
                    break  # a worker that waited so long would keep others' statuses waiting
                # To write it twice is as good as once, so there is nothing to settle.
                if not self._is_superseded(wanted):
                    await self._sleep(delay_s)
                if self._is_superseded(wanted):
                    self._replaced += 1
                    return
            else:
                self._written += 1
                self._written_lately.remember(metadata.uid, will_show, self._clock())
                self._failing.accepted(metadata.namespace)
                return
        if last is not None:
            self._failing.gave_up(metadata.namespace, last)
        self._give_up(wanted, None)

    async def _send(self, metadata: PodMeta, patch: Mapping[str, Any]) -> None:
        await self.quiet(metadata.uid)
        request = self._requests[metadata.uid] = asyncio.Event()
        try:
            await self._api.patch_pod_status(metadata.namespace, metadata.name, metadata.uid, patch)
        finally:
            del self._requests[metadata.uid]
            request.set()

    def _is_superseded(self, wanted: WantedStatus) -> bool:
        """Tell whether the pod has a node, or a newer word, which inherits the nomination."""
        uid = wanted.metadata.uid
        if self._is_placed(uid):
            return True
        newer = self._waiting.get(uid)
        if newer is None:
            return False
        self._waiting[uid] = newer.after(wanted)
        return True

    def _give_up(self, wanted: WantedStatus, error: ApiError | None) -> None:
        """Count a failure; log one a minute at most: there may be thousands."""
        self._failed += 1
        now_s = self._clock()
        if self._complained_at_s is not None and now_s - self._complained_at_s < _COMPLAINT_S:
            return
        self._complained_at_s = now_s
        why = f"no success in {MAX_TRIES} attempts" if error is None else str(error)
        log.error("pod status cannot be written", pod=wanted.key, error=why, failed=self._failed)


def is_another_pod(error: ApiError) -> bool:
    """Tell whether the UID was refused: the pod was made again under its name.

    A patch with another UID than the object's is no conflict to kube-apiserver 1.36 but an
    attempt to change what is immutable.
    """
    return error.status == 422 and "metadata.uid" in error.message
