"""All implementations, by the names of their overloads."""

from __future__ import annotations

from plugins.cel import (
    addresses,
    conversions,
    formatting,
    lists,
    named_formats,
    optionals,
    quantity,
    regular_expressions,
    semver,
    strings,
    times,
    urls,
)
from plugins.cel.operators import SINGLETONS as OPERATORS
from plugins.cel.operators import Singleton
from plugins.cel.values import MutableList, Value

IMPLEMENTATIONS: dict[str, Value] = {
    **conversions.IMPLEMENTATIONS,
    **times.IMPLEMENTATIONS,
    **strings.IMPLEMENTATIONS,
    **lists.IMPLEMENTATIONS,
    **optionals.IMPLEMENTATIONS,
    **regular_expressions.IMPLEMENTATIONS,
    **quantity.IMPLEMENTATIONS,
    **semver.IMPLEMENTATIONS,
    **addresses.IMPLEMENTATIONS,
    **urls.IMPLEMENTATIONS,
    **named_formats.IMPLEMENTATIONS,
    **formatting.IMPLEMENTATIONS,
}

_LISTS = frozenset({list, MutableList})

SINGLETONS: dict[str, Singleton] = {
    **OPERATORS,
    "matches": Singleton(regular_expressions.matches, frozenset({str})),
    "sort": Singleton(lists.SORT, _LISTS),
    "@sortByAssociatedKeys": Singleton(lists.SORT_BY_KEYS, _LISTS),
}

UNGUARDED = frozenset({"contains", "endsWith", "startsWith", "flatten"})
"""Functions that look at the types of their arguments themselves."""

VARIADIC = frozenset({"string_format"})
"""Overloads where an error of one argument keeps the next ones from being evaluated."""
