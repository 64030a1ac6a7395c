from __future__ import annotations

import pytest

from tests.bench.scraping import Scrape, parse

TEXT = """\
# HELP scheduler_scheduling_attempt_duration_seconds Of an attempt.
scheduler_scheduling_attempt_duration_seconds_bucket{profile="a",result="scheduled",le="1"} 3
scheduler_scheduling_attempt_duration_seconds_sum{profile="a",result="scheduled"} 0.5
scheduler_scheduling_attempt_duration_seconds_count{profile="a",result="scheduled"} 3
scheduler_scheduling_attempt_duration_seconds_sum{profile="b",result="scheduled"} 0.25
scheduler_scheduling_attempt_duration_seconds_count{profile="b",result="scheduled"} 1
scheduler_scheduling_attempt_duration_seconds_sum{profile="a",result="unschedulable"} 9
scheduler_scheduling_attempt_duration_seconds_count{profile="a",result="unschedulable"} 2
berth_loop_lag_seconds_bucket{le="0.001"} 10
berth_loop_lag_seconds_bucket{le="0.5"} 100
berth_loop_lag_seconds_bucket{le="+Inf"} 101
"""


def test_attempts_of_all_profiles_are_added_up() -> None:
    assert parse(TEXT).attempts == {"scheduled": (4.0, 0.75), "unschedulable": (2.0, 9.0)}


def test_only_what_has_come_since_counts() -> None:
    before = Scrape(attempts={"scheduled": (3.0, 0.25), "unschedulable": (2.0, 9.0)})
    assert parse(TEXT).attempts_since(before) == {"scheduled": (1, 500.0)}


@pytest.mark.parametrize(
    ("share", "bound_ms"),
    [pytest.param(0.05, 1.0, id="few"), pytest.param(0.99, 500.0, id="most")],
)
def test_a_quantile_of_lags_is_the_bound_above_it(share: float, bound_ms: float) -> None:
    assert parse(TEXT).lag_since(Scrape(), share) == bound_ms


def test_who_has_no_lags_has_no_quantile() -> None:
    assert Scrape().lag_since(Scrape(), 0.99) is None
