"""Functions of strings.

*Source*: github.com/google/cel-go ext/strings.go, version 2, and common/types/string.go (0.26).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plugins.cel.errors import CelError, LimitExceededError
from plugins.cel.go_text import shown_value

if TYPE_CHECKING:
    from plugins.cel.values import Value

MAX_TEXT = 10_000_000
"""Longest text that is built: one that is longer costs more than the budget to build."""

_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009"
    "\u200a\u2028\u2029\u202f\u205f\u3000"
)


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise CelError(f"index out of range: {index}")
    return text[index : index + 1]


def _index_of(text: str, part: str, offset: int = 0) -> int:
    if not part:
        return offset
    if offset < 0:
        raise CelError(f"index out of range: {offset}")
    return text.find(part, offset) if offset < len(text) else -1


def _last_index_of(text: str, part: str) -> int:
    if not part:
        return len(text)
    if len(text.encode()) < len(part.encode()):
        return -1
    return _last_index_from(text, part, len(text) - 1)


def _last_index_from(text: str, part: str, offset: int) -> int:
    if not part:
        return offset
    if offset < 0:
        raise CelError(f"index out of range: {offset}")
    if offset >= len(text):
        return -1
    return text.rfind(part, 0, offset + len(part))


_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    if count == 0 or old == new:
        return text
    times = text.count(old) if old else len(text) + 1
    if count >= 0:
        times = min(times, count)
    if len(text) + times * len(new) > MAX_TEXT:
        raise LimitExceededError
    return text.replace(old, new, times)


def _split(text: str, separator: str, count: int = -1) -> list[Value]:
    if count == 0:
        return []
    if not separator:
        if count < 0 or count >= len(text):
            return list(text)
        return [*text[: count - 1], text[count - 1 :]]
    return list(text.split(separator, count - 1 if count > 0 else -1))


def _substring(text: str, start: int, end: int | None = None) -> str:
    if end is not None and start > end:
        raise CelError(f"invalid substring range. start: {start}, end: {end}")
    if not 0 <= start <= len(text):
        raise CelError(f"index out of range: {start}")
    if end is not None and not 0 <= end <= len(text):
        raise CelError(f"index out of range: {end}")
    return text[start:end]


def _join(parts: list[Value], separator: str = "") -> str:
    length = max(0, len(parts) - 1) * len(separator)
    for part in parts:
        if type(part) is not str:
            raise CelError(f"join: invalid input: {shown_value(part)}")
        length += len(part)
        if length > MAX_TEXT:
            raise LimitExceededError
    return separator.join(parts)


_QUOTED = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
)


IMPLEMENTATIONS: dict[str, Value] = {
    "contains_string": lambda text, part: _texts(text, part) and part in text,
    "ends_with_string": lambda text, part: _texts(text, part) and text.endswith(part),
    "starts_with_string": lambda text, part: _texts(text, part) and text.startswith(part),
    "string_char_at_int": _char_at,
    "string_index_of_string": _index_of,
    "string_index_of_string_int": _index_of,
    "string_last_index_of_string": _last_index_of,
    "string_last_index_of_string_int": _last_index_from,
    "string_lower_ascii": lambda text: text.translate(_LOWER),
    "string_upper_ascii": lambda text: text.translate(_UPPER),
    "string_replace_string_string": _replace,
    "string_replace_string_string_int": _replace,
    "string_split_string": _split,
    "string_split_string_int": _split,
    "string_substring_int": _substring,
    "string_substring_int_int": _substring,
    "string_trim": lambda text: text.strip(_SPACE),
    "list_join": _join,
    "list_join_string": _join,
    "strings_quote": lambda text: f'"{text.translate(_QUOTED)}"',
}


def _texts(text: Value, part: Value) -> bool:
    """Report that both are strings: these functions check their arguments themselves."""
    if type(text) is str and type(part) is str:
        return True
    raise CelError("no such overload")
