from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench.statistics_of import Ratio, curve, growth, quantile, ratio, rounded

amounts = st.floats(0.001, 1e6)
samples = st.lists(amounts, min_size=1, max_size=50).map(sorted)


class TestRatio:
    def test_is_that_of_the_medians(self) -> None:
        compared = ratio({1: 900.0, 2: 1000.0, 3: 1500.0}, {1: 300.0, 2: 500.0, 3: 400.0})
        assert compared is not None
        assert compared.value == 2.5

    def test_spreads_as_rounds_that_followed_each_other(self) -> None:
        compared = ratio({1: 900.0, 2: 1000.0, 3: 1500.0}, {1: 300.0, 2: 500.0, 3: 400.0})
        assert compared is not None
        assert (compared.low, compared.high) == (2.0, 3.75)

    @pytest.mark.parametrize(
        ("ours", "theirs"),
        [
            pytest.param({}, {1: 1.0}, id="none of ours"),
            pytest.param({1: 1.0}, {}, id="none of theirs"),
            pytest.param({1: 1.0}, {2: 1.0}, id="no round in common"),
            pytest.param({1: 1.0}, {1: 0.0}, id="theirs are zeros"),
        ],
    )
    def test_there_is_none(self, ours: dict[int, float], theirs: dict[int, float]) -> None:
        assert ratio(ours, theirs) is None

    def test_reads_as_a_value_and_its_spread(self) -> None:
        assert str(Ratio(3.14159, 3.0, 3.5)) == "3.14 (3.00 to 3.50)"

    def test_is_rounded_down_beside_a_goal(self) -> None:
        assert Ratio(1.996, 1.749, 2.159).floor() == "1.99 (1.74 to 2.15)"


class TestRounded:
    @pytest.mark.parametrize(
        ("value", "down", "up"),
        [
            pytest.param(1.996, "1.99", "2.00", id="between"),
            pytest.param(1.1, "1.10", "1.10", id="a float above its decimals"),
            pytest.param(0.29, "0.29", "0.29", id="a float below its decimals"),
            pytest.param(2.0, "2.00", "2.00", id="whole"),
            pytest.param(-0.001, "-0.01", "-0.00", id="negative"),
        ],
    )
    def test_goes_one_way(self, value: float, down: str, up: str) -> None:
        assert (rounded(value, up=False), rounded(value, up=True)) == (down, up)

    @given(st.floats(0, 1000), st.integers(0, 10_000))
    def test_compares_with_a_limit_as_the_value_does(self, value: float, hundredths: int) -> None:
        limit = hundredths / 100
        assert (float(rounded(value, up=False)) >= limit) == (value >= limit)
        assert (float(rounded(value, up=True)) <= limit) == (value <= limit)


class TestQuantile:
    @given(samples, st.floats(0, 1))
    def test_that_share_does_not_exceed_it(self, ordered: list[float], share: float) -> None:
        found = quantile(ordered, share)
        assert sum(value <= found for value in ordered) >= math.floor(share * len(ordered))

    @given(samples, st.floats(0, 1))
    def test_is_one_of_the_values(self, ordered: list[float], share: float) -> None:
        assert quantile(ordered, share) in ordered

    @pytest.mark.parametrize(
        ("share", "expected"),
        [pytest.param(0, 1, id="least"), pytest.param(0.5, 2, id="median"), (0.99, 4), (1, 4)],
    )
    def test_of_four(self, share: float, expected: float) -> None:
        assert quantile([1, 2, 3, 4], share) == expected

    def test_of_nothing(self) -> None:
        with pytest.raises(ValueError, match="no values"):
            quantile([], 0.5)


class TestCurve:
    def test_begins_at_the_first_and_ends_at_the_last(self) -> None:
        drawn = curve([10.0, 11.0, 14.0])
        assert (drawn[0], drawn[-1]) == (0.0, 4.0)

    @given(samples)
    def test_never_goes_back(self, ordered: list[float]) -> None:
        drawn = curve(ordered)
        assert drawn == sorted(drawn)

    def test_of_nothing(self) -> None:
        assert curve([]) == []


class TestGrowth:
    @given(st.floats(-2, 3), st.floats(0.1, 100))
    def test_finds_the_exponent_of_a_power(self, exponent: float, factor: float) -> None:
        points = [(size, factor * size**exponent) for size in (10.0, 100.0, 5000.0)]
        found = growth(points)
        assert found == pytest.approx(exponent, abs=1e-6)

    @pytest.mark.parametrize(
        "points",
        [
            pytest.param([], id="no points"),
            pytest.param([(5.0, 1.0), (5.0, 2.0)], id="one size"),
            pytest.param([(0.0, 1.0), (5.0, 2.0)], id="nothing has no logarithm"),
        ],
    )
    def test_there_is_none(self, points: list[tuple[float, float]]) -> None:
        assert growth(points) is None

    def test_agrees_with_two_points(self) -> None:
        assert growth([(10.0, 3.0), (1000.0, 30.0)]) == pytest.approx(0.5)


def test_medians_are_the_standard_librarys() -> None:
    compared = ratio({1: 1.0, 2: 2.0}, {1: 1.0, 2: 1.0})
    assert compared is not None
    assert compared.value == statistics.median([1.0, 2.0])
