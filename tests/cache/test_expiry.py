from __future__ import annotations

import pytest

from cache.expiry import Expiry


def test_nothing_is_overdue_before_its_deadline():
    expiry = Expiry(30)
    expiry.start("a", 100)
    assert expiry.overdue(130) == []


def test_what_is_past_its_deadline_is_overdue_until_stopped():
    expiry = Expiry(30)
    expiry.start("a", 100)
    assert expiry.overdue(131) == ["a"]
    assert expiry.overdue(131) == ["a"]
    expiry.stop("a")
    assert expiry.overdue(1000) == []


def test_a_second_start_moves_the_deadline():
    expiry = Expiry(30)
    expiry.start("a", 100)
    expiry.start("a", 120)
    assert expiry.overdue(140) == []
    assert expiry.overdue(151) == ["a"]


def test_the_oldest_comes_first():
    expiry = Expiry(10)
    for uid, at in [("late", 5), ("early", 1), ("middle", 3)]:
        expiry.start(uid, at)
    assert expiry.overdue(100) == ["early", "middle", "late"]


@pytest.mark.parametrize("ttl_s", [pytest.param(0, id="zero"), pytest.param(-1, id="negative")])
def test_without_a_time_limit_nothing_is_ever_overdue(ttl_s):
    expiry = Expiry(ttl_s)
    expiry.start("a", 0)
    assert expiry.overdue(1e12) == []


def test_stopped_deadlines_take_no_room_for_ever():
    expiry = Expiry(30)
    for index in range(10_000):
        expiry.start(str(index), index)
        expiry.stop(str(index))
    assert len(expiry._deadline_of) == 0
    assert len(expiry._heap) < 200
