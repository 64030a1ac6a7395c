from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.client.timestamps import api_micro_time, api_time

INSTANTS = st.floats(min_value=0, max_value=4e9)


@pytest.mark.parametrize(
    ("wall_s", "expected"),
    [
        pytest.param(0, "1970-01-01T00:00:00.000000Z", id="epoch"),
        pytest.param(1_767_225_599, "2025-12-31T23:59:59.000000Z", id="a whole second"),
        pytest.param(1_767_225_599.000001, "2025-12-31T23:59:59.000001Z", id="a microsecond"),
        pytest.param(1_767_225_599.9999, "2025-12-31T23:59:59.999900Z", id="before the next"),
    ],
)
def test_micro_time_always_has_six_digits(wall_s, expected):
    assert api_micro_time(wall_s) == expected


@given(INSTANTS)
def test_micro_time_is_the_instant(wall_s):
    parsed = datetime.fromisoformat(api_micro_time(wall_s))
    assert parsed == datetime.fromtimestamp(int(wall_s * 1e6) // 1_000_000, UTC).replace(
        microsecond=int(wall_s * 1e6) % 1_000_000
    )


@given(INSTANTS)
def test_time_is_the_second_of_the_micro_time(wall_s):
    assert api_time(wall_s) == api_micro_time(wall_s)[:19] + "Z"
