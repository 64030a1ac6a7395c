"""Regular expressions: RE2, whose time is linear in the text.

*Source*: k8s.io/apiserver pkg/cel/library/regex.go (0.36); github.com/google/cel-go
common/types/string.go, ``Match`` (0.26).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import re2

from plugins.cel.errors import CelError, CompileError
from plugins.cel.values import Value

MAX_PATTERN_BYTES = 10_240
"""Longest pattern: as long as an expression may be."""

MAX_PROGRAM_BYTES = 1 << 20
"""Memory of one compiled pattern.

# Differs: Go bounds a pattern by its repetitions instead; what it takes needs less than this.
"""


class BadPatternError(ValueError):
    """The text is no regular expression."""


@lru_cache(maxsize=256)
def compiled(pattern: str) -> re2._Regexp[str]:
    """Return the compiled pattern.

    Raises
    ------
    BadPatternError
        It cannot be compiled.
    """
    if len(pattern) > MAX_PATTERN_BYTES:
        raise BadPatternError("error parsing regexp: expression too large")
    options = re2.Options()
    options.max_mem = MAX_PROGRAM_BYTES
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        detail = error.args[0]
        text = detail.decode(errors="replace") if isinstance(detail, bytes) else str(detail)
        raise BadPatternError(f"error parsing regexp: {text}") from None


def _run(pattern: str, prefix: str) -> re2._Regexp[str]:
    try:
        return compiled(pattern)
    except BadPatternError as error:
        raise CelError(f"{prefix}{error}") from None


def matches(text: Value, pattern: Value) -> bool:
    """Report whether the pattern occurs in the text."""
    if type(text) is not str or type(pattern) is not str:
        raise CelError("no such overload")
    return _run(pattern, "").search(text) is not None


def _first(expression: re2._Regexp[str], text: str) -> str:
    match = expression.search(text)
    return "" if match is None else str(match.group(0))


def _all(expression: re2._Regexp[str], text: str, limit: int = -1) -> list[Value]:
    """Return all matches that do not overlap; an empty one right after another does not count."""
    found: list[Value] = []
    end = -1
    for match in expression.finditer(text):
        if limit >= 0 and len(found) >= limit:
            break
        if match.start() == match.end() == end:
            continue
        end = match.end()
        found.append(str(match.group(0)))
    return found


def _find(text: str, pattern: str) -> str:
    return _first(_run(pattern, "Illegal regex: "), text)


def _find_all(text: str, pattern: str, limit: int = -1) -> list[Value]:
    return _all(_run(pattern, "Illegal regex: "), text, limit)


Function = Callable[..., Value]


def _constant(pattern: Value) -> re2._Regexp[str] | None:
    if type(pattern) is not str:
        return None
    try:
        return compiled(pattern)
    except BadPatternError as error:
        raise CompileError(f"program instantiation failed: {error}") from None


def _constant_matches(pattern: Value, otherwise: Function) -> Function:
    expression = _constant(pattern)
    if expression is None:
        return otherwise
    search = expression.search

    def run(text: Value, _: Value) -> bool:
        if type(text) is not str:
            raise CelError("no such overload")
        return search(text) is not None

    return run


def _constant_find(pattern: Value, otherwise: Function) -> Function:
    expression = _constant(pattern)
    if expression is None:
        return otherwise

    def run(text: Value, _: Value) -> str:
        if type(text) is not str:
            raise CelError("no such overload")
        return _first(expression, text)

    return run


def _constant_find_all(pattern: Value, otherwise: Function) -> Function:
    expression = _constant(pattern)
    if expression is None:
        return otherwise

    def run(text: Value, _: Value, limit: Value = -1) -> list[Value]:
        if type(text) is not str or type(limit) is not int:
            raise CelError("no such overload")
        return _all(expression, text, limit)

    return run


IMPLEMENTATIONS: dict[str, Value] = {
    "string_find_string": _find,
    "string_find_all_string": _find_all,
    "string_find_all_string_int": _find_all,
}

CONSTANT_PATTERNS: dict[str, Callable[[Value, Function], Function]] = {
    "matches": _constant_matches,
    "find": _constant_find,
    "findAll": _constant_find_all,
}
"""Functions whose pattern is compiled with the expression, where it is a constant."""
