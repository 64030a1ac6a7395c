from __future__ import annotations

import pytest

from scheduler.insight import rate_limit
from scheduler.insight.rate_limit import RateLimit
from tests.fakes.clock import FakeClock


@pytest.mark.parametrize(
    ("asked_before", "after_s", "wait_s"),
    [
        pytest.param(0, 0.0, 0.0, id="the first"),
        pytest.param(3, 0.0, 0.5, id="one too many"),
        pytest.param(3, 0.25, 0.25, id="too early"),
        pytest.param(3, 0.5, 0.0, id="after the pause"),
        pytest.param(9, 0.5, 0.0, id="who was refused waits no longer than others"),
    ],
)
def test_how_long_a_user_waits(asked_before, after_s, wait_s):
    clock = FakeClock()
    limit = RateLimit(2.0, 3, clock)
    for _ in range(asked_before):
        limit.wait_s("jane")
    clock.advance(after_s)
    assert limit.wait_s("jane") == pytest.approx(wait_s)


def test_a_long_pause_saves_no_more_than_a_burst():
    clock = FakeClock()
    limit = RateLimit(2.0, 3, clock)
    clock.advance(1_000)
    assert [limit.wait_s("jane") > 0 for _ in range(4)] == [False, False, False, True]


def test_users_are_forgotten_beyond_the_limit(monkeypatch):
    monkeypatch.setattr(rate_limit, "MAX_USERS", 10)
    limit = RateLimit(2.0, 3, FakeClock())
    for number in range(100):
        limit.wait_s(f"user-{number}")
    assert len(limit) == 10
