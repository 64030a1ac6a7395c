from __future__ import annotations

import math

import pytest

from cache.api_times import MAX_TIMES, _parsed_time_s, parsed_time_s


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("1970-01-01T00:00:07Z", 7.0, id="as the API writes it"),
        pytest.param("1970-01-01T01:00:07+01:00", 7.0, id="another zone"),
        pytest.param("1970-01-01T00:00:07.250000Z", 7.25, id="with a fraction"),
        pytest.param("yesterday", math.inf, id="no time at all"),
    ],
)
def test_times_are_compared_as_times(text: str, seconds: float) -> None:
    assert parsed_time_s(text) == seconds


def test_times_are_remembered_within_a_number_and_long_texts_are_not() -> None:
    for index in range(2 * MAX_TIMES):
        parsed_time_s(f"1970-01-01T00:00:00.{index:06}Z")
    size = _parsed_time_s.cache_info().currsize
    assert size <= 8192
    assert parsed_time_s(f"1970-01-01T00:00:07.{'0' * 1_000_000}Z") == 7.0
    assert parsed_time_s("1970-01-01T00:00:07.00Z" + "x" * 1_000_000) == math.inf
    assert _parsed_time_s.cache_info().currsize == size
