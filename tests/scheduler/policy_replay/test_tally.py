"""Counts of pods against lists of them."""

from __future__ import annotations

from collections import Counter
from math import ceil

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.policy_replay.fates import NOWHERE, Fate, Placing
from scheduler.policy_replay.tally import Durations, ProfileTally
from tests.builders import pod

PLACINGS = st.one_of(
    st.just(NOWHERE),
    st.builds(
        Placing,
        st.sampled_from(["n1", "n2", "n3"]),
        st.sampled_from(["", "a", "b"]),
        st.floats(100, 200),
    ),
)


@settings(max_examples=50)
@given(st.lists(st.tuples(PLACINGS, PLACINGS), max_size=20))
def test_each_pod_counts_once(fates: list[tuple[Placing, Placing]]) -> None:
    tally = ProfileTally("berth")
    for then, now in fates:
        tally.end(Fate(pod("p").build(), "berth", 100.0, then, now))
    report = tally.report()
    both = [(then, now) for then, now in fates if then.node_name and now.node_name]
    assert report.pods == len(fates)
    assert report.moved == sum(then.node_name != now.node_name for then, now in both)
    assert report.same_node + report.moved == len(both)
    assert report.then.placed == sum(bool(then.node_name) for then, _ in fates)
    assert report.then.refused == sum(not then.node_name for then, _ in fates)
    assert report.now.placed == len(both) + report.only_now
    assert report.then.placed == len(both) + report.only_then
    assert report.refused == sum(not then.node_name and not now.node_name for then, now in fates)
    assert report.now.zones == dict(Counter(now.zone for _, now in fates if now.node_name))
    waits = [now.at_s - 100 for _, now in fates if now.node_name]
    assert report.now.waiting_s.max == max(waits, default=0)


@settings(max_examples=50)
@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=300))
def test_quantiles_are_values_that_enough_are_not_above(values: list[float]) -> None:
    durations = Durations()
    for value in values:
        durations.add(value)
    found = durations.quantiles()
    for share, value in ((0.5, found.p50), (0.99, found.p99)):
        exact = sorted(values)[ceil(len(values) * share) - 1]
        assert exact - 1e-6 <= value * (1 + 1e-9) <= exact * 1.0201 + 1e-6
    assert (found.count, found.max) == (len(values), max(values))


def test_any_number_of_durations_takes_the_same_memory() -> None:
    durations = Durations()
    for number in range(8_000):
        durations.add(1e-7 * 1.005**number)
    assert len(durations._buckets) <= 1_601
