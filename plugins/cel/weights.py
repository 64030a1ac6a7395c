"""What lies inside a value: comparing or printing it takes time that has no cost in cel-go.

A list may hold another one many times, so that few words make a value of any size.
"""

from __future__ import annotations

from plugins.cel.values import Optional, Value, is_list, is_map

MAX_WEIGHT = 1_000_000
"""Where counting ends: more than an evaluation may do without paying for it."""

WEIGHED = frozenset(
    {
        "_==_",
        "_!=_",
        "@in",
        "indexOf",
        "lastIndexOf",
        "isSorted",
        "sum",
        "min",
        "max",
        "distinct",
        "sets.contains",
        "sets.equivalent",
        "sets.intersects",
        "includes",
        "format",
    }
)
"""Functions that look into the lists and maps inside their arguments."""


def _inner(value: Value) -> list[Value]:
    """Return the lists, maps and optional values right inside a value."""
    if is_list(value):
        found = value
    elif is_map(value):
        found = value.entries.values()
    elif type(value) is Optional:
        found = [value.value]
    else:
        return []
    return [each for each in found if is_list(each) or is_map(each) or type(each) is Optional]


def _size(value: Value) -> int:
    if is_list(value):
        return len(value)
    return len(value.entries) if is_map(value) else 1


def nested_weight(value: Value) -> int:
    """Return the number of elements in all lists and maps inside a value; its own do not count."""
    pending = _inner(value)
    total = 0
    while pending and total <= MAX_WEIGHT:
        inner = pending.pop()
        total += 1 + _size(inner)
        pending.extend(_inner(inner))
    return total


def weight_of_call(given: tuple[Value, ...]) -> int:
    """Return a bound of what a call looks at, besides what its cost counts."""
    weights = [nested_weight(each) for each in given]
    if not any(weights):
        return 0
    longest = max(_size(each) for each in given)
    return sum(weights) * max(1, longest)
