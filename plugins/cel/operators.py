"""The operators: arithmetic that overflows with an error, order, membership.

*Source*: github.com/google/cel-go common/types (0.26): int.go, uint.go, double.go, string.go,
bytes.go, list.go, map.go, overflow.go.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from plugins.cel.errors import NO_SUCH_OVERLOAD, CelError
from plugins.cel.values import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    DomainMap,
    Duration,
    Map,
    MutableList,
    MutableMap,
    Timestamp,
    TypeValue,
    Uint,
    Value,
    compare,
    equal,
    is_comparable,
    is_list,
    is_map,
    size_of,
    type_name,
)

Comparison: TypeAlias = Callable[[Value, Value], bool]

MAX_LIST = 1 << 20
"""Longest list that is built.

# Differs: cel-go joins lists without copying them, for one unit of cost, so that a short
expression can have a list of any length. A longer one than this is refused with the text for an
expression that costs too much.
"""

_MIN_UNIX_NANOS = -62135596800 * 10**9
_MAX_UNIX_NANOS = 253402300799 * 10**9 + 999_999_999


def checked_int(number: int) -> int:
    """Return the number, which has to fit 64 bits."""
    if INT_MIN <= number <= INT_MAX:
        return number
    raise CelError("integer overflow")


def checked_uint(number: int) -> Uint:
    """Return the unsigned number, which has to fit 64 bits."""
    if 0 <= number <= UINT_MAX:
        return Uint(number)
    raise CelError("unsigned integer overflow")


def checked_duration(nanos: int) -> Duration:
    """Return the duration, whose nanoseconds have to fit 64 bits."""
    if INT_MIN <= nanos <= INT_MAX:
        return Duration(nanos)
    raise CelError("integer overflow")


def checked_timestamp(nanos: int, offset: int = 0) -> Timestamp:
    """Return the moment, which has to lie in the years 1 to 9999."""
    if _MIN_UNIX_NANOS <= nanos <= _MAX_UNIX_NANOS:
        return Timestamp(nanos, offset)
    raise CelError("timestamp overflow")


def add(first: Value, second: Value) -> Value:
    """Return the sum, or the two texts or lists one after the other."""
    kind = type(first)
    other = type(second)
    if kind is MutableList:
        if not is_list(second):
            raise CelError(NO_SUCH_OVERLOAD)
        first.extend(second)
        return first
    if kind is list and is_list(second):
        if not first:
            return second
        return first + second if second else first
    if kind is Timestamp and other is Duration:
        return checked_timestamp(first.nanos + second.nanos, first.offset)
    if kind is Duration and other is Timestamp:
        return checked_timestamp(first.nanos + second.nanos, second.offset)
    if kind is not other:
        raise CelError(NO_SUCH_OVERLOAD)
    if kind is int:
        return checked_int(first + second)
    if kind is str or kind is float or kind is bytes:
        return first + second
    if kind is Uint:
        return checked_uint(int(first) + int(second))
    if kind is Duration:
        return checked_duration(first.nanos + second.nanos)
    raise CelError(NO_SUCH_OVERLOAD)


def subtract(first: Value, second: Value) -> Value:
    """Return the difference of two numbers, or of moments and durations."""
    kind = type(first)
    other = type(second)
    if kind is Timestamp and other is Duration:
        return checked_timestamp(first.nanos - second.nanos, first.offset)
    if kind is not other:
        raise CelError(NO_SUCH_OVERLOAD)
    if kind is int:
        return checked_int(first - second)
    if kind is float:
        return first - second
    if kind is Uint:
        return checked_uint(int(first) - int(second))
    if kind is Duration or kind is Timestamp:
        return checked_duration(first.nanos - second.nanos)
    raise CelError(NO_SUCH_OVERLOAD)


def multiply(first: Value, second: Value) -> Value:
    """Return the product of two numbers of one type."""
    kind = type(first)
    if kind is type(second):
        if kind is int:
            return checked_int(first * second)
        if kind is float:
            return first * second
        if kind is Uint:
            return checked_uint(int(first) * int(second))
    raise CelError(NO_SUCH_OVERLOAD)


def divide(first: Value, second: Value) -> Value:
    """Return the quotient; of integers, rounded towards zero."""
    kind = type(first)
    if kind is not type(second):
        raise CelError(NO_SUCH_OVERLOAD)
    if kind is float:
        return _divide_doubles(first, second)
    if second == 0:
        raise CelError("division by zero")
    if kind is Uint:
        return Uint(int(first) // int(second))
    quotient = abs(first) // abs(second)
    return checked_int(quotient if (first < 0) == (second < 0) else -quotient)


def _divide_doubles(first: float, second: float) -> float:
    if second != 0:
        return first / second
    if first == 0 or first != first:
        return math.nan
    return math.copysign(math.inf, first) * math.copysign(1.0, second)


def modulo(first: Value, second: Value) -> Value:
    """Return the rest of the division, with the sign of the first number."""
    kind = type(first)
    if kind is not type(second):
        raise CelError(NO_SUCH_OVERLOAD)
    if second == 0:
        raise CelError("modulus by zero")
    if kind is Uint:
        return Uint(int(first) % int(second))
    if first == INT_MIN and second == -1:
        raise CelError("integer overflow")
    rest: int = abs(first) % abs(second)
    return rest if first >= 0 else -rest


def negate(value: Value) -> Value:
    """Return the number with the other sign."""
    kind = type(value)
    if kind is int:
        return checked_int(-value)
    if kind is float:
        return -value
    if kind is Duration:
        return checked_duration(-value.nanos)
    raise CelError(NO_SUCH_OVERLOAD)


def invert(value: Value) -> Value:
    """Return the other truth value."""
    if value is True:
        return False
    if value is False:
        return True
    raise CelError(NO_SUCH_OVERLOAD)


def contained(value: Value, container: Value) -> bool:
    """Report whether the list has the value, or the map the key."""
    if is_list(container):
        return any(equal(value, each) for each in container)
    if is_map(container):
        held: Map = container
        return held.contains(value)
    raise CelError(NO_SUCH_OVERLOAD)


def unsupported(function: str, first: Value) -> CelError:
    """Return the error of a function whose first argument has a type that it does not take."""
    if type(first) in _RECEIVERS:
        return CelError(NO_SUCH_OVERLOAD)
    return CelError(f"{NO_SUCH_OVERLOAD}: {function}")


def _ordered(function: str, quick: Callable[..., bool], orders: tuple[int, ...]) -> Comparison:
    """Return the comparison that is true where the order of the two is one of ``orders``."""

    def holds(first: Value, second: Value) -> bool:
        if type(first) is int and type(second) is int:
            return quick(first, second)
        if not is_comparable(first):
            raise unsupported(function, first)
        return compare(first, second) in orders

    return holds


_NUMBERS = frozenset({int, Uint, float})
_TIMES = frozenset({Timestamp, Duration})
_TEXTS = frozenset({str, bytes})
_LISTS = frozenset({list, MutableList})
_WHOLE = frozenset({int, Uint})
_RECEIVERS = frozenset({str, Timestamp, Duration})
"""Types with methods of their own: an operator that they lack has the shorter error."""


class Singleton(NamedTuple):
    """One implementation for all overloads of a function; ``kinds`` may stand first in it."""

    implementation: Callable[..., Value]
    kinds: frozenset[type] | None = None


SINGLETONS: dict[str, Singleton] = {
    "!_": Singleton(invert),
    "_+_": Singleton(add, _NUMBERS | _TIMES | _TEXTS | _LISTS),
    "_-_": Singleton(subtract, _NUMBERS | _TIMES),
    "_*_": Singleton(multiply, _NUMBERS),
    "_/_": Singleton(divide, _NUMBERS),
    "_%_": Singleton(modulo, _WHOLE),
    "-_": Singleton(negate, frozenset({int, float, Duration, bool})),
    "_<_": Singleton(_ordered("_<_", operator.lt, (-1,))),
    "_<=_": Singleton(_ordered("_<=_", operator.le, (-1, 0))),
    "_>_": Singleton(_ordered("_>_", operator.gt, (1,))),
    "_>=_": Singleton(_ordered("_>=_", operator.ge, (0, 1))),
    "@in": Singleton(contained),
    "size": Singleton(size_of, frozenset({str, bytes, Map, DomainMap, MutableMap}) | _LISTS),
    "type": Singleton(lambda value: TypeValue(type_name(value))),
    "dyn": Singleton(lambda value: value),
}
"""*Source*: github.com/google/cel-go common/stdlib/standard.go (0.26), singleton bindings."""
