from __future__ import annotations

import pytest

from cache.objects import PodMeta
from scheduler.api_writes import event_series
from scheduler.api_writes.event_series import (
    FINISH_S,
    REFRESH_S,
    EventSeries,
    Occurrence,
    SeriesCache,
)


def occurrence(
    *,
    uid="u",
    event_type="Warning",
    reason="FailedScheduling",
    action="Scheduling",
    note="no room",
    version="1",
) -> Occurrence:
    meta = PodMeta(name="a", namespace="default", uid=uid, resource_version=version)
    return Occurrence(meta, event_type, reason, action, note, 100.0)


def series(first: Occurrence | None = None, now_s: float = 0.0) -> EventSeries:
    return EventSeries(first or occurrence(), "a.1", now_s)


@pytest.mark.parametrize(
    ("again", "is_repetition"),
    [
        pytest.param(occurrence(), True, id="the same"),
        pytest.param(occurrence(version="2"), True, id="the pod has changed otherwise"),
        pytest.param(occurrence(uid="v"), False, id="another pod of the same name"),
        pytest.param(occurrence(event_type="Normal"), False, id="another type"),
        pytest.param(occurrence(reason="Preempted"), False, id="another reason"),
        pytest.param(occurrence(action="Binding"), False, id="another action"),
        pytest.param(occurrence(note="no ports"), False, id="another note"),
    ],
)
def test_what_counts_as_a_repetition(again, is_repetition):
    cache = SeriesCache()
    cache.add(series())
    assert (cache.repeated(again, 1.0) is not None) == is_repetition


def test_a_repetition_is_counted():
    cache = SeriesCache()
    first = series()
    cache.add(first)
    cache.repeated(occurrence()._replace(at_s=160.0), 60.0)
    assert (first.count, first.last_s, first.touched_at_s) == (2, 160.0, 60.0)


@pytest.mark.parametrize(
    ("count", "written_count", "ago_s", "is_due"),
    [
        pytest.param(1, 0, 0, True, id="never written"),
        pytest.param(1, 1, REFRESH_S, False, id="nothing new"),
        pytest.param(2, 1, 0, True, id="the first repetition"),
        pytest.param(3, 2, REFRESH_S - 1, False, id="a later one, too soon"),
        pytest.param(3, 2, REFRESH_S, True, id="a later one"),
    ],
)
def test_when_a_count_is_worth_telling(count, written_count, ago_s, is_due):
    told = series()
    told.written(written_count, 50.0)
    told.count = count
    assert told.is_due(50.0 + ago_s) == is_due


def test_a_silent_series_ends():
    cache = SeriesCache()
    silent, lively = series(now_s=0.0), series(occurrence(uid="v"), now_s=0.0)
    cache.add(silent)
    cache.add(lively)
    cache.repeated(occurrence(uid="v"), 1.0)
    assert cache.pop_finished(FINISH_S) == [silent]
    assert list(cache) == [lively]


def test_the_longest_silent_series_makes_room(monkeypatch):
    monkeypatch.setitem(event_series._CAPACITY, "Warning", 2)
    cache = SeriesCache()
    first, second, third = (series(occurrence(uid=uid)) for uid in "abc")
    cache.add(first)
    cache.add(second)
    cache.repeated(occurrence(uid="a"), 1.0)
    assert cache.add(third) is second


def test_good_news_push_no_bad_news_out(monkeypatch):
    monkeypatch.setitem(event_series._CAPACITY, "Normal", 2)
    cache = SeriesCache()
    bad = series()
    cache.add(bad)
    for number in range(10):
        cache.add(series(occurrence(uid=f"u{number}", event_type="Normal")))
    assert bad in list(cache)
    assert len(cache) == 3


def test_a_discarded_series_is_not_continued():
    cache = SeriesCache()
    given_up = series()
    cache.add(given_up)
    cache.discard(given_up)
    assert cache.repeated(occurrence(), 1.0) is None


def test_discarding_an_old_series_leaves_its_successor():
    cache = SeriesCache()
    old, new = series(), series()
    cache.add(old)
    cache.add(new)
    cache.discard(old)
    assert list(cache) == [new]
