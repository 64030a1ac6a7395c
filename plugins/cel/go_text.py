"""Values as Go prints them: they occur in the texts of errors."""

from __future__ import annotations

from plugins.cel.go_numbers import format_float
from plugins.cel.values import (
    Duration,
    Map,
    Optional,
    Timestamp,
    TypeValue,
    Uint,
    Value,
    is_list,
    is_map,
)
from plugins.cel.weights import nested_weight

_GO_TYPES: dict[str, str] = {
    "int": "types.Int",
    "bool": "types.Bool",
    "Uint": "types.Uint",
    "float": "types.Double",
    "str": "types.String",
    "bytes": "types.Bytes",
    "NoneType": "types.Null",
    "Timestamp": "types.Timestamp",
    "Duration": "types.Duration",
    "TypeValue": "*types.Type",
    "Optional": "*types.Optional",
    "list": "*types.baseList",
    "MutableList": "*types.mutableList",
    "Map": "*types.baseMap",
    "DomainMap": "cel.mapper",
    "MutableMap": "*types.mutableMap",
    "Quantity": "cel.Quantity",
    "Semver": "cel.Semver",
    "Url": "cel.URL",
    "Ip": "cel.IP",
    "Cidr": "cel.CIDR",
    "NamedFormat": "cel.Format",
}

MAX_SHOWN = 4096
"""Longest text of a value in an error."""


def go_type(value: Value) -> str:
    """Return the name of the Go type that holds such a value in cel-go."""
    name = type(value).__name__
    return _GO_TYPES.get(name, name)


def shown_value(value: Value) -> str:
    """Return the value as ``%v`` prints it, shortened where it is very long."""
    if nested_weight(value) > MAX_SHOWN:
        return "..."
    text = _shown(value, 0)
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "..."


def _shown(value: Value, depth: int) -> str:
    if depth > 20:
        return "..."
    if value is True:
        return "true"
    if value is False:
        return "false"
    if value is None:
        return "null"
    if isinstance(value, str):
        return value[: MAX_SHOWN + 1]
    if isinstance(value, float):
        return format_float(value)
    if isinstance(value, int | Uint):
        return str(int(value))
    if isinstance(value, bytes):
        return "[" + " ".join(str(each) for each in value[:MAX_SHOWN]) + "]"
    if is_list(value):
        return "[" + ", ".join(_shown(each, depth + 1) for each in value[:MAX_SHOWN]) + "]"
    if is_map(value):
        return _shown_map(value, depth)
    if isinstance(value, Optional):
        return f"optional({_shown(value.value, depth + 1)})" if value.present else "optional.none"
    if isinstance(value, TypeValue):
        return value.name
    if isinstance(value, Timestamp | Duration):
        return str(value.nanos)
    return str(value)


def _shown_map(value: Map, depth: int) -> str:
    pairs = (
        f"{_shown(key, depth + 1)}: {_shown(value.find(key), depth + 1)}"
        for key in value.each_key()
    )
    return "{" + ", ".join(pairs) + "}"


_ESCAPED = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}


def go_quoted(text: str) -> str:
    """Return the text as ``%q`` prints it."""
    return '"' + "".join(map(_quoted_char, text)) + '"'


def _quoted_char(char: str) -> str:
    if char in _ESCAPED:
        return _ESCAPED[char]
    if char == " " or (char.isprintable() and not 0xD800 <= ord(char) <= 0xDFFF):
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
