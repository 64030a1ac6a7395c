"""What a call costs while an expression runs.

*Source*: github.com/google/cel-go interpreter/runtimecost.go, ext/lists.go, ext/sets.go (0.26);
k8s.io/apiserver pkg/cel/library/cost.go, ``CostEstimator.CallCost`` (0.36).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from plugins.cel.errors import BrokenCallError, CelError
from plugins.cel.go_text import go_type
from plugins.cel.values import Opaque, Value, actual_size, is_list, is_map
from plugins.cel.weights import nested_weight

COST_LIMIT = 1_000_000
"""Budget of one evaluation.

*Source*: k8s.io/api resource/v1 ``CELSelectorExpressionMaxCost`` (0.36).
"""

ATTRIBUTE_COST = 1
LIST_COST = 10
MAP_COST = 30

Cost: TypeAlias = Callable[[tuple[Value, ...], Value], int]
"""The cost of a call by its arguments and its result (an error counts as a value of size 1)."""


def tenth(size: int) -> int:
    """Return the cost of looking at that many characters: a tenth, rounded up."""
    return -(-size // 10)


def _quarter(size: int) -> int:
    return -(-size // 4)


def _traversal(argument: int, factor: int = 1) -> Cost:
    return lambda given, _: tenth(actual_size(given[argument]) * factor)


def _smaller(given: tuple[Value, ...], _: Value) -> int:
    return tenth(min(actual_size(given[0]), actual_size(given[1])))


def _both(given: tuple[Value, ...], _: Value) -> int:
    return tenth(actual_size(given[0]) + actual_size(given[1]))


def _search(given: tuple[Value, ...], _: Value) -> int:
    return tenth(actual_size(given[0])) * tenth(actual_size(given[1]))


def _pattern(given: tuple[Value, ...], _: Value) -> int:
    return tenth(1 + actual_size(given[0])) * _quarter(actual_size(given[1]))


def _equals(given: tuple[Value, ...], result: Value) -> int:
    return 1 if isinstance(given[0], Opaque) else _smaller(given, result)


def walk_cost(value: Value) -> int:
    """Return the cost of looking at each value in a list or map, and in those inside it."""
    kind = type(value)
    if kind is str:
        return len(value.encode("utf-8", "surrogatepass")) // 10
    if kind is bytes:
        return len(value) // 10
    if is_list(value):
        return sum(walk_cost(each) for each in value)
    if is_map(value):
        return sum(walk_cost(key) + walk_cost(value.find(key)) for key in value.each_key())
    return 1


def _walk(given: tuple[Value, ...], _: Value) -> int:
    if nested_weight(given[0]) > COST_LIMIT:
        return COST_LIMIT + 1
    return walk_cost(given[0])


def _result_size(_: tuple[Value, ...], result: Value) -> int:
    return actual_size(result) + 1 + LIST_COST


def _broken(value: Value, wanted: str, method: str) -> BrokenCallError:
    """Return the failure of a cost that takes its argument for what it is not."""
    kind = "*types.Err" if isinstance(value, CelError) else go_type(value)
    return BrokenCallError(f"internal error: interface conversion: {kind} is not {wanted}{method}")


def _flatten(given: tuple[Value, ...], _: Value) -> int:
    depth = 1
    if len(given) == 2:
        if type(given[1]) is not int:
            raise _broken(given[1], "types.Int", "")
        depth = given[1]
    # A depth below zero wraps around in cel-go, which makes the sum smaller.
    return actual_size(given[0]) * depth + 1 + LIST_COST


def _pairs(argument: int) -> Cost:
    def cost(given: tuple[Value, ...], _: Value) -> int:
        compared = given[argument]
        if not is_list(compared):
            raise _broken(compared, "traits.Lister", ": missing method Add")
        size = len(compared)
        tenths = 20
        if compared and type(compared[0]) in (str, bytes):
            tenths = 21
        return size * size * tenths // 10 + 1 + LIST_COST

    return cost


def _product(factor: int) -> Cost:
    return lambda given, _: 1 + actual_size(given[0]) * actual_size(given[1]) * factor


def _contains_ip(parsed: bool) -> Cost:
    def cost(given: tuple[Value, ...], _: Value) -> int:
        size = tenth(2 * actual_size(given[0]))
        return size + (tenth(actual_size(given[1])) if parsed else 0)

    return cost


def _contains_cidr(parsed: bool) -> Cost:
    def cost(given: tuple[Value, ...], _: Value) -> int:
        prefix = actual_size(given[0])
        size = tenth(2 * prefix) + tenth(prefix) + 1
        return size + (tenth(actual_size(given[1])) if parsed else 0)

    return cost


def _validate(given: tuple[Value, ...], _: Value) -> int:
    pattern = getattr(given[0], "pattern_size", None)
    if not isinstance(pattern, int):
        return 1
    return tenth(1 + actual_size(given[1])) * _quarter(pattern)


_BY_FUNCTION: dict[str, Cost] = {
    "isSorted": _walk,
    "sum": _walk,
    "max": _walk,
    "min": _walk,
    "indexOf": _walk,
    "lastIndexOf": _walk,
    "url": _traversal(0),
    "lowerAscii": _traversal(0),
    "upperAscii": _traversal(0),
    "substring": _traversal(0),
    "trim": _traversal(0),
    "replace": _traversal(0, 2),
    "split": _traversal(0, 2),
    "join": lambda _, result: tenth(2 * actual_size(result)),
    "find": _pattern,
    "findAll": _pattern,
    "cidr": _traversal(0),
    "isIP": _traversal(0),
    "isCIDR": _traversal(0),
    "ip.isCanonical": _traversal(0, 2),
    "quantity": _traversal(0),
    "isQuantity": _traversal(0),
    "semver": _traversal(0),
    "isSemver": _traversal(0),
    "validate": _validate,
    "_==_": _equals,
    "_!=_": _smaller,
}

_BY_OVERLOAD: dict[str, Cost] = {
    "starts_with_string": _traversal(0),
    "ends_with_string": _traversal(0),
    "string_to_bytes": _traversal(0),
    "bytes_to_string": _traversal(0),
    "strings_quote": _traversal(0),
    "string_format": _traversal(0),
    "in_list": lambda given, _: actual_size(given[1]),
    "add_string": _both,
    "add_bytes": _both,
    "matches_string": _pattern,
    "contains_string": _search,
    "string_to_ip": _traversal(0),
    "cidr_contains_ip_string": _contains_ip(True),
    "cidr_contains_ip_ip": _contains_ip(False),
    "cidr_contains_cidr_string": _contains_cidr(True),
    "cidr_contains_cidr": _contains_cidr(False),
    "list_slice": _result_size,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "lists_range": _result_size,
    "list_reverse": _result_size,
    "list_distinct": _pairs(0),
    "list_sets_contains_list": _product(1),
    "list_sets_intersects_list": _product(1),
    "list_sets_equivalent_list": _product(2),
    **{
        f"{word}_{kind}": _smaller
        for word in ("less", "less_equals", "greater", "greater_equals")
        for kind in ("string", "bytes")
    },
}


def call_cost(function: str, overload: str) -> Cost | None:
    """Return what a call of the overload costs, or None where that is always 1.

    ``overload`` is empty where the checker found several that fit.
    """
    if overload.startswith("list_") and overload.endswith("_sort"):
        return _pairs(0)
    if overload.endswith("_sortByAssociatedKeys"):
        return _pairs(1)
    found = _BY_OVERLOAD.get(overload)
    if found is not None:
        return found
    return _BY_FUNCTION.get(function)
