from __future__ import annotations

from decimal import ROUND_UP, Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cache.quantity import (
    INT64_MAX,
    MAX_EXPONENT,
    MAX_LENGTH,
    QuantityError,
    exact_milli_value,
    exact_value,
    quantity_milli_value,
    quantity_value,
    rounded,
)
from tests import strategies

SUFFIXES = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "k": Decimal("1e3"),
    "M": Decimal("1e6"),
    "G": Decimal("1e9"),
    "T": Decimal("1e12"),
    "P": Decimal("1e15"),
    "E": Decimal("1e18"),
    "Ki": Decimal(2**10),
    "Mi": Decimal(2**20),
    "Gi": Decimal(2**30),
    "Ti": Decimal(2**40),
    "Pi": Decimal(2**50),
    "Ei": Decimal(2**60),
}


def by_decimal(text: str) -> Decimal:
    """The same number, read from its end by another arithmetic."""
    suffix = next((s for s in sorted(SUFFIXES, key=len, reverse=True) if text.endswith(s)), "")
    number = Decimal(text.removesuffix(suffix)) * SUFFIXES.get(suffix, Decimal(1))
    number = number.quantize(Decimal("1e-9"), rounding=ROUND_UP)
    return max(-Decimal(INT64_MAX), min(number, Decimal(INT64_MAX)))


@pytest.mark.parametrize(
    ("text", "value", "milli"),
    [
        pytest.param("0", 0, 0, id="zero"),
        pytest.param("100m", 1, 100, id="milli rounds up to one"),
        pytest.param("1", 1, 1000, id="no suffix"),
        pytest.param("1500m", 2, 1500, id="one and a half"),
        pytest.param("1.5", 2, 1500, id="decimal point"),
        pytest.param("1.", 1, 1000, id="nothing after the point"),
        pytest.param(".5", 1, 500, id="nothing before the point"),
        pytest.param("+2", 2, 2000, id="plus"),
        pytest.param("-100m", -1, -100, id="negative rounds away from zero"),
        pytest.param("-1.5", -2, -1500, id="negative fraction"),
        pytest.param("200Mi", 209715200, 209715200000, id="binary"),
        pytest.param("1.5Gi", 1610612736, 1610612736000, id="fractional binary"),
        pytest.param("1E", 10**18, INT64_MAX, id="exa is not an exponent"),
        pytest.param("1Ei", 2**60, INT64_MAX, id="exbi"),
        pytest.param("12e6", 12_000_000, 12_000_000_000, id="exponent"),
        pytest.param("12E6", 12_000_000, 12_000_000_000, id="upper-case exponent"),
        pytest.param("12e+6", 12_000_000, 12_000_000_000, id="exponent with plus"),
        pytest.param("12e-1", 2, 1200, id="negative exponent"),
        pytest.param("1n", 1, 1, id="nano"),
        pytest.param("0.1n", 1, 1, id="below nano"),
        pytest.param("1e-30", 1, 1, id="far below nano"),
        pytest.param("1500u", 1, 2, id="micro"),
        pytest.param("1k", 1000, 1_000_000, id="kilo"),
        pytest.param("9223372036854775807", INT64_MAX, INT64_MAX, id="largest"),
        pytest.param("9223372036854775808", INT64_MAX, INT64_MAX, id="one too many is capped"),
        pytest.param("-9223372036854775809", -INT64_MAX, -INT64_MAX, id="capped below"),
        pytest.param("1e30", INT64_MAX, INT64_MAX, id="large exponent is capped"),
        pytest.param("100Ei", INT64_MAX, INT64_MAX, id="large binary is capped"),
        pytest.param(" 1 ", 1, 1000, id="white space around it"),
        pytest.param(2, 2, 2000, id="bare integer"),
        pytest.param(0.5, 1, 500, id="bare fraction"),
        pytest.param(1e22, INT64_MAX, INT64_MAX, id="bare number written with an exponent"),
    ],
)
def test_a_quantity_is_read_in_units_and_in_thousandths(
    text: str | int | float, value: int, milli: int
) -> None:
    assert (quantity_value(text), quantity_milli_value(text)) == (value, milli)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param(".", id="only a point"),
        pytest.param("-", id="only a sign"),
        pytest.param("m", id="only a suffix"),
        pytest.param("1K", id="kilo is lower case"),
        pytest.param("1mi", id="mebi is upper case"),
        pytest.param("1 Mi", id="space inside"),
        pytest.param("1.1.1", id="two points"),
        pytest.param("1,5", id="comma"),
        pytest.param("1e", id="exponent without digits"),
        pytest.param("1e1.5", id="fractional exponent"),
        pytest.param("1e3Mi", id="exponent and suffix"),
        pytest.param("0x10", id="hexadecimal"),
        pytest.param("1_000", id="underscore"),
        pytest.param("\u0661", id="digit of another script"),
        pytest.param("nan", id="not a number"),
        pytest.param("Infinity", id="infinity"),
        pytest.param("1\n1", id="two lines"),
        pytest.param(float("inf"), id="bare infinity"),
    ],
)
def test_nonsense_is_refused(text: str | float) -> None:
    with pytest.raises(QuantityError, match="is not a quantity"):
        exact_value(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("1e999999", id="large"),
        pytest.param("1e-999999", id="small"),
        pytest.param(f"1e{MAX_EXPONENT + 1}", id="just past the limit"),
        pytest.param("0e999999", id="of nothing"),
    ],
)
def test_an_exponent_that_would_take_forever_is_refused(text: str) -> None:
    with pytest.raises(QuantityError, match="exponent"):
        exact_value(text)


def test_a_text_that_is_too_long_is_refused_in_a_short_message() -> None:
    with pytest.raises(QuantityError, match=f"at most {MAX_LENGTH} characters") as caught:
        exact_value("9" * 1_000_000)
    assert len(str(caught.value)) < 120


@settings(deadline=None)
@given(strategies.quantities())
@example("9223372036854775807n")
@example("-0.0000000001")
def test_a_quantity_equals_its_reading_in_decimal_arithmetic(text: str) -> None:
    with localcontext() as context:
        context.prec = 120
        expected = by_decimal(text)
        assert exact_value(text) == Fraction(expected)
        assert quantity_value(text) == int(expected.to_integral_value(rounding=ROUND_UP))


@settings(deadline=None)
@given(st.text(alphabet="0123456789.+-eEinumkKMGTP ", max_size=2 * MAX_LENGTH))
def test_any_text_is_either_a_number_in_range_or_an_error(text: str) -> None:
    try:
        number = exact_value(text)
    except QuantityError:
        return
    assert abs(number) <= INT64_MAX


@settings(deadline=None)
@given(strategies.quantities())
def test_rounding_an_exact_value_gives_the_value(text: str) -> None:
    assert rounded(exact_value(text)) == quantity_value(text)
    assert rounded(exact_milli_value(text)) == quantity_milli_value(text)


def test_exact_values_add_up_before_they_are_rounded() -> None:
    assert rounded(exact_milli_value("0.5m") + exact_milli_value("0.5m")) == 1


@pytest.mark.parametrize(
    ("exact", "expected"),
    [
        pytest.param(2**70, INT64_MAX, id="integer above"),
        pytest.param(-(2**70), -INT64_MAX, id="integer below"),
        pytest.param(Fraction(2**80, 3), INT64_MAX, id="fraction above"),
        pytest.param(Fraction(-1, 2), -1, id="away from zero"),
    ],
)
def test_rounded_stays_within_int64(exact: int | Fraction, expected: int) -> None:
    assert rounded(exact) == expected
