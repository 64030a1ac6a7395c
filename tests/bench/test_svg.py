from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench.svg import Bar, BarPlot, LinePlot, log_ticks, short, ticks

SVG = "{http://www.w3.org/2000/svg}"

sizes = st.floats(1e-6, 1e9)


def parsed(svg: str) -> ET.Element:
    return ET.fromstring(svg)


def texts(svg: str) -> list[str]:
    return [each.text or "" for each in parsed(svg).iter(f"{SVG}text")]


class TestTicks:
    @given(sizes)
    def test_reach_the_largest(self, largest: float) -> None:
        assert ticks(largest)[-1] >= largest * (1 - 1e-6)

    @given(sizes)
    def test_are_few(self, largest: float) -> None:
        assert 2 <= len(ticks(largest)) <= 8

    @given(sizes, sizes)
    def test_logarithmic_ones_enclose_both(self, one: float, other: float) -> None:
        low, high = sorted((one, other))
        steps = log_ticks(low, high)
        assert steps[0] <= low * (1 + 1e-9)
        assert steps[-1] >= high * (1 - 1e-9)

    @given(sizes)
    def test_logarithmic_ones_are_at_least_two(self, value: float) -> None:
        assert len(log_ticks(value, value)) >= 2

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (0, "0"),
            (0.25, "0.25"),
            (3.14159, "3.14"),
            (476.4, "476"),
            (1000, "1k"),
            (1234, "1234"),
            (15000, "15k"),
            (2e6, "2M"),
        ],
    )
    def test_numbers_are_short(self, value: float, text: str) -> None:
        assert short(value) == text


class TestBarPlot:
    PLOT = BarPlot(
        "Pods & more",
        "pods/s",
        ["one", "other"],
        [("Basic", [Bar(10, 9, 12), Bar(5)]), ("Mixed", [Bar(None), Bar(20)])],
        mark=1.0,
    )

    def test_is_well_formed_and_keeps_what_needs_escaping(self) -> None:
        assert "Pods & more" in texts(self.PLOT.render())

    def test_names_series_and_groups(self) -> None:
        assert {"one", "other", "Basic", "Mixed", "pods/s"} <= set(texts(self.PLOT.render()))

    def test_a_bar_without_a_value_is_not_drawn(self) -> None:
        ground, legend, bars = 1, 2, 3
        assert len(list(parsed(self.PLOT.render()).iter(f"{SVG}rect"))) == ground + legend + bars

    def test_lengths_are_in_proportion(self) -> None:
        rects = list(parsed(self.PLOT.render()).iter(f"{SVG}rect"))[3:]
        widths = [float(each.get("width", "0")) for each in rects]
        assert widths[0] / widths[1] == pytest.approx(2, rel=0.01)
        assert widths[2] / widths[0] == pytest.approx(2, rel=0.01)

    def test_the_same_figures_are_the_same_bytes(self) -> None:
        assert self.PLOT.render() == self.PLOT.render()

    def test_of_nothing(self) -> None:
        assert texts(BarPlot("Nothing", "", [], []).render())[0] == "Nothing"


class TestLinePlot:
    def lines_of(self, **how: bool) -> list[str]:
        plot = LinePlot("L", "x", "y", [("a", [(0, 0), (10, 5), (100, 50)])], **how)
        return [each.get("points", "") for each in parsed(plot.render()).iter(f"{SVG}polyline")]

    def test_has_all_points(self) -> None:
        assert len(self.lines_of()[0].split()) == 3

    def test_points_without_a_logarithm_are_left_out(self) -> None:
        assert len(self.lines_of(log_x=True, log_y=True)[0].split()) == 2

    def test_more_is_further_up(self) -> None:
        heights = [float(point.split(",")[1]) for point in self.lines_of()[0].split()]
        assert heights == sorted(heights, reverse=True)

    def test_of_nothing(self) -> None:
        assert texts(LinePlot("Nothing", "", "", []).render())[0] == "Nothing"
