"""Doubles as Go's ``strconv`` and ``fmt`` print them.

*Source*: Go strconv/ftoa.go, fmt/format.go (1.26).
"""

from __future__ import annotations

from decimal import Decimal


def shortest(number: float) -> tuple[bool, str, int]:
    """Return the sign, the shortest digits that stand for the number, and its exponent.

    The value is ``0.digits * 10**exponent``.
    """
    sign, digits, exponent = Decimal(repr(number)).as_tuple()
    text = "".join(map(str, digits)).rstrip("0") or "0"
    power = int(exponent) + len(digits)
    return bool(sign), text, power if text != "0" else 1


def special(number: float) -> str | None:
    """Return the text for infinity and NaN, or None for an ordinary number."""
    if number != number:
        return "NaN"
    if number in (float("inf"), float("-inf")):
        return "+Inf" if number > 0 else "-Inf"
    return None


def format_float(number: float) -> str:
    """Return the number as ``%v`` and ``%g`` print it: shortest, an exponent from 1e+06 on."""
    return format_general(number, 6)


def format_general(number: float, limit: int = 6) -> str:
    """Return the shortest text, with an exponent below 1e-4 and from 10**limit on."""
    text = special(number)
    if text is not None:
        return text
    negative, digits, power = shortest(number)
    sign = "-" if negative else ""
    if power - 1 < -4 or power - 1 >= limit:
        fraction = f".{digits[1:]}" if len(digits) > 1 else ""
        exponent = power - 1
        return f"{sign}{digits[0]}{fraction}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    return sign + positional(digits, power)


def positional(digits: str, power: int) -> str:
    """Return the digits with the decimal point where the exponent puts it."""
    if power <= 0:
        return "0." + "0" * -power + digits if digits != "0" else "0"
    if power >= len(digits):
        return digits + "0" * (power - len(digits))
    return f"{digits[:power]}.{digits[power:]}"


def format_plain(number: float) -> str:
    """Return the shortest text without an exponent, as ``strconv.FormatFloat(x, 'f', -1, 64)``."""
    text = special(number)
    if text is not None:
        return text
    negative, digits, power = shortest(number)
    return ("-" if negative else "") + positional(digits, power)
