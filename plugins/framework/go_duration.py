"""Parse and format durations in Go's format: ``1m30s``, ``1.5h``, ``300ms``.

*Source*: Go 1.26, time/format.go (ParseDuration) and time/time.go (Duration.String); in Kubernetes
objects they stand as text, k8s.io/apimachinery pkg/apis/meta/v1/duration.go (0.36).
"""

from __future__ import annotations

from functools import total_ordering
from typing import Final

_MICROSECOND: Final = 1_000
_MILLISECOND: Final = 1_000_000
_SECOND: Final = 1_000_000_000
_MINUTE: Final = 60 * _SECOND
_HOUR: Final = 60 * _MINUTE

_UNITS: Final = {
    "ns": 1,
    "us": _MICROSECOND,
    "\u00b5s": _MICROSECOND,  # the micro sign
    "\u03bcs": _MICROSECOND,  # the Greek letter
    "ms": _MILLISECOND,
    "s": _SECOND,
    "m": _MINUTE,
    "h": _HOUR,
}

_MAX_SHOWN: Final = 80
"""Characters of a bad value that a message repeats; it may be a megabyte."""

_LIMIT: Final = 1 << 63
_MAX_NS: Final = _LIMIT - 1
_MIN_NS: Final = -_LIMIT
_DIGITS: Final = frozenset("0123456789")


@total_ordering
class GoDuration:
    """A signed length of time, exact to the nanosecond. Immutable.

    Not a dataclass: msgspec would then expect a mapping where the file has text.

    Parameters
    ----------
    ns
        Nanoseconds, within 64 bits.

    Raises
    ------
    ValueError
        If ``ns`` does not fit.
    """

    __slots__ = ("_ns",)

    def __init__(self, ns: int) -> None:
        if not _MIN_NS <= ns <= _MAX_NS:
            raise ValueError(f"{ns} ns does not fit into a duration")
        self._ns = ns

    def __eq__(self, other: object) -> bool:
        return self._ns == other.ns if isinstance(other, GoDuration) else NotImplemented

    def __lt__(self, other: GoDuration) -> bool:
        return self._ns < other.ns

    def __hash__(self) -> int:
        return hash(self._ns)

    def __repr__(self) -> str:
        return f"GoDuration({self._ns})"

    @property
    def ns(self) -> int:
        """The length in nanoseconds."""
        return self._ns

    @property
    def seconds(self) -> float:
        """The length in seconds."""
        return self._ns / _SECOND

    def __str__(self) -> str:
        """Return it as Go prints it: ``1m30s``, ``1.5ms``, ``0s``."""
        sign, ns = ("-", -self._ns) if self._ns < 0 else ("", self._ns)
        if ns < _SECOND:
            return sign + _below_a_second(ns)
        minutes, ns = divmod(ns, _MINUTE)
        text = f"{_decimal(ns, _SECOND)}s"
        if minutes:
            hours, minutes = divmod(minutes, 60)
            text = f"{minutes}m{text}"
            if hours:
                text = f"{hours}h{text}"
        return sign + text


def duration_of_seconds(seconds: int) -> GoDuration:
    """Return a duration of whole seconds."""
    return GoDuration(seconds * _SECOND)


def parse_go_duration(text: str) -> GoDuration:
    """Return the duration that ``text`` writes.

    Parameters
    ----------
    text
        An optional sign, then decimal numbers with a unit each: ns, us, ms, s, m or h. A bare
        ``0`` needs no unit.

    Raises
    ------
    ValueError
        If it is none, or does not fit into 64 bits of nanoseconds.
    """
    negative = text.startswith("-")
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return GoDuration(0)
    if not rest:
        raise _nonsense(text)
    total = 0
    while rest:
        part, rest = _leading_part(rest, text)
        total += part
        if total > _LIMIT:
            raise _nonsense(text)
    total = -total if negative else total
    if total > _MAX_NS:
        raise _nonsense(text)
    return GoDuration(total)


def _leading_part(rest: str, text: str) -> tuple[int, str]:
    """Return the nanoseconds of the first number with its unit, and what follows them."""
    whole, rest = _leading_digits(rest)
    fraction = ""
    if rest.startswith("."):
        fraction, rest = _leading_digits(rest[1:])
    if not whole and not fraction:
        raise _nonsense(text)
    end = next((at for at, char in enumerate(rest) if char == "." or char in _DIGITS), len(rest))
    name, rest = rest[:end], rest[end:]
    if not name:
        raise ValueError(f"{_shown(text)} lacks a unit; a duration is written like '1m30s'")
    unit = _UNITS.get(name)
    if unit is None:
        raise ValueError(f"{_shown(text)} has the unknown unit {_shown(name)}; known are ns to h")
    # 20 digits exceed 64 bits in any unit; Python refuses to convert thousands of them.
    if len(whole.lstrip("0")) >= 20:
        raise _nonsense(text)
    ns = int(whole or "0") * unit + _fraction_ns(fraction, unit)
    if ns > _LIMIT:
        raise _nonsense(text)
    return ns, rest


def _fraction_ns(digits: str, unit: int) -> int:
    """Return the nanoseconds of ``0.<digits>`` units, computed in float64 as Go does.

    Digits beyond the 63 bits that Go keeps are dropped.
    """
    numerator, scale = 0, 1.0
    for digit in digits:
        larger = numerator * 10 + int(digit)
        if numerator > _MAX_NS // 10 or larger > _LIMIT:
            break
        numerator, scale = larger, scale * 10
    return int(float(numerator) * (float(unit) / scale)) if numerator else 0


def _leading_digits(text: str) -> tuple[str, str]:
    end = next((at for at, char in enumerate(text) if char not in _DIGITS), len(text))
    return text[:end], text[end:]


def _nonsense(text: str) -> ValueError:
    return ValueError(f"{_shown(text)} is no duration; one is written like '1m30s'")


def _below_a_second(ns: int) -> str:
    if ns == 0:
        return "0s"
    if ns < _MICROSECOND:
        return f"{ns}ns"
    if ns < _MILLISECOND:
        return f"{_decimal(ns, _MICROSECOND)}\u00b5s"
    return f"{_decimal(ns, _MILLISECOND)}ms"


def _decimal(amount: int, unit: int) -> str:
    """Return ``amount / unit`` in decimals without trailing zeros; ``unit`` is a power of ten."""
    whole, rest = divmod(amount, unit)
    if not rest:
        return str(whole)
    return f"{whole}.{rest:0{len(str(unit)) - 1}d}".rstrip("0")


def _shown(text: str) -> str:
    return repr(text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "...")
