"""Functions of optional values, and the insertion into maps that loops use.

*Source*: github.com/google/cel-go cel/library.go, ext/comprehensions.go (0.26).
"""

from __future__ import annotations

from plugins.cel.errors import CelError
from plugins.cel.go_text import shown_value
from plugins.cel.values import (
    MISSING,
    NONE,
    Duration,
    Map,
    MutableMap,
    Opaque,
    Optional,
    Timestamp,
    Value,
    canonical,
    is_list,
    is_map,
)


def _is_zero(value: Value) -> bool:
    if value is None:
        return True
    if isinstance(value, Duration):
        return value.nanos == 0
    if isinstance(value, Timestamp | Opaque | Optional):
        return False
    if is_map(value):
        return not value.entries
    if is_list(value) or isinstance(value, str | bytes):
        return not value
    return value == 0 and isinstance(value, int | float)


def unwrapped(held: Optional) -> Value:
    """Return the value; one that got lost on its way through Go's types is an error."""
    if not held.present:
        raise CelError("optional.none() dereference")
    if type(held.value) is CelError:
        raise CelError(*held.value.args)
    return held.value


def _insert(target: Map, key: Value, value: Value) -> Map:
    if target.find(key) is not MISSING:
        raise CelError(f"insert failed: key {shown_value(key)} already exists")
    if type(target) is MutableMap:
        target.entries[canonical(key)] = value
        return target
    return Map({**target.entries, canonical(key): value})


def _insert_all(target: Map, update: Map) -> Map:
    for key in update.each_key():
        target = _insert(target, key, update.find(key))
    return target


IMPLEMENTATIONS: dict[str, Value] = {
    "optional_of": lambda value: Optional(True, value),
    "optional_ofNonZeroValue": lambda value: NONE if _is_zero(value) else Optional(True, value),
    "optional_none": lambda: NONE,
    "optional_value": unwrapped,
    "optional_hasValue": lambda held: held.present,
    "@mapInsert_map_key_value": _insert,
    "@mapInsert_map_map": _insert_all,
}
