"""Regular expressions: RE2, whose time is linear in the text.

*Source*: k8s.io/apiserver pkg/cel/library/regex.go (0.36); github.com/google/cel-go
common/types/string.go, ``Match`` (0.26).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

import re2

from plugins.cel.errors import CelError, CompileError
from plugins.cel.values import Value

MAX_PATTERN_BYTES = 10_240
"""Longest pattern: as long as an expression may be."""

MAX_PATTERN_MEMORY = 256 << 10
"""Memory of one compiled pattern.

# Differs: Go bounds a pattern by its repetitions instead; what it takes needs less than this.
"""


class BadPatternError(ValueError):
    """The text is no regular expression."""


_GO_ERRORS = {
    "no argument for repetition operator": "missing argument to repetition operator",
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "bad repetition operator": "invalid nested repetition operator",
    "trailing \\": "trailing backslash at end of expression",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}
"""How Go words what RE2 says.

*Source*: Go regexp/syntax/parse.go (1.26).
"""

_PIECE = re.compile(r"\\Q(?s:.*?)(?:\\E|\Z)|\\?(?s:.)")


def _error(text: str, part: str) -> BadPatternError:
    return BadPatternError(f"error parsing regexp: {_GO_ERRORS.get(text, text)}: `{part}`")


@lru_cache(maxsize=64)
def compiled(pattern: str) -> re2._Regexp[bytes]:
    """Return the compiled pattern.

    Raises
    ------
    BadPatternError
        It cannot be compiled.
    """
    if len(pattern) > MAX_PATTERN_BYTES:
        raise _error("expression too large", "")
    options = re2.Options()
    options.max_mem = MAX_PATTERN_MEMORY
    options.log_errors = False
    try:
        expression = re2.compile(pattern.encode("utf-8", "replace"), options)
    except re2.error as error:
        detail = error.args[0]
        text = detail.decode(errors="replace") if isinstance(detail, bytes) else str(detail)
        message, _, part = text.partition(": ")
        raise _error(message, part) from None
    if "\\C" in _PIECE.findall(pattern):
        raise _error("invalid escape sequence", "\\C")  # RE2 takes it for any byte
    return expression


def _run(pattern: str, prefix: str) -> re2._Regexp[bytes]:
    try:
        return compiled(pattern)
    except BadPatternError as error:
        raise CelError(f"{prefix}{error}") from None


def matches(text: Value, pattern: Value) -> bool:
    """Report whether the pattern occurs in the text."""
    if type(text) is not str or type(pattern) is not str:
        raise CelError("no such overload")
    return _run(pattern, "").search(text.encode()) is not None


def _first(expression: re2._Regexp[bytes], text: str) -> str:
    match = expression.search(text.encode())
    return "" if match is None else match.group(0).decode(errors="replace")


_INSIDE = frozenset(bytes([byte]) for byte in range(0x80, 0xC0))
"""Bytes inside a character: RE2 finds empty matches before them, Go does not."""


def _all(expression: re2._Regexp[bytes], text: str, limit: int = -1) -> list[Value]:
    """Return all matches that do not overlap; an empty one right after another does not count."""
    found: list[Value] = []
    end = -1
    data = text.encode()
    for match in expression.finditer(data):
        if limit >= 0 and len(found) >= limit:
            break
        start = match.start()
        if start == match.end() and (start == end or data[start : start + 1] in _INSIDE):
            continue
        end = match.end()
        found.append(match.group(0).decode(errors="replace"))
    return found


def _find(text: str, pattern: str) -> str:
    return _first(_run(pattern, "Illegal regex: "), text)


def _find_all(text: str, pattern: str, limit: int = -1) -> list[Value]:
    return _all(_run(pattern, "Illegal regex: "), text, limit)


Function = Callable[..., Value]


def _constant(pattern: str) -> re2._Regexp[bytes]:
    try:
        return compiled(pattern)
    except BadPatternError as error:
        raise CompileError(f"program instantiation failed: {error}") from None


def _constant_matches(pattern: str) -> Function:
    expression = _constant(pattern)
    search = expression.search

    def run(text: Value, _: Value) -> bool:
        if type(text) is not str:
            raise CelError("no such overload")
        return search(text.encode()) is not None

    return run


def _constant_find(pattern: str) -> Function:
    expression = _constant(pattern)

    def run(text: Value, _: Value) -> str:
        if type(text) is not str:
            raise CelError("no such overload")
        return _first(expression, text)

    return run


def _constant_find_all(pattern: str) -> Function:
    expression = _constant(pattern)

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

CONSTANT_PATTERNS: dict[str, Callable[[str], Function]] = {
    "matches": _constant_matches,
    "find": _constant_find,
    "findAll": _constant_find_all,
}
"""Functions whose pattern is compiled with the expression, where it is a constant."""
