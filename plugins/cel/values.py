"""The values of the language, and when two of them are equal.

int, bool, double, string, bytes, list and null are Python's own ``int``, ``bool``, ``float``,
``str``, ``bytes``, ``list`` and ``None``; lists are never changed once an expression has them.

*Source*: github.com/google/cel-go common/types (0.26), one file for each type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from plugins.cel.errors import NO_SUCH_OVERLOAD, BrokenCallError, CelError

if TYPE_CHECKING:
    from collections.abc import Iterator

INT_MAX = 2**63 - 1
INT_MIN = -(2**63)
UINT_MAX = 2**64 - 1

Value: TypeAlias = Any
"""A value of CEL: what it is, only the run of the expression shows."""


class Uint(int):
    """An unsigned integer of 64 bits."""

    __slots__ = ()


class TypeValue:
    """The name of a type, as a value."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypeValue) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


class Timestamp:
    """A moment: nanoseconds since 1970 began in UTC; ``offset`` is how its text was written."""

    __slots__ = ("nanos", "offset")

    def __init__(self, nanos: int, offset: int = 0) -> None:
        self.nanos = nanos
        self.offset = offset

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timestamp) and self.nanos == other.nanos

    def __hash__(self) -> int:
        return hash(("timestamp", self.nanos))


class Duration:
    """A span of time in nanoseconds."""

    __slots__ = ("nanos",)

    def __init__(self, nanos: int) -> None:
        self.nanos = nanos

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Duration) and self.nanos == other.nanos

    def __hash__(self) -> int:
        return hash(("duration", self.nanos))


class Optional:
    """A value that may be missing."""

    __slots__ = ("present", "value")

    def __init__(self, present: bool, value: Value = None) -> None:
        self.present = present
        self.value = value


NONE = Optional(False)


class Opaque:
    """A value of a type that an extension library adds; such values compare by :meth:`same`."""

    __slots__ = ()
    type_name = ""
    go_native = ""
    hashable = True

    def same(self, other: Opaque) -> bool | None:
        """Report whether the two, which have one type, are equal; None is an error."""
        raise NotImplementedError

    def size(self) -> int | None:
        """Return its size for the cost of a call, or None if it has none."""
        return None


def canonical(key: Value) -> Any:
    """Return the key of a Python dict that stands for the key of a map: 1, 1u and true differ.

    Raises
    ------
    CelError
        The value cannot be a key of a map.
    """
    kind = type(key)
    if kind is str:
        return key
    if kind is bytes or isinstance(key, Opaque):
        check_hashable(key)
    if kind in _KEYS:
        return (kind, key)
    raise CelError(f"unsupported key type: {type_name(key)}")


_KEYS = frozenset({int, bool, Uint, float, bytes, type(None), TypeValue, Timestamp, Duration})


def check_hashable(value: Value) -> None:
    """Raise where Go cannot use the value as a key.

    Raises
    ------
    BrokenCallError
        For values that Go holds in slices.
    """
    if type(value) is bytes:
        raise BrokenCallError(f"{_UNHASHABLE} types.Bytes")
    if isinstance(value, Opaque) and not value.hashable:
        raise BrokenCallError(f"{_UNHASHABLE} cel.{value.type_name.rpartition('.')[2]}")


_UNHASHABLE = "internal error: runtime error: hash of unhashable type"


class Map:
    """A map; ``entries`` has its values by :func:`canonical` key."""

    __slots__ = ("entries",)

    def __init__(self, entries: dict[Any, Value]) -> None:
        self.entries = entries

    def find(self, key: Value) -> Value:
        """Return the value of the key, or MISSING; a number is looked up as int and as uint."""
        kind = type(key)
        if kind is str:
            return self.entries.get(key, MISSING)
        if kind not in _KEYS:
            return MISSING
        found = self.entries.get((kind, key), MISSING)
        if found is not MISSING:
            return found
        if kind is float:
            if key.is_integer() and abs(key) <= 2.0**64:
                found = self.entries.get((int, int(key)), MISSING)
                if found is MISSING and key >= 0:
                    found = self.entries.get((Uint, Uint(int(key))), MISSING)
        elif kind is int and key >= 0:
            found = self.entries.get((Uint, Uint(key)), MISSING)
        elif kind is Uint and key <= INT_MAX:
            found = self.entries.get((int, int(key)), MISSING)
        return found

    def each_key(self) -> Iterator[Value]:
        """Yield the keys in the order of their insertion."""
        for key in self.entries:
            yield key if type(key) is str else key[1]

    def contains(self, key: Value) -> bool:
        """Report whether the key is in the map."""
        return self.find(key) is not MISSING


class DomainMap(Map):
    """A map where every key is found: one that is not there has an empty map.

    *Source*: k8s.io/dynamic-resource-allocation cel/compile.go, ``mapper.Find`` (0.36).
    """

    __slots__ = ()

    def find(self, key: Value) -> Value:
        """Return the value of the key, or an empty map."""
        return self.entries.get(key, EMPTY_MAP) if type(key) is str else EMPTY_MAP

    def contains(self, key: Value) -> bool:
        """Report whether the key is really there."""
        return type(key) is str and key in self.entries


class MutableMap(Map):
    """The map that a loop fills."""

    __slots__ = ()


class MutableList(list[Value]):
    """The list that a loop fills."""

    __slots__ = ()


