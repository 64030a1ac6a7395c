"""Count repeated Events in one series.

A pod that does not fit is rejected every few minutes, for hours, with the same message. That is one
Event with a count, not a hundred Events.

*Source*: client-go tools/events, event_broadcaster.go (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cache.objects import PodMeta
    from scheduler.decision.profile_origin import PolicyOrigin

EventType: TypeAlias = Literal["Normal", "Warning"]
"""The API server knows no other."""

REFRESH_S: Final = 300.0
"""The API server's count is at most so much older than ours: the pace at which the scheduling
queue tries hopeless pods again.

Differs: 30 min in client-go, where `kubectl describe` shows "x2" for most of that time."""

FINISH_S: Final = 360.0
"""A series that has been silent for so long is over; client-go's finishTime."""

_CAPACITY: Final[Mapping[EventType, int]] = {"Warning": 16_384, "Normal": 1_024}


class ObjectType(NamedTuple):
    """The type of an object that an Event is about, as manifests name it."""

    api_version: str
    kind: str


POD: Final = ObjectType("v1", "Pod")


class Occurrence(NamedTuple):
    """Something that happened to a pod, or another object, once.

    ``pod`` is only who the pod is: a series may outlive many versions of the rest. ``at_s`` is in
    seconds since the epoch. ``related`` is the pod because of which it happened, ``policy`` what
    decided it.
    """

    pod: PodMeta
    event_type: EventType
    reason: str
    action: str
    note: str
    at_s: float
    related: PodMeta | None = None
    policy: PolicyOrigin | None = None
    type: ObjectType = POD


class EventSeries:
    """One Event, and how often it has happened.

    Parameters
    ----------
    name
        The Event's, unique.
    now_s
        Monotonic seconds.
    """

    __slots__ = (
        "count",
        "first",
        "last_s",
        "name",
        "queued",
        "touched_at_s",
        "written_at_s",
        "written_count",
    )

    def __init__(self, first: Occurrence, name: str, now_s: float) -> None:
        self.first = first
        self.name = name
        self.count = 1
        self.last_s = first.at_s
        """When it happened last, in seconds since the epoch."""
        self.touched_at_s = now_s
        """The same on the monotonic clock."""
        self.written_count = 0
        """What the API server knows; 0 when it has no such Event."""
        self.written_at_s = now_s
        self.queued = False
        """Whether it waits to be written or is being written; the recorder's to say."""

    def is_due(self, now_s: float) -> bool:
        """Tell whether the API server should be told the count now.

        The first repetition is worth telling at once, later ones once in `REFRESH_S`.
        """
        if self.count == self.written_count:
            return False
        return self.written_count <= 1 or now_s - self.written_at_s >= REFRESH_S

    def written(self, count: int, now_s: float) -> None:
        """Note that the API server has been told `count`."""
        self.written_count = count
        self.written_at_s = now_s

    @property
    def key(self) -> tuple[str, str, str, str, str, PolicyOrigin | None]:
        """What has to be the same for an occurrence to be a repetition."""
        return _key(self.first)


class SeriesCache:
    """The series under way, the longest silent ones given up first when there are too many.

    Room is counted for each type of Event apart, so that thousands of good news, which never
    repeat themselves, push no bad news out.

    Notes
    -----
    *Concurrency*: loop-confined.
    """

    def __init__(self) -> None:
        self._by_type: dict[EventType, dict[tuple[object, ...], EventSeries]] = {
            event_type: {} for event_type in _CAPACITY
        }

    def __len__(self) -> int:
        return sum(map(len, self._by_type.values()))

    def __iter__(self) -> Iterator[EventSeries]:
        for series_of_type in self._by_type.values():
            yield from series_of_type.values()

    def repeated(self, occurrence: Occurrence, now_s: float) -> EventSeries | None:
        """Count an occurrence into the series that it repeats; return it, None if there is none.

        Differs: client-go compares the pod's resourceVersion, not the note, and so starts anew
        with every change of the pod; here a new reason is a new Event and anything else is not.
        """
        series_of_type = self._by_type[occurrence.event_type]
        key = _key(occurrence)
        series = series_of_type.pop(key, None)
        if series is None:
            return None
        series_of_type[key] = series  # at the end again: the first one is the longest silent
        series.count += 1
        series.last_s = occurrence.at_s
        series.touched_at_s = now_s
        return series

    def add(self, series: EventSeries) -> EventSeries | None:
        """Take a new series up; return the one that had to make room, if any."""
        event_type = series.first.event_type
        series_of_type = self._by_type[event_type]
        series_of_type[series.key] = series
        if len(series_of_type) <= _CAPACITY[event_type]:
            return None
        return series_of_type.pop(next(iter(series_of_type)))

    def discard(self, series: EventSeries) -> None:
        """Forget a series; the next occurrence starts a new one."""
        series_of_type = self._by_type[series.first.event_type]
        if series_of_type.get(series.key) is series:
            del series_of_type[series.key]

    def pop_finished(self, now_s: float) -> list[EventSeries]:
        """Remove and return the series that have been silent for `FINISH_S`."""
        finished = []
        for series_of_type in self._by_type.values():
            while series_of_type:
                key, series = next(iter(series_of_type.items()))
                if now_s - series.touched_at_s < FINISH_S:
                    break
                finished.append(series_of_type.pop(key))
        return finished


def _key(occurrence: Occurrence) -> tuple[str, str, str, str, str, PolicyOrigin | None]:
    pod, event_type, reason, action, note, _, _, policy, _ = occurrence
    return pod.uid, event_type, reason, action, note, policy
