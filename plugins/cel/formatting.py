"""``string.format``: clauses, and values as they print.

*Source*: github.com/google/cel-go ext/formatting.go (0.26), with golang.org/x/text/message for
doubles in English.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from plugins.cel import conversions, times
from plugins.cel.errors import CelError, LimitExceededError
from plugins.cel.go_text import go_quoted
from plugins.cel.strings import MAX_TEXT
from plugins.cel.values import (
    Duration,
    Map,
    Timestamp,
    TypeValue,
    Uint,
    Value,
    is_list,
    is_map,
    type_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_PRECISION = 1000
"""Most digits behind the point; more are refused as too expensive."""

MAX_NESTED = 60
"""Deepest nesting of lists and maps that are printed."""

DEFAULT_PRECISION = 6
_SPECIAL = frozenset({"NaN", "Infinity", "-Infinity"})
_SUPERSCRIPT = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")

ERRORS = {
    "s": "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, "
    "types, durations, and timestamps, was given",
    "d": "decimal clause can only be used on integers, was given",
    "f": "fixed-point clause can only be used on doubles, was given",
    "e": "scientific clause can only be used on doubles, was given",
    "b": "only integers and bools can be formatted as binary, was given",
    "x": "only integers, byte buffers, and strings can be formatted as hex, was given",
    "o": "octal clause can only be used on integers, was given",
}


class Clause(NamedTuple):
    """One ``%`` in a format: its letter, and how many digits it asks for."""

    letter: str
    precision: int


def clauses(text: str, count: int) -> Iterator[str | Clause]:
    """Yield texts and clauses of a format for ``count`` arguments.

    Raises
    ------
    CelError
        Where it is no format; what comes before is yielded first.
    """
    position = used = 0
    while position < len(text):
        percent = text.find("%", position)
        if percent < 0:
            yield text[position:]
            return
        yield text[position:percent]
        if text.startswith("%%", percent):
            yield "%"
            position = percent + 2
            continue
        if used >= count:
            raise CelError(f"index {used} out of range")
        if percent + 1 >= len(text):
            raise CelError("unexpected end of string")
        used += 1
        clause, position = _clause(text, percent + 1)
        yield clause


_PRECISION = re.compile(r"\.([0-9]*)")


def _clause(text: str, position: int) -> tuple[Clause, int]:
    failed = "could not parse formatting clause: "
    precision = DEFAULT_PRECISION
    match = _PRECISION.match(text, position)
    if match is not None:
        position = match.end()
        problem = _precision_problem(match[1]) if position < len(text) else "could not find end"
        if problem == "could not find end":
            problem = "could not find end of precision specifier"
        if problem:
            raise CelError(f"{failed}error while parsing precision: {problem}")
        precision = int(match[1])
    letter = text[position]
    if letter not in "sdfebxXo":
        shown = chr(letter.encode("utf-8", "surrogatepass")[0])
        raise CelError(f'{failed}unrecognized formatting clause "{shown}"')
    if precision > MAX_PRECISION and letter in "fe":
        raise LimitExceededError
    return Clause(letter, precision), position + 1


def _precision_problem(digits: str) -> str:
    failed = f'error while converting precision to integer: strconv.Atoi: parsing "{digits}": '
    if not digits:
        return failed + "invalid syntax"
    if len(digits.lstrip("0")) > 18:
        return failed + "value out of range"
    return ""


def formatted(text: str, arguments: list[Value]) -> str:
    """Return the format with its clauses replaced by the arguments.

    Raises
    ------
    CelError
        The format or an argument is wrong.
    """
    built: list[str] = []
    length = used = 0
    for part in clauses(text, len(arguments)):
        if isinstance(part, Clause):
            try:
                part = _LETTERS[part.letter](arguments[used], part.precision)
            except CelError as error:
                raise CelError(f"error during formatting: {error}") from None
            used += 1
        built.append(part)
        length += len(part)
        if length > MAX_TEXT:
            raise LimitExceededError
    return "".join(built)


def _wrong(letter: str, value: Value) -> CelError:
    return CelError(f"{ERRORS[letter]} {type_name(value)}")


def _string(value: Value, _: int = 0, depth: int = 0) -> str:
    if depth > MAX_NESTED:
        raise LimitExceededError
    if value is None:
        return "null"
    if isinstance(value, bytes):
        try:
            return conversions.bytes_to_string(value)
        except CelError as error:
            message = f"could not convert argument {go_quoted(str(error))} to string"
            raise CelError(message) from None
    if is_list(value):
        return "[" + ", ".join(_literal(each, depth + 1) for each in value) + "]"
    if is_map(value):
        return _map(value, depth + 1)
    name = _STRINGS.get(type(value))
    if name is None:
        raise _wrong("s", value)
    return name(value)


_STRINGS: dict[type, Callable[[Value], str]] = {
    str: str,
    bool: lambda value: "true" if value else "false",
    int: str,
    Uint: lambda value: str(int(value)),
    float: conversions.IMPLEMENTATIONS["double_to_string"],
    TypeValue: lambda value: str(value.name),
    Timestamp: times.timestamp_to_string,
    Duration: times.duration_to_string,
}


def _literal(value: Value, depth: int) -> str:
    """Return the value as an element of a list or map: texts are quoted."""
    if isinstance(value, str):
        return go_quoted(value)
    if isinstance(value, bytes):
        return "b" + go_quoted(_string(value))
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            return '"NaN"' if value != value else '"+Inf"' if value > 0 else '"-Inf"'
        return f"{value:.6f}"
    if isinstance(value, Timestamp):
        return f'timestamp("{times.timestamp_to_string(value)}")'
    if isinstance(value, Duration):
        return f'duration("{times.duration_to_string(value)}")'
    known = value is None or type(value) in _STRINGS or is_list(value) or is_map(value)
    if not known:
        raise CelError(f"no formatting function for {type_name(value)}")
    return _string(value, depth=depth)


def _map(value: Map, depth: int) -> str:
    pairs = []
    for key in value.each_key():
        if type(key) not in (str, bool, int, Uint):
            raise CelError(f"no formatting function for map key of type {type_name(key)}")
        shown = go_quoted(key) if type(key) is str else _STRINGS[type(key)](key)
        pairs.append((shown, _literal(value.find(key), depth)))
    pairs.sort(key=lambda pair: pair[0])
    return "{" + ", ".join(f"{key}:{content}" for key, content in pairs) + "}"


def _decimal(value: Value, _: int) -> str:
    if type(value) not in (int, Uint):
        raise _wrong("d", value)
    return str(int(value))


def _double(value: Value, letter: str) -> float:
    if isinstance(value, str) and value in _SPECIAL:
        return float(value)
    if type(value) is not float:
        raise _wrong(letter, value)
    return value


def _not_finite(number: float) -> str:
    return "NaN" if number != number else "∞" if number > 0 else "-∞"


def _fixed(value: Value, precision: int) -> str:
    number = _double(value, "f")
    if number != number or number in (float("inf"), float("-inf")):
        return _not_finite(number)
    whole, point, fraction = f"{abs(number):,.{precision}f}".partition(".")
    # The printer keeps the least number of digits in eight bits.
    least = precision % 256
    fraction = fraction[:least] + fraction[least:].rstrip("0")
    sign = "-" if number < 0 else ""
    return sign + whole + (point + fraction if fraction else "")


def _scientific(value: Value, precision: int) -> str:
    number = _double(value, "e")
    # The precision is taken for the width, so that there are always six digits.
    if number != number or number in (float("inf"), float("-inf")):
        return _not_finite(number).rjust(precision)
    digits, _, exponent = f"{abs(number):.6e}".partition("e")
    power = int(exponent)
    shown = f"{'-' if power < 0 else ''}{abs(power):02d}".translate(_SUPERSCRIPT)
    sign = "-" if number < 0 else ""
    return f"{sign}{digits}×10{shown}".rjust(precision)  # noqa: RUF001 - what the printer prints


def _binary(value: Value, _: int) -> str:
    if type(value) is bool:
        return "1" if value else "0"
    if type(value) not in (int, Uint):
        raise _wrong("b", value)
    return f"{int(value):b}"


def _hexadecimal(value: Value, _: int) -> str:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass").hex()
    if isinstance(value, bytes):
        return value.hex()
    if type(value) not in (int, Uint):
        raise _wrong("x", value)
    return f"{int(value):x}"


def _octal(value: Value, _: int) -> str:
    if type(value) not in (int, Uint):
        raise _wrong("o", value)
    return f"{int(value):o}"


_LETTERS: dict[str, Callable[[Value, int], str]] = {
    "s": _string,
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "x": _hexadecimal,
    "X": lambda value, precision: _hexadecimal(value, precision).upper(),
    "o": _octal,
}

IMPLEMENTATIONS: dict[str, Value] = {"string_format": formatted}
