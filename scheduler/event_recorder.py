"""Events about pods, sent behind the binds.

    event() -> inbox -> series -> queue -> a few workers -> API server

Recording an Event costs its caller a few hundred nanoseconds and never waits. What cannot be
kept is dropped and counted. While binds press, one worker goes on and the others hold back, the
less the fuller the queue is.

Source: client-go tools/events, event_broadcaster.go (1.36).
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
from scheduler.event_body import (
    DEFAULT_NAMESPACE,
    cut_note,
    event_body,
    event_name,
    series_patch,
    valid_instance,
)
from scheduler.event_series import EventSeries, Occurrence, SeriesCache
from scheduler.failing_namespaces import FailingNamespaces
from scheduler.handover import LoopInbox
from scheduler.policy.policy_origin import DEFAULT_ORIGIN
from scheduler.vital import no_death, watch_task

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from cache.objects import Pod
    from scheduler.event_series import EventType
    from scheduler.policy.policy_origin import PolicyOrigin
    from scheduler.vital import OnDeath

MAX_TRIES: Final = 12
"""Attempts at one Event before it is given up: client-go's maxTriesPerEvent. With the client's
backoff they take about two minutes, as they do there."""

_HOLD_BACK_S: Final = 0.01
_PRESSED_WORKERS: Final = 4
"""So many go on at most while binds press."""

_SWEEP_S: Final = 30.0
MAX_PAUSE_S: Final = 10.0
"""An Event that shall wait for longer (Retry-After) is given up. An API server that shuts down asks
for 5 s."""

_COMPLAINT_S: Final = 60.0

log = structlog.get_logger(__name__)


class EventApi(Protocol):
    """The two calls that Events need; both raise ApiError."""

    async def create_event(self, namespace: str, body: Mapping[str, Any]) -> object:
        """POST a whole Event."""
        ...

    async def patch_event(self, namespace: str, name: str, patch: Mapping[str, Any]) -> None:
        """Change an Event by a merge patch."""
        ...


@dataclass(frozen=True, slots=True)
class EventStatistics:
    """What became of the events recorded so far; all but the first are totals."""

    queued: int
    """Waiting or under way."""
    sent: int
    """Requests that the API server accepted: Events created and counts brought up to date."""
    folded: int
    """Repetitions counted into a series."""
    dropped: int
    """Not taken in, because too many were waiting."""
    failed: int
    """Taken in and given up: refused, or too many attempts."""


class EventRecorder:
    """Records Events.

    Parameters
    ----------
    loop
        The I/O loop.
    component, instance
        reportingController and reportingInstance of each Event.
    capacity
        Events that may wait; when there are more, the newest are dropped.
    workers
        Requests under way at one time. Answers that come together cost less than one by one: an
        Event took 170 us of CPU with 4 workers, 115 us with 16.
    clock, wall_clock
        Monotonic seconds, and seconds since the epoch.
    pressure
        Whether binds need the connection more than Events do; asked often, so keep it cheap.
    rng, sleep
        For the delays between attempts.
    on_death
        Called with the name of a worker that ends without being stopped.

    Notes
    -----
    *Concurrency*: :meth:`event` and :meth:`statistics` are thread-safe, the rest belongs to the
    loop.

    *Cost*: about 1 us for the caller and 8 us of the loop's time for an Event, besides the
    request itself.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        api: EventApi,
        *,
        component: str = "berth",
        instance: str,
        capacity: int = 5_000,
        workers: int = 16,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
        pressure: Callable[[], bool] = lambda: False,
        rng: random.Random | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        on_death: OnDeath = no_death,
    ) -> None:
        self._loop = loop
        self._api = api
        self._component = component
        self._instance = valid_instance(instance)
        self._capacity = capacity
        self._workers = workers
        self._clock = clock
        self._wall_clock = wall_clock
        self._pressure = pressure
        self._rng = rng or random.Random()
        self._sleep = sleep
        self._on_death = on_death
        self._failing = FailingNamespaces()
        self._inbox: LoopInbox[Occurrence] = LoopInbox(loop, self._receive)
        self._queue: asyncio.Queue[EventSeries] = asyncio.Queue()
        self._cache = SeriesCache()
        self._stamp = int(wall_clock() * 1e9)
        self._tasks: list[asyncio.Task[None]] = []
        self._is_draining = False
        self._complained_at_s: float | None = None
        self._dropped_as_told = 0
        # Guards the numbers that callers of event() change.
        self._lock = threading.Lock()
        self._on_the_way = 0
        self._dropped = 0
        self._is_stopped = False
        self._sent = self._folded = self._failed = self._active = 0

    # --- callers ------------------------------------------------------------------------------

    def event(
        self,
        pod: Pod,
        event_type: EventType,
        reason: str,
        action: str,
        note: str,
        *,
        related: Pod | None = None,
        policy: PolicyOrigin = DEFAULT_ORIGIN,
    ) -> None:
        """Record that something happened to a pod. Never waits, never raises.

        Parameters
        ----------
        note
            For people; cut at 1 024 bytes.
        related
            The pod because of which it happened.
        policy
            What decided it; the default one goes without saying.
        """
        with self._lock:
            waiting = self._on_the_way + self._queue.qsize()
            if self._is_stopped or waiting >= self._capacity:
                self._dropped += 1
                return
            self._on_the_way += 1
        cause = None if related is None else related.metadata
        told = None if policy is DEFAULT_ORIGIN else policy
        at_s = self._wall_clock()
        self._inbox.put(
            Occurrence(pod.metadata, event_type, reason, action, note, at_s, cause, told)
        )

    def statistics(self) -> EventStatistics:
        """Return what became of the events recorded so far."""
        queued = self._on_the_way + self._queue.qsize() + self._active
        return EventStatistics(queued, self._sent, self._folded, self._dropped, self._failed)

    # --- life ---------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to send."""
        self._tasks = [
            self._loop.create_task(self._work(index), name=f"events-{index}")
            for index in range(self._workers)
        ]
        self._tasks.append(self._loop.create_task(self._sweep_forever(), name="events-sweep"))
        for task in self._tasks:
            watch_task(task, self._on_death)

    async def drain(self, timeout_s: float) -> int:
        """Wait until all that was recorded is sent, whatever the pressure.

        Returns
        -------
        How many were still unsent when time was up.
        """
        self._is_draining = True
        await asyncio.sleep(0)  # what was put into the inbox before arrives meanwhile
        try:
            await asyncio.wait_for(self._queue.join(), timeout_s)
        except TimeoutError:
            log.warning("events left unsent", count=self.statistics().queued)
        self._is_draining = False
        return self.statistics().queued

    async def stop(self) -> None:
        """Stop sending; afterwards everything recorded is dropped and counted."""
        with self._lock:
            self._is_stopped = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []

    def sweep(self) -> None:
        """Queue the counts that are due and end the series that are silent. Called now and then.

        *Cost*: proportional to the series under way, about 0.1 us each.
        """
        now_s = self._clock()
        for series in self._cache.pop_finished(now_s):
            self._let_go(series)
        for series in self._cache:
            if not series.queued and series.is_due(now_s):
                self._enqueue(series)
        if self._dropped > self._dropped_as_told:
            count, self._dropped_as_told = self._dropped - self._dropped_as_told, self._dropped
            log.warning("events dropped: too many were waiting", count=count)

    async def _sweep_forever(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_S)
            self.sweep()

    # --- series -------------------------------------------------------------------------------

    def _receive(self, occurrence: Occurrence) -> None:
        with self._lock:
            self._on_the_way -= 1
        now_s = self._clock()
        note = cut_note(occurrence.note)
        if note is not occurrence.note:
            occurrence = occurrence._replace(note=note)
        series = self._cache.repeated(occurrence, now_s)
        if series is not None:
            self._folded += 1
            if not series.queued and series.is_due(now_s):
                self._enqueue(series)
            return
        self._stamp = max(self._stamp + 1, int(occurrence.at_s * 1e9))
        name = event_name(occurrence.pod.name, self._stamp)
        series = EventSeries(occurrence, name, now_s)
        displaced = self._cache.add(series)
        if displaced is not None:
            self._let_go(displaced)
        self._enqueue(series)

    def _enqueue(self, series: EventSeries) -> None:
        series.queued = True
        self._queue.put_nowait(series)

    def _let_go(self, series: EventSeries) -> None:
        """Write the last count of a series that is not in the cache any more."""
        if not series.queued and series.count != series.written_count:
            self._enqueue(series)

    # --- sending ------------------------------------------------------------------------------

    async def _work(self, index: int) -> None:
        while True:
            series = await self._queue.get()
            self._active += 1
            is_written = False
            try:
                while self._holds_back(index):
                    # The last to be let on looks up least often: to look costs time, too.
                    await self._sleep(_HOLD_BACK_S * index)
                is_written = await self._write(series)
            except Exception:
                # Reached only by a mistake of ours, which shall not end the worker.
                log.exception("event could not be written", reason=series.first.reason)
            self._active -= 1
            series.queued = False
            if not is_written:
                self._failed += 1
                self._cache.discard(series)
            else:
                self._sent += 1
                # What happened while it was being written.
                if series.is_due(self._clock()):
                    self._enqueue(series)
            self._queue.task_done()

    def _holds_back(self, index: int) -> bool:
        """Tell whether this worker should leave the connection to the binds."""
        if index == 0 or self._is_draining or not self._pressure():
            return False
        # Of four workers, the second goes on in spite of it once a quarter of the capacity is
        # taken, the last one at three quarters.
        pressed = min(self._workers, _PRESSED_WORKERS)
        return index * self._capacity > self._queue.qsize() * pressed

    async def _write(self, series: EventSeries) -> bool:
        """Create the Event or bring its count up to date; return False when that is given up."""
        namespace = series.first.pod.namespace or DEFAULT_NAMESPACE
        last: ApiError | None = None
        for attempt in range(self._failing.tries(namespace, MAX_TRIES)):
            count = series.count
            is_new = series.written_count == 0
            try:
                if is_new:
                    await self._api.create_event(namespace, self._body(series, count))
                else:
                    patch = series_patch(count, series.last_s)
                    await self._api.patch_event(namespace, series.name, patch)
            except ApiError as error:
                last = error
                action, delay_s = classify(error, attempt, self._rng)
                if action is Action.CONFLICT and is_new:
                    # Names are unique: an earlier attempt did it without our learning of it.
                    series.written(1, self._clock())
                    if series.count == 1:
                        return True
                elif action is Action.GONE and not is_new:
                    series.written_count = 0  # it has expired over there: create it again
                elif delay_s > MAX_PAUSE_S and error.retry_after_s is not None:
                    break  # a worker that waited so long would keep others' Events waiting
                elif action in (Action.RETRY, Action.SETTLE, Action.CONFLICT):
                    await self._sleep(delay_s)
                else:
                    self._complain(error)
                    return False
            else:
                series.written(count, self._clock())
                self._failing.accepted(namespace)
                return True
        if last is not None:
            self._failing.gave_up(namespace, last)
        self._complain(None)
        return False

    def _body(self, series: EventSeries, count: int) -> dict[str, Any]:
        first = series.first
        return event_body(
            first.pod,
            series.name,
            first.event_type,
            first.reason,
            first.action,
            first.note,
            at_s=first.at_s,
            count=count,
            last_s=series.last_s,
            component=self._component,
            instance=self._instance,
            related=first.related,
            policy=first.policy,
        )

    def _complain(self, error: ApiError | None) -> None:
        """Log why an Event was given up, once a minute at most: there may be thousands."""
        now_s = self._clock()
        if self._complained_at_s is not None and now_s - self._complained_at_s < _COMPLAINT_S:
            return
        self._complained_at_s = now_s
        why = f"no success in {MAX_TRIES} attempts" if error is None else str(error)
        log.warning("events cannot be written", error=why, failed=self._failed + 1)
