from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.framework.go_duration import GoDuration, duration_of_seconds, parse_go_duration

MAX_NS = 2**63 - 1
UNITS = {
    "ns": 1,
    "us": 10**3,
    "\u00b5s": 10**3,
    "\u03bcs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        pytest.param("0", 0, id="bare-zero"),
        pytest.param("-0", 0, id="minus-zero"),
        pytest.param("+0", 0, id="plus-zero"),
        pytest.param("0s", 0, id="zero-with-unit"),
        pytest.param("5s", 5 * 10**9, id="one-part"),
        pytest.param("1m30s", 90 * 10**9, id="two-parts"),
        pytest.param("30s1m", 90 * 10**9, id="any-order"),
        pytest.param("1s1s", 2 * 10**9, id="unit-twice"),
        pytest.param("-1.5h", -5400 * 10**9, id="negative-with-fraction"),
        pytest.param("+5s", 5 * 10**9, id="plus"),
        pytest.param(".5s", 5 * 10**8, id="no-whole-part"),
        pytest.param("5.s", 5 * 10**9, id="no-fraction-after-the-point"),
        pytest.param("0.3333333333333333333h", 1_200_000_000_000, id="fraction-of-19-digits"),
        pytest.param("9007199254740993ns", 9007199254740993, id="whole-beyond-float64"),
        pytest.param("0.9223372036854775807h", 3_320_413_933_267, id="fraction-of-63-bits"),
        pytest.param("0.830103483285477580700h", 2_988_372_539_827, id="fraction-beyond-63-bits"),
        pytest.param("0.100000000000000000000h", 360_000_000_000, id="zeros-beyond-63-bits"),
        pytest.param("9223372036854775807ns", MAX_NS, id="largest"),
        pytest.param("-9223372036854775808ns", -(2**63), id="smallest"),
        pytest.param("9223372036s854ms775us807ns", MAX_NS, id="largest-in-parts"),
        pytest.param("000000000000000000000000001s", 10**9, id="many-leading-zeros"),
    ],
)
def test_text_is_read_as_go_reads_it(text: str, ns: int) -> None:
    assert parse_go_duration(text).ns == ns


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("3", id="no-unit"),
        pytest.param("-", id="only-a-sign"),
        pytest.param("s", id="only-a-unit"),
        pytest.param(".", id="only-a-point"),
        pytest.param(".s", id="no-digits"),
        pytest.param("+-1s", id="two-signs"),
        pytest.param("1s-1s", id="sign-inside"),
        pytest.param("1 s", id="space-before-the-unit"),
        pytest.param(" 1s", id="space-before"),
        pytest.param("1s ", id="space-after"),
        pytest.param("1d", id="days"),
        pytest.param("1S", id="upper-case"),
        pytest.param("1e3s", id="exponent"),
        pytest.param("1_0s", id="underscore"),
        pytest.param("\u0661s", id="other-digits"),
        pytest.param("P1D", id="iso-8601"),
        pytest.param("1:30", id="clock"),
        pytest.param("9223372036854775808ns", id="one-too-large"),
        pytest.param("-9223372036854775809ns", id="one-too-small"),
        pytest.param("9223372036854775.808us", id="too-large-by-its-fraction"),
        pytest.param("9223372036s854ms775us808ns", id="too-large-in-parts"),
        pytest.param("3000000h", id="too-many-hours"),
        pytest.param("9" * 5000 + "s", id="thousands-of-digits"),
    ],
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"duration|unit"):
        parse_go_duration(text)


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        pytest.param(0, "0s", id="zero"),
        pytest.param(1, "1ns", id="nanoseconds"),
        pytest.param(1100, "1.1\u00b5s", id="microseconds"),
        pytest.param(2_200_000, "2.2ms", id="milliseconds"),
        pytest.param(3_300_000_000, "3.3s", id="seconds"),
        pytest.param(245_000_000_000, "4m5s", id="minutes"),
        pytest.param(18_367_001_000_000, "5h6m7.001s", id="hours"),
        pytest.param(3600 * 10**9, "1h0m0s", id="whole-hour"),
        pytest.param(480_000_000_001, "8m0.000000001s", id="long-fraction"),
        pytest.param(-1, "-1ns", id="negative"),
        pytest.param(MAX_NS, "2562047h47m16.854775807s", id="largest"),
        pytest.param(-(2**63), "-2562047h47m16.854775808s", id="smallest"),
    ],
)
def test_it_prints_as_go_prints_it(ns: int, text: str) -> None:
    assert str(GoDuration(ns)) == text


@given(st.integers(-(2**63), MAX_NS))
def test_what_is_printed_reads_back(ns: int) -> None:
    assert parse_go_duration(str(GoDuration(ns))).ns == ns


@given(
    st.lists(
        st.tuples(st.integers(0, 10**5), st.sampled_from(sorted(UNITS))), min_size=1, max_size=4
    ),
    st.sampled_from(["", "+", "-"]),
)
def test_parts_add_up(parts: list[tuple[int, str]], sign: str) -> None:
    text = sign + "".join(f"{count}{unit}" for count, unit in parts)
    total = sum(count * UNITS[unit] for count, unit in parts)
    assert parse_go_duration(text).ns == (-total if sign == "-" else total)


@given(st.text(alphabet="0123456789.+-nuµmsh e_", max_size=12))
def test_any_text_is_a_duration_or_a_value_error(text: str) -> None:
    try:
        duration = parse_go_duration(text)
    except ValueError:
        return
    assert parse_go_duration(str(duration)) == duration


@given(st.integers(-(10**12), 10**12), st.integers(-(10**12), 10**12))
def test_durations_are_ordered_by_length(one: int, other: int) -> None:
    assert (GoDuration(one) < GoDuration(other)) == (one < other)


def test_seconds_are_seconds() -> None:
    assert duration_of_seconds(90).seconds == 90.0


def test_a_length_beyond_64_bits_is_refused() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        GoDuration(2**63)