class _Missing:
    __slots__ = ()


MISSING = _Missing()
EMPTY_MAP = Map({})

_NAMES: dict[type, str] = {
    int: "int",
    bool: "bool",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    MutableList: "list",
    Map: "map",
    DomainMap: "map",
    MutableMap: "map",
    type(None): "null_type",
    TypeValue: "type",
    Timestamp: "google.protobuf.Timestamp",
    Duration: "google.protobuf.Duration",
    Optional: "optional_type",
}


def type_name(value: Value) -> str:
    """Return the name of the value's type."""
    name = _NAMES.get(type(value))
    return name if name is not None else str(value.type_name)


_PLAIN = frozenset({str, int, bool, Uint, bytes, TypeValue, Timestamp, Duration, type(None)})
_NUMBERS = frozenset({int, Uint, float})
_LISTS = frozenset({list, MutableList})
_MAPS = frozenset({Map, DomainMap, MutableMap})

MAX_COMPARED_DEPTH = 60
"""Deepest nesting of lists and maps that are compared."""


def is_list(value: Value) -> bool:
    """Report whether the value is a list."""
    return type(value) in _LISTS


def is_map(value: Value) -> bool:
    """Report whether the value is a map."""
    return type(value) in _MAPS


def is_number(value: Value) -> bool:
    """Report whether the value is an int, a uint or a double; a bool is none."""
    return type(value) in _NUMBERS


def equal(first: Value, second: Value, depth: int = 0) -> bool | None:
    """Report whether two values are equal; None where the comparison itself is an error.

    Values of different types differ, except numbers. An extension's type cannot be compared with
    another type, and that is an error only where it stands first.
    """
    kind = type(first)
    if kind is type(second) and kind in _PLAIN:
        return bool(first == second)
    if kind in _NUMBERS:
        return type(second) in _NUMBERS and compare_numbers(first, second) == 0
    if kind in _PLAIN or second is None:
        return False
    if kind is Optional:
        return _equal_optional(first, second, depth)
    if depth > MAX_COMPARED_DEPTH:
        raise CelError("values are nested too deeply")
    if kind in _LISTS:
        if type(second) not in _LISTS or len(first) != len(second):
            return False
        pairs = zip(first, second, strict=True)
        return all(equal(mine, other, depth + 1) is not False for mine, other in pairs)
    if kind in _MAPS:
        return type(second) in _MAPS and _equal_maps(first, second, depth)
    if isinstance(first, Opaque):
        return first.same(second) if type(second) is kind else None
    return None


def _equal_optional(first: Optional, second: Value, depth: int) -> bool | None:
    if type(second) is not Optional:
        return False
    if not (first.present and second.present):
        return first.present == second.present
    return equal(first.value, second.value, depth + 1)


def _equal_maps(first: Map, second: Map, depth: int) -> bool:
    if len(first.entries) != len(second.entries):
        return False
    for key in first.each_key():
        other = second.find(key)
        if other is MISSING or equal(first.find(key), other, depth + 1) is False:
            return False
    return True


def compare_numbers(first: int | float, second: int | float) -> int | None:
    """Return -1, 0 or 1 for numbers of any type; None if one is NaN.

    Notes
    -----
    *Source*: github.com/google/cel-go common/types/compare.go (0.26): an integer is converted to
    a double before it is compared with one.
    """
    if isinstance(first, float) or isinstance(second, float):
        if first != first or second != second:
            return None
        if not isinstance(first, float):
            first = float(first)
        elif not isinstance(second, float):
            second = float(second)
    return (first > second) - (first < second)


def compare(first: Value, second: Value) -> int:
    """Return -1, 0 or 1.

    Raises
    ------
    CelError
        The values have no order: their types, or one is NaN.
    """
    kind = type(first)
    if kind in _NUMBERS:
        if kind is float and first != first:
            raise CelError("NaN values cannot be ordered")
        if type(second) in _NUMBERS:
            order = compare_numbers(first, second)
            if order is None:
                raise CelError("NaN values cannot be ordered")
            return order
    elif kind is type(second):
        if kind is str:
            # Go compares the bytes of UTF-8, whose order is that of the code points.
            return int(first > second) - int(first < second)
        if kind is bytes or kind is bool:
            return int(first > second) - int(first < second)
        if kind is Timestamp or kind is Duration:
            return int(first.nanos > second.nanos) - int(first.nanos < second.nanos)
    raise CelError(NO_SUCH_OVERLOAD)


def is_comparable(value: Value) -> bool:
    """Report whether values of this type have an order."""
    return type(value) in _COMPARABLE


_COMPARABLE = frozenset({int, Uint, float, str, bytes, bool, Timestamp, Duration})


def size_of(value: Value) -> int | None:
    """Return the size of a string (in code points), bytes, list or map; None for others."""
    kind = type(value)
    if kind is str or kind is bytes or kind in _LISTS:
        return len(value)
    if kind in _MAPS:
        return len(value.entries)
    return None


def actual_size(value: Value) -> int:
    """Return what the value counts for in the cost of a call: its size, or 1.

    Notes
    -----
    *Source*: github.com/google/cel-go interpreter/runtimecost.go, ``actualSize`` (0.26).
    """
    size = size_of(value)
    if size is not None:
        return size
    if isinstance(value, Opaque):
        size = value.size()
        return 1 if size is None else size
    return 1
