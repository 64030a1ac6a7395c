"""Resource quantities: ``100m``, ``1.5Gi``, ``12e6`` as exact numbers.

A quantity represents an exact decimal or binary number. It is rounded only when it is read as
an integer, always away from zero, so that a small request is never rounded to nothing. The same
few strings occur hundreds of thousands of times, so each way of reading a string has a bounded
cache of its own; a cached result costs a dictionary lookup.

*Concurrency*: pure functions with thread-safe caches; they may be called from any thread.

*Source*: k8s.io/apimachinery pkg/api/resource quantity.go, suffix.go and amount.go (0.36).
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING

from cache.ages import AGES

if TYPE_CHECKING:
    from cache.objects import Quantity

INT64_MAX = 2**63 - 1
"""The largest amount that the API can express and that a column can hold."""

MAX_LENGTH = 64
"""Longest text that is read: twice what the widest legal number needs."""

MAX_EXPONENT = 99
"""Largest decimal exponent, either sign: past it any number of MAX_LENGTH digits is out of range.

It is the guard against ``1e999999``, whose value would have a million digits.
"""

_REMEMBERED = 1 << 12
"""Texts that each memory has: 2 MiB at the very most, since longer texts are no quantities."""

_NANO = 10**9

_GRAMMAR = re.compile(
    r"(?P<sign>[+-]?)(?:(?P<whole>[0-9]+)(?:\.(?P<part>[0-9]*))?|\.(?P<bare>[0-9]+))"
    r"(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?[0-9]+))?"
)

_DECIMAL_POWER = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_POWER = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


class QuantityError(ValueError):
    """The text is not a quantity; the short message describes the error."""


def _read(quantity: Quantity) -> tuple[int, int]:
    """Return numerator and denominator of the quantity, rounded to nano and capped, not reduced."""
    text = quantity if isinstance(quantity, str) else repr(quantity)
    if len(text) > MAX_LENGTH:
        raise QuantityError(
            f"a quantity has at most {MAX_LENGTH} characters, not {len(text)}: {text[:16]!r}..."
        )
    # The API's own decoder strips white space around a quantity before it parses it.
    match = _GRAMMAR.fullmatch(text.strip())
    if match is None:
        raise QuantityError(f"{text!r} is not a quantity such as '500m', '1.5Gi' or '12e6'")
    part = match["part"] or match["bare"] or ""
    numerator = int((match["whole"] or "") + part)
    if match["sign"] == "-":
        numerator = -numerator
    power = -len(part)
    suffix = match["suffix"]
    if suffix is None:
        exponent = int(match["exponent"] or 0)
        if abs(exponent) > MAX_EXPONENT:
            raise QuantityError(f"the exponent of {text!r} is not within +-{MAX_EXPONENT}")
        power += exponent
    elif suffix in _BINARY_POWER:
        numerator <<= _BINARY_POWER[suffix]
    else:
        power += _DECIMAL_POWER[suffix]
    if power >= 0:
        numerator *= 10**power
        denominator = 1
    else:
        denominator = 10**-power
        if denominator > _NANO:
            numerator = _divide_away_from_zero(numerator, denominator // _NANO)
            denominator = _NANO
    limit = INT64_MAX * denominator
    return max(-limit, min(numerator, limit)), denominator


def _divide_away_from_zero(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator) if numerator >= 0 else numerator // denominator


def _saturated(value: int) -> int:
    return max(-INT64_MAX, min(value, INT64_MAX))


@AGES.forgets(_REMEMBERED)
def quantity_value(text: Quantity) -> int:
    """Return the quantity in whole base units, rounded away from zero, within int64.

    Raises
    ------
    QuantityError
        As :func:`exact_value`.

    Notes
    -----
    *Source*: ``Quantity.Value``.
    """
    return _divide_away_from_zero(*_read(text))


@AGES.forgets(_REMEMBERED)
def quantity_milli_value(text: Quantity) -> int:
    """Return the quantity in thousandths, rounded away from zero, saturated at int64.

    Raises
    ------
    QuantityError
        As :func:`exact_value`.

    Notes
    -----
    *Source*: ``Quantity.MilliValue``.
    """
    numerator, denominator = _read(text)
    return _saturated(_divide_away_from_zero(numerator * 1000, denominator))


@AGES.forgets(_REMEMBERED)
def exact_value(text: Quantity) -> int | Fraction:
    """Return the exact number that ``text`` stands for: an int wherever it is whole.

    What is more precise than nano is rounded away from zero to whole nanos, and what is larger
    than 2**63 - 1 in magnitude is capped there, as the format promises. White space around the
    number is ignored. Sums must be made of exact values and rounded once, at the end: twice
    ``0.5m`` is ``1m``.

    Parameters
    ----------
    text : str, int or float
        As the API writes it; a bare number is read as its shortest decimal text.

    Raises
    ------
    QuantityError
        If the text is no quantity, is longer than MAX_LENGTH or has an exponent beyond
        MAX_EXPONENT. The time this takes is bounded whatever the text is.

    Notes
    -----
    # Differs: kube-scheduler caps only binary quantities when it parses; a decimal one that
    overflows (``1e30``, or ``10E`` in thousandths) it reads as 0 or as what is left after
    wrapping around. It rounds some negative fractions up to 1, and reads texts without any
    digit (``m``, ``.``) as 0. Here all are capped, rounded away from zero, or refused.
    """
    return _whole_or_fraction(*_read(text))


@AGES.forgets(_REMEMBERED)
def exact_milli_value(text: Quantity) -> int | Fraction:
    """Return the quantity in thousandths without rounding: an int wherever it is whole.

    Raises
    ------
    QuantityError
        As :func:`exact_value`.
    """
    numerator, denominator = _read(text)
    return _whole_or_fraction(numerator * 1000, denominator)


def _whole_or_fraction(numerator: int, denominator: int) -> int | Fraction:
    if numerator % denominator == 0:
        return numerator // denominator
    return Fraction(numerator, denominator)


def rounded(exact: int | Fraction) -> int:
    """Return an exact amount as an integer, rounded away from zero and saturated at int64."""
    if isinstance(exact, int):
        return _saturated(exact)
    return _saturated(_divide_away_from_zero(exact.numerator, exact.denominator))
