from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scheduler.ui.charts import time_line
from scheduler.ui.pending_series import MAX_POINTS, MAX_REASONS, STEP_S, PendingSeries


def test_a_line_goes_from_the_first_point_to_now() -> None:
    series = PendingSeries()
    series.add(100.0, {"cpu": 4, "taint": 1}, "b")
    series.add(120.0, {"cpu": 2}, "b")
    all_pods, by_reason = series.trends(125.0, {"cpu": 1, "new": 5}, "b")
    assert (all_pods.times_s, all_pods.counts) == ((100.0, 120.0, 125.0), (5, 2, 6))
    assert {name: line.counts for name, line in by_reason.items()} == {
        "cpu": (4, 2, 1),
        "new": (0, 0, 5),
    }
    assert by_reason["cpu"].change == -3


def test_lines_of_the_leader_and_of_lists_do_not_mix() -> None:
    series = PendingSeries()
    series.add(0.0, {"cpu": 4}, "berth-0")
    series.add(20.0, {"cpu": 3}, "berth-1")
    assert len(series.trends(25.0, {}, "")[0].counts) == 1
    assert len(series.trends(25.0, {}, "berth-2")[0].counts) == 3
    series.add(30.0, {"Insufficient cpu": 9}, "")
    assert series.trends(40.0, {}, "")[0].counts == (9, 0)


def test_points_are_a_step_apart() -> None:
    series = PendingSeries()
    for second in range(31):
        series.add(float(second), {}, "b")
    assert len(series) == 3


def test_a_long_run_is_kept_from_its_start_in_bounded_memory() -> None:
    series = PendingSeries()
    for number in range(10_000):
        series.add(number * STEP_S, {"cpu": number}, "b")
    times_s = series.trends(1e6, {}, "b")[0].times_s
    assert len(series) <= MAX_POINTS
    assert times_s[0] == 0.0
    assert series.step_s == STEP_S * 64


def test_reasons_that_users_make_up_are_bounded_and_all_pods_count() -> None:
    series = PendingSeries()
    counts = {f"reason {number}": number for number in range(1000)}
    series.add(0.0, counts, "")
    all_pods, by_reason = series.trends(1.0, counts, "")
    assert all_pods.counts == (499_500, 499_500)
    assert sum(line.counts[0] > 0 for line in by_reason.values()) == MAX_REASONS


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=500))
def test_a_line_is_drawn_within_its_box_and_ends_with_the_last_value(values: list[int]) -> None:
    times_s = [100.0 + 15 * number for number in range(len(values))]
    points = [
        tuple(map(float, point.split()))
        for point in time_line(times_s, values, 72, 20)[1:].split("L")
    ]
    assert all(0 <= x <= 72 and 0 <= y <= 20 for x, y in points)
    assert len(points) <= 62
    assert points[-1][1] == round(20 - values[-1] / max(*values, 1) * 20, 1)
