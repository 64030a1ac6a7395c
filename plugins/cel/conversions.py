"""Conversions between scalars.

*Source*: github.com/google/cel-go common/types, ``ConvertToType`` (0.26); Go strconv (1.26).
"""

from __future__ import annotations

import re

from plugins.cel.errors import CelError
from plugins.cel.go_numbers import format_float
from plugins.cel.operators import checked_int, checked_uint
from plugins.cel.values import INT_MAX, INT_MIN, UINT_MAX, Uint, Value

MAX_NUMBER = 4096
"""Longest text that is read as a double."""

_INT = re.compile(r"[+-]?[0-9]+")
_UINT = re.compile(r"[0-9]+")
_DOUBLE = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_HEX = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+(?:\.[0-9a-fA-F]*)?|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+")
_SPECIAL = re.compile(r"[+-]?(?:inf|infinity)|nan", re.IGNORECASE | re.ASCII)
_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})


def failed(source: str, target: str) -> CelError:
    """Return the error of a value that cannot be converted."""
    return CelError(f"type conversion error from '{source}' to '{target}'")


def _whole(text: str, form: re.Pattern[str], low: int, high: int) -> int | None:
    if form.fullmatch(text) is None or len(text.lstrip("+-").lstrip("0")) > 20:
        return None
    number = int(text)
    return number if low <= number <= high else None


def _string_to_int(text: str) -> int:
    number = _whole(text, _INT, INT_MIN, INT_MAX)
    if number is None:
        raise failed("string", "int")
    return number


def _string_to_uint(text: str) -> Uint:
    number = _whole(text, _UINT, 0, UINT_MAX)
    if number is None:
        raise failed("string", "uint")
    return Uint(number)


def string_to_double(text: str) -> float:
    """Return the double that the text stands for."""
    try:
        if len(text) <= MAX_NUMBER:
            if _DOUBLE.fullmatch(text):
                number = float(text)
                if abs(number) != float("inf"):
                    return number
            elif _HEX.fullmatch(text):
                return float.fromhex(text)
            elif _SPECIAL.fullmatch(text):
                return float(text)
    except OverflowError:
        pass
    raise failed("string", "double")


def _string_to_bool(text: str) -> bool:
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise failed("string", "bool")


def _double_to_int(number: float) -> int:
    if not -(2.0**63) < number < 2.0**63:
        raise CelError("integer overflow")
    return int(number)


def _double_to_uint(number: float) -> Uint:
    if not 0 <= number < 2.0**64:
        raise CelError("unsigned integer overflow")
    return Uint(int(number))


def bytes_to_string(value: bytes) -> str:
    """Return the text that is encoded in the bytes."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None


def _same(value: Value) -> Value:
    return value


IMPLEMENTATIONS: dict[str, Value] = {
    **dict.fromkeys(
        (
            "bool_to_bool",
            "bytes_to_bytes",
            "double_to_double",
            "duration_to_duration",
            "int64_to_int64",
            "string_to_string",
            "timestamp_to_timestamp",
            "uint64_to_uint64",
        ),
        _same,
    ),
    "string_to_bool": _string_to_bool,
    "string_to_bytes": lambda text: text.encode("utf-8", "surrogatepass"),
    "int64_to_double": float,
    "string_to_double": string_to_double,
    "uint64_to_double": float,
    "double_to_int64": _double_to_int,
    "string_to_int64": _string_to_int,
    "uint64_to_int64": lambda number: checked_int(int(number)),
    "bool_to_string": lambda value: "true" if value else "false",
    "bytes_to_string": bytes_to_string,
    "double_to_string": format_float,
    "int64_to_string": str,
    "uint64_to_string": lambda number: str(int(number)),
    "double_to_uint64": _double_to_uint,
    "int64_to_uint64": checked_uint,
    "string_to_uint64": _string_to_uint,
}
