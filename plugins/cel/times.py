"""Timestamps and durations.

*Source*: github.com/google/cel-go common/types/timestamp.go, duration.go (0.26); Go time (1.26).
"""

from __future__ import annotations

import re
import zoneinfo
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from plugins.cel.conversions import failed
from plugins.cel.errors import CelError
from plugins.cel.go_numbers import format_plain
from plugins.cel.operators import checked_timestamp
from plugins.cel.values import INT_MAX, INT_MIN, Duration, Timestamp, Value

if TYPE_CHECKING:
    from collections.abc import Callable

_SECOND = 10**9
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIMESTAMP = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?"
    r"(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
)
_UNITS = {
    "ns": 1,
    "us": 10**3,
    "\u00b5s": 10**3,
    "\u03bcs": 10**3,
    "ms": 10**6,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "h": 3600 * _SECOND,
}
_DURATION_PART = re.compile(r"([0-9]*)(?:(\.)([0-9]*))?(ns|us|\u00b5s|\u03bcs|ms|s|m|h)")
MAX_DURATION_TEXT = 1000
"""Longest text that is read as a duration."""

MAX_TIMESTAMP_TEXT = 100
"""Longest text that is read as a timestamp."""


def string_to_timestamp(text: str) -> Timestamp:
    """Return the moment of an RFC 3339 text."""
    match = _TIMESTAMP.fullmatch(text) if len(text) <= MAX_TIMESTAMP_TEXT else None
    if match is None:
        raise failed("string", "google.protobuf.Timestamp")
    year, month, day, hour, minute, second = (int(each) for each in match.groups()[:6])
    offset = 0
    if match[8]:
        if int(match[9]) > 24 or int(match[10]) > 60:
            raise failed("string", "google.protobuf.Timestamp")
        offset = (int(match[9]) * 60 + int(match[10])) * 60
        offset = -offset if match[8] == "-" else offset
    try:
        # The year 0 is one that Go knows; it lies before the first timestamp.
        moment = datetime(year or 4, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        raise failed("string", "google.protobuf.Timestamp") from None
    if year == 0:
        raise CelError("timestamp overflow")
    seconds = (moment - _EPOCH) // timedelta(seconds=1) - offset
    nanos = int((match[7] or "0")[:9].ljust(9, "0"))
    return checked_timestamp(seconds * _SECOND + nanos, offset)


def string_to_duration(text: str) -> Duration:
    """Return the duration of a text such as ``1h2m3.5s``."""
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return Duration(0)
    total = position = 0
    while position < len(rest) and len(text) <= MAX_DURATION_TEXT:
        match = _DURATION_PART.match(rest, position)
        if match is None or not (match[1] or match[3]):
            break
        unit = _UNITS[match[4]]
        fraction = match[3] or ""
        total += int(match[1] or "0") * unit
        if fraction:
            total += int(fraction) * unit // 10 ** len(fraction)
        position = match.end()
    if not rest or position != len(rest):
        raise failed("string", "google.protobuf.Duration")
    total = -total if text[0] == "-" else total
    if not INT_MIN <= total <= INT_MAX:
        raise failed("string", "google.protobuf.Duration")
    return Duration(total)


def duration_to_string(value: Duration) -> str:
    """Return the seconds with an s behind them."""
    return format_plain(_units(value.nanos, _SECOND)) + "s"


def _units(nanos: int, unit: int) -> float:
    """Return the number of units as Go computes it: whole ones plus the rest, as doubles."""
    whole = abs(nanos) // unit
    rest = (abs(nanos) % unit) / unit
    number = float(whole) + rest
    return -number if nanos < 0 else number


def timestamp_to_string(value: Timestamp) -> str:
    """Return the moment as RFC 3339 has it, in the zone that it was written in."""
    moment = _calendar(value, value.offset)
    nanos = value.nanos % _SECOND
    fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
    zone = "Z"
    if value.offset:
        hours, minutes = divmod(abs(value.offset) // 60, 60)
        zone = f"{'-' if value.offset < 0 else '+'}{hours:02d}:{minutes:02d}"
    return f"{moment:%Y-%m-%dT%H:%M:%S}".rjust(19, "0") + fraction + zone


def _calendar(value: Timestamp, offset: int) -> datetime:
    try:
        return _EPOCH + timedelta(seconds=value.nanos // _SECOND + offset)
    except OverflowError:
        raise CelError("timestamp overflow") from None


def _in_zone(value: Timestamp, zone: str) -> datetime:
    match = re.fullmatch(r"([+-]?)([0-9]{1,4}):([0-9]{1,4})", zone)
    if match:
        offset = (int(match[2]) * 60 + int(match[3])) * 60
        return _calendar(value, -offset if match[1] == "-" else offset)
    moment = _calendar(value, 0)
    if zone in ("", "UTC"):
        return moment
    try:
        return moment.astimezone(zoneinfo.ZoneInfo(zone))
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError, OverflowError):
        raise CelError(f"unknown time zone {zone}") from None


def _part(read: Callable[[datetime], int]) -> Callable[..., int]:
    def part(value: Timestamp, zone: str | None = None) -> int:
        return read(_calendar(value, 0) if zone is None else _in_zone(value, zone))

    return part


def _milliseconds(value: Timestamp, zone: str | None = None) -> int:
    if zone is not None:
        _in_zone(value, zone)
    return value.nanos % _SECOND // 10**6


_PARTS: dict[str, Callable[..., int]] = {
    "timestamp_to_year": _part(lambda moment: moment.year),
    "timestamp_to_month": _part(lambda moment: moment.month - 1),
    "timestamp_to_day_of_year": _part(lambda moment: moment.timetuple().tm_yday - 1),
    "timestamp_to_day_of_month": _part(lambda moment: moment.day - 1),
    "timestamp_to_day_of_month_1_based": _part(lambda moment: moment.day),
    "timestamp_to_day_of_week": _part(lambda moment: moment.isoweekday() % 7),
    "timestamp_to_hours": _part(lambda moment: moment.hour),
    "timestamp_to_minutes": _part(lambda moment: moment.minute),
    "timestamp_to_seconds": _part(lambda moment: moment.second),
    "timestamp_to_milliseconds": _milliseconds,
}


def _whole_milliseconds(value: Duration) -> int:
    whole = abs(value.nanos) // 10**6
    return whole if value.nanos >= 0 else -whole


def _int_to_duration(_: int) -> Duration:
    raise failed("int", "google.protobuf.Duration")


def _int_to_timestamp(seconds: int) -> Timestamp:
    return checked_timestamp(seconds * _SECOND)


IMPLEMENTATIONS: dict[str, Value] = {
    **_PARTS,
    **{f"{name}_with_tz": part for name, part in _PARTS.items()},
    "timestamp_to_seconds_tz": _PARTS["timestamp_to_seconds"],
    "duration_to_hours": lambda value: int(_units(value.nanos, 3600 * _SECOND)),
    "duration_to_minutes": lambda value: int(_units(value.nanos, 60 * _SECOND)),
    "duration_to_seconds": lambda value: int(_units(value.nanos, _SECOND)),
    "duration_to_milliseconds": _whole_milliseconds,
    "int64_to_duration": _int_to_duration,
    "string_to_duration": string_to_duration,
    "duration_to_int64": lambda value: value.nanos,
    "timestamp_to_int64": lambda value: value.nanos // _SECOND,
    "duration_to_string": duration_to_string,
    "timestamp_to_string": timestamp_to_string,
    "int64_to_timestamp": _int_to_timestamp,
    "string_to_timestamp": string_to_timestamp,
}
