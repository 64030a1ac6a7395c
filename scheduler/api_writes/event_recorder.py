"""Record Events about pods and groups of pods, sent with lower priority than the binds.

    event() -> series -> queue -> a few workers -> API server

*Source*: client-go tools/events, event_broadcaster.go (1.36).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import structlog

from cache.value import Value
from scheduler.api_writes.background_writer import BackgroundWriter
from scheduler.api_writes.event_body import (
    DEFAULT_NAMESPACE,
    cut_note,
    event_body,
    event_name,
    series_patch,
    valid_instance,
)
from scheduler.api_writes.event_series import EventSeries, ObjectType, Occurrence, SeriesCache
from scheduler.api_writes.settle import AGAIN, Failure, settle, why_given_up
from scheduler.client.errors import Action
from scheduler.decision.profile_origin import DEFAULT_ORIGIN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cache.objects import Pod, PodMeta
    from scheduler.api_writes.event_series import EventType
    from scheduler.decision.profile_origin import PolicyOrigin
    from scheduler.process.ports import Ports

MAX_TRIES: Final = 12
"""Attempts at one Event before it is given up: client-go's maxTriesPerEvent. With the client's
backoff they take about two minutes, as they do there."""

POD_GROUP: Final = "PodGroup"
"""The kind of groups of pods, in either API."""

_SWEEP_S: Final = 30.0

_AGAIN: Final = AGAIN | {Action.CONFLICT}

log = structlog.get_logger(__name__)


class EventApi(Protocol):
    """The two calls that Events need; both raise ApiError."""

    async def create_event(self, namespace: str, body: Mapping[str, Any]) -> None:
        """POST a whole Event."""
        ...

    async def patch_event(self, namespace: str, name: str, patch: Mapping[str, Any]) -> None:
        """Change an Event by a merge patch."""
        ...


class EventStatistics(Value, frozen=True):
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


class EventRecorder(BackgroundWriter[Occurrence, EventSeries]):
    """Records Events.

    Parameters
    ----------
    ports
        The outside; ``rng`` is for the delays between attempts.
    component, instance
        reportingController and reportingInstance of each Event.
    capacity
        Events that may wait; when there are more, the newest are dropped.
    workers
        Requests under way at one time. Answers that come together cost less than one by one: an
        Event took 170 us of CPU with 4 workers, 115 us with 16.
    pressure
        Whether binds need the connection more than Events do; asked often, so keep it cheap.

    Notes
    -----
    *Concurrency*: :meth:`event`, :meth:`group_event` and :meth:`statistics` are thread-safe, the
    rest belongs to the loop.

    *Cost*: about 1 us for the caller and 8 us of the loop's time for an Event, besides the
    request itself.
    """

    NAME = "events"
    LEFT = "events left unsent"

    def __init__(
        self,
        ports: Ports[EventApi],
        *,
        component: str = "berth",
        instance: str,
        capacity: int = 5_000,
        workers: int = 16,
        pressure: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__(ports, MAX_TRIES, capacity, workers, pressure)
        self._api = ports.api
        self._component = component
        self._instance = valid_instance(instance)
        self._cache = SeriesCache()
        self._stamp = int(self._wall_clock() * 1e9)
        self._dropped_as_told = 0
        self._sent = self._folded = 0

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
        cause = None if related is None else related.metadata
        told = None if policy is DEFAULT_ORIGIN else policy
        at_s = self._wall_clock()
        self._put(Occurrence(pod.metadata, event_type, reason, action, note, at_s, cause, told))

    def group_event(
        self,
        group: PodMeta,
        group_version: str,
        event_type: EventType,
        reason: str,
        action: str,
        note: str,
        *,
        policy: PolicyOrigin = DEFAULT_ORIGIN,
    ) -> None:
        """Record that something happened to a PodGroup. Never waits, never raises.

        Parameters
        ----------
        group_version
            The version of the API that the object was read in.
        note, policy
            As :meth:`event`.
        """
        told = None if policy is DEFAULT_ORIGIN else policy
        type_, at_s = ObjectType(group_version, POD_GROUP), self._wall_clock()
        self._put(
            Occurrence(group, event_type, reason, action, note, at_s, policy=told, type=type_)
        )

    def statistics(self) -> EventStatistics:
        """Return what became of the events recorded so far."""
        return EventStatistics(self.queued, self._sent, self._folded, self._dropped, self._failed)

    # --- life ---------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to send."""
        super().start()
        self._spawn(self._sweep_forever(), "sweep")

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

    def _enqueue(self, item: EventSeries) -> None:
        item.queued = True
        super()._enqueue(item)

    def _let_go(self, series: EventSeries) -> None:
        """Write the last count of a series that is not in the cache any more."""
        if not series.queued and series.count != series.written_count:
            self._enqueue(series)

    # --- sending ------------------------------------------------------------------------------

    async def _write(self, item: EventSeries) -> None:
        is_written = False
        try:
            is_written = await self._settle(item)
        except Exception:
            # Reached only by a mistake of ours, which shall not end the worker.
            self._failed += 1
            log.exception("event could not be written", reason=item.first.reason)
        item.queued = False
        if not is_written:
            self._cache.discard(item)
            return
        self._sent += 1
        # What happened while it was being written.
        if item.is_due(self._clock()):
            self._enqueue(item)

    async def _settle(self, series: EventSeries) -> bool:
        """Create the Event or bring its count up to date; return False when that is given up."""
        namespace = series.first.pod.namespace or DEFAULT_NAMESPACE
        tries = self._failing.tries(namespace, MAX_TRIES)

        def gives_up(failure: Failure) -> str:
            again = {*_AGAIN, Action.GONE} if series.written_count else _AGAIN
            return why_given_up(failure, tries, again)

        async def took_effect(failure: Failure) -> Literal[True] | None:
            if failure.action is Action.CONFLICT and not series.written_count:
                # Names are unique: an earlier attempt did it without our learning of it.
                series.written(1, self._clock())
                return True if series.count == 1 else None
            if failure.action is Action.GONE:
                series.written_count = 0  # it has expired over there: create it again
            return None

        end = await settle(
            lambda: self._send(series, namespace),
            gives_up,
            self._executor.sleep,
            self._rng,
            took_effect,
        )
        if isinstance(end, Failure):
            why = self._give_up(namespace, end)
            if why:
                log.warning("events cannot be written", error=why, failed=self._failed)
            return False
        return end

    async def _send(self, series: EventSeries, namespace: str) -> bool:
        count = series.count
        if series.written_count == 0:
            body = event_body(
                series.first, series.name, count, series.last_s, self._component, self._instance
            )
            await self._api.create_event(namespace, body)
        else:
            patch = series_patch(count, series.last_s)
            await self._api.patch_event(namespace, series.name, patch)
        series.written(count, self._clock())
        self._failing.accepted(namespace)
        return True
