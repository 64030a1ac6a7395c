"""Limits the nesting of JSON: values that are nested too deeply are replaced by a text.

The API server accepts ten thousand levels in fields without a schema, such as the arguments of a
plugin. Python's parsers raise RecursionError at about a thousand levels, for a whole list.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from scheduler.config.config_error import child, item

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_LEVELS: Final = 100
"""Maximum nesting of mappings and lists in a spec; a profile needs about ten levels."""

TOO_DEEP: Final = f"berth reads at most {MAX_LEVELS} levels"

_ABOVE: Final = 3
"""Levels above a spec in a list: the list, its items, the object."""

_TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[{]|[\]}]')


def shallow(text: bytes) -> bytes:
    """Return a JSON list of objects with `TOO_DEEP` for each value below `MAX_LEVELS` of a spec."""
    deepest = MAX_LEVELS + _ABOVE
    parts: list[bytes] = []
    depth = start = 0
    for token in _TOKEN.finditer(text):
        if token[0] in (b"[", b"{"):
            depth += 1
            if depth == deepest + 1:
                parts += (text[start : token.start()], msgspec.json.encode(TOO_DEEP))
        elif token[0] in (b"]", b"}"):
            if depth == deepest + 1:
                start = token.end()
            depth -= 1
    return b"".join((*parts, text[start:]))


def too_deep(data: object, path: str, levels: int = MAX_LEVELS) -> Iterator[str]:
    """Yield the paths of values that :func:`shallow` replaces, or has replaced."""
    if data == TOO_DEEP or (isinstance(data, (dict, list)) and not levels):
        yield path
    elif isinstance(data, dict):
        for key, value in data.items():
            yield from too_deep(value, child(path, key), levels - 1)
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from too_deep(value, item(path, index), levels - 1)
