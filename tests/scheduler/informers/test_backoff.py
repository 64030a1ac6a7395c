from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.client.errors import RETRY_AFTER_CAP_S
from scheduler.informers.backoff import Backoff


class _Fixed(random.Random):
    def __init__(self, value: float) -> None:
        super().__init__()
        self._value = value

    def random(self) -> float:
        return self._value


def test_delays_double_up_to_the_cap() -> None:
    backoff = Backoff(1.0, 8.0, _Fixed(0.999999999))
    assert [round(backoff.delay_s(0.0), 3) for _ in range(6)] == [1, 2, 4, 8, 8, 8]


@given(seed=st.integers(), failures=st.integers(min_value=1, max_value=40))
def test_every_delay_lies_in_the_upper_half_of_its_step(seed: int, failures: int) -> None:
    backoff = Backoff(0.5, 20.0, random.Random(seed))
    for failure in range(failures):
        step_s = min(0.5 * 2**failure, 20.0)
        assert step_s / 2 <= backoff.delay_s(0.0) < step_s


def test_two_clients_with_different_seeds_do_not_come_back_together() -> None:
    first, second = (Backoff(1.0, 8.0, random.Random(seed)) for seed in (1, 2))
    assert first.delay_s(0.0) != second.delay_s(0.0)


def test_a_reset_begins_with_the_first_delay() -> None:
    backoff = Backoff(1.0, 8.0, _Fixed(0.5))
    first = backoff.delay_s(0.0)
    backoff.delay_s(0.0)
    backoff.reset()
    assert backoff.delay_s(0.0) == first


def test_a_long_quiet_time_begins_with_the_first_delay() -> None:
    backoff = Backoff(1.0, 8.0, _Fixed(0.5), reset_after_s=120.0)
    first = backoff.delay_s(0.0)
    backoff.delay_s(1.0)
    assert backoff.delay_s(200.0) == first


def test_the_quiet_time_is_counted_from_the_end_of_the_delay() -> None:
    backoff = Backoff(100.0, 1000.0, _Fixed(0.0), reset_after_s=120.0)
    assert backoff.delay_s(0.0) == 50.0
    assert backoff.delay_s(150.0) == 100.0


@pytest.mark.parametrize(
    ("asked_s", "least_s", "most_s"),
    [
        pytest.param(10.0, 10.0, 11.0, id="longer than the delay"),
        pytest.param(0.1, 0.5, 1.0, id="shorter than the delay"),
        pytest.param(1e9, RETRY_AFTER_CAP_S, RETRY_AFTER_CAP_S * 1.1, id="absurd"),
    ],
)
def test_retry_after_is_a_lower_bound(asked_s: float, least_s: float, most_s: float) -> None:
    backoff = Backoff(1.0, 8.0, random.Random(3))
    assert least_s <= backoff.delay_s(0.0, asked_s) <= most_s
