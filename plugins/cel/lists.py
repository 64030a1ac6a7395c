"""Functions of lists and sets.

*Source*: github.com/google/cel-go ext/lists.go, version 3, and ext/sets.go (0.26);
k8s.io/apiserver pkg/cel/library/lists.go (0.36); k8s.io/dynamic-resource-allocation
cel/compile.go, ``includesFunc`` (0.36).
"""

from __future__ import annotations

from functools import cmp_to_key
from typing import TYPE_CHECKING

from plugins.cel.errors import NO_SUCH_OVERLOAD, CelError, LimitExceededError
from plugins.cel.go_text import shown_value
from plugins.cel.operators import MAX_LIST, add, contained
from plugins.cel.values import (
    NONE,
    Duration,
    Optional,
    Uint,
    Value,
    compare,
    equal,
    is_comparable,
    is_list,
    type_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_INCLUDED = 48
"""Longest list that ``includes`` takes.

*Source*: k8s.io/api resource/v1 ``ResourceSliceMaxAttributeValuesPerDevice`` (0.36).
"""

MAX_PAIRS = 1_000_000
"""Most pairs that a call compares: each of them costs 1 or more, whatever the outcome."""

Values = list[Value]


def _is_sorted(values: Values) -> bool:
    for index, value in enumerate(values):
        if not is_comparable(value):
            raise CelError(NO_SUCH_OVERLOAD)
        if index and _order(values[index - 1], value) == 1:
            return False
    return True


def _order(first: Value, second: Value) -> int | None:
    """Return -1, 0, 1, or None where the two have no order."""
    try:
        return compare(first, second)
    except CelError:
        return None


def _sum(start: Value) -> Callable[[Values], Value]:
    def total(values: Values) -> Value:
        result = start
        for value in values:
            result = add(result, value)
        return result

    return total


def _chosen(name: str, replaced: int) -> Callable[[Values], Value]:
    """Return ``min`` or ``max``: ``replaced`` is the order in which the next value is better."""

    def choose(values: Values) -> Value:
        if not values:
            raise CelError(f"{name} called on empty list")
        best = values[0]
        for index, value in enumerate(values):
            if not is_comparable(value):
                raise CelError(NO_SUCH_OVERLOAD)
            if index and _order(best, value) == replaced:
                best = value
        return best

    return choose


def _index_of(values: Values, wanted: Value) -> int:
    return next((index for index, each in enumerate(values) if equal(each, wanted)), -1)


def _last_index_of(values: Values, wanted: Value) -> int:
    for index in range(len(values) - 1, -1, -1):
        if equal(values[index], wanted):
            return index
    return -1


def _slice(values: Values, start: int, end: int) -> Values:
    if start < 0 or end < 0:
        raise CelError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        problem = "start index must be less than or equal to end index"
        raise CelError(f"cannot slice({start}, {end}), {problem}")
    if len(values) < end:
        raise CelError(f"cannot slice({start}, {end}), list is length {len(values)}")
    return values[start:end]


def _flatten(values: Value, depth: Value = None) -> Values:
    if not is_list(values) or type(depth) not in (int, type(None)):
        second = "" if depth is None else type_name(depth)
        raise CelError(f"no such overload: {type_name(values)}.flatten({second})")
    depth = 1 if depth is None else depth
    if depth < 0:
        raise CelError("level must be non-negative")
    flat: Values = list(values)
    for _ in range(depth):
        if not any(is_list(each) for each in flat):
            break
        flat = [each for part in flat for each in (part if is_list(part) else (part,))]
        if len(flat) > MAX_LIST:
            raise LimitExceededError
    return flat


def _range(count: int) -> Values:
    if count > MAX_LIST:
        raise LimitExceededError
    return list(range(count))


def _distinct(values: Values) -> Values:
    _bounded(values, values)
    kept: Values = []
    for value in values:
        if not any(equal(value, each) for each in kept):
            kept.append(value)
    return kept


def _sort(values: Values) -> Values:
    return _sort_by(values, values)


def _sort_by(values: Value, keys: Value) -> Values:
    if not is_list(values) or not is_list(keys):
        raise CelError(NO_SUCH_OVERLOAD)
    if len(values) != len(keys):
        raise CelError(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys "
            f"list, but got {len(values)} and {len(keys)} elements respectively"
        )
    if not values:
        return list(values)
    if not is_comparable(keys[0]):
        raise CelError("list elements must be comparable")
    if len(keys) > 1 and len({type(each) for each in keys}) > 1:
        raise CelError("list elements must have the same type")
    _bounded(keys, keys)

    def order(first: int, second: int) -> int:
        return _order(keys[first], keys[second]) or 0

    return [values[index] for index in sorted(range(len(values)), key=cmp_to_key(order))]


def _sets_contain(values: Values, wanted: Values) -> bool:
    _bounded(values, wanted)
    return all(contained(each, values) for each in wanted)


def _sets_equivalent(first: Values, second: Values) -> bool:
    return _sets_contain(first, second) and _sets_contain(second, first)


def _sets_intersect(first: Values, second: Values) -> bool:
    _bounded(first, second)
    return any(contained(each, second) for each in first)


def _bounded(first: Values, second: Values) -> None:
    if len(first) * len(second) > MAX_PAIRS:
        raise LimitExceededError


def _includes(target: Value, wanted: Value) -> bool:
    if not is_list(target):
        return equal(target, wanted) is True
    for index, each in enumerate(target):
        if index >= MAX_INCLUDED:
            raise CelError(
                f"'includes' function cannot be applied to lists longer than {MAX_INCLUDED} values"
            )
        if equal(each, wanted):
            return True
    return False


def _unwrap(values: Values) -> Values:
    found: Values = []
    for value in values:
        if type(value) is not Optional:
            raise CelError(f"value {shown_value(value)} is not optional")
        if value.present:
            found.append(value.value)
    return found


_COMPARABLE = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_ZEROES: dict[str, Value] = {"int": 0, "uint": Uint(0), "double": 0.0, "duration": Duration(0)}

IMPLEMENTATIONS: dict[str, Value] = {
    **{f"list_{kind}_is_sorted_bool": _is_sorted for kind in _COMPARABLE},
    **{f"list_{kind}_max_{kind}": _chosen("max", -1) for kind in _COMPARABLE},
    **{f"list_{kind}_min_{kind}": _chosen("min", 1) for kind in _COMPARABLE},
    **{f"list_{kind}_sum_{kind}": _sum(zero) for kind, zero in _ZEROES.items()},
    "list_a_index_of_int": _index_of,
    "list_a_last_index_of_int": _last_index_of,
    "list_slice": _slice,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "lists_range": _range,
    "list_reverse": lambda values: values[::-1],
    "list_distinct": _distinct,
    "list_sets_contains_list": _sets_contain,
    "list_sets_equivalent_list": _sets_equivalent,
    "list_sets_intersects_list": _sets_intersect,
    "dra_includes_dyn_dyn": _includes,
    "list_first": lambda values: Optional(True, values[0]) if values else NONE,
    "list_last": lambda values: Optional(True, values[-1]) if values else NONE,
    "optional_unwrap": _unwrap,
    "optional_unwrapOpt": _unwrap,
}

SORT = _sort
SORT_BY_KEYS = _sort_by
