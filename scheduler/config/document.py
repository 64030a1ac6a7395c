"""Parse the text of a file into plain data: YAML or JSON, by the rules of Kubernetes.

What comes out are mappings with text keys, lists, texts, numbers, booleans and null. Which plain
YAML words are numbers or booleans follows the reader that kube-scheduler uses, not PyYAML's own
rules: ``1:30`` and dates are text, ``0o17`` is a number, ``y`` is true.

Nothing in a file can make this costly: its size, its depth and the number of values after
aliases are laid open are capped, and no YAML tag makes an object of a class.

*Source*: k8s.io/apimachinery pkg/runtime/serializer/json (strict); go.yaml.in/yaml/v2 resolve.go.
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

import yaml

from scheduler.config.config_error import ConfigError, Mistake, child, item, shown

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Plain: TypeAlias = "dict[str, Plain] | list[Plain] | str | int | float | bool | None"

MAX_BYTES: Final = 1 << 20
"""What a ConfigMap can hold; nobody's configuration comes near."""

MAX_DEPTH: Final = 64

MAX_VALUES: Final = 50_000
"""Values of a document after its aliases are laid open."""

_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_WORDS: Final[dict[str, bool | None]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF"), False),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}

_INTEGER: Final = re.compile(
    r"(?P<sign>[-+]?)(?:0[xX](?P<hex>[0-9a-fA-F]+)|0[bB](?P<bin>[01]+)"
    r"|0[oO]?(?P<oct>[0-7]+)|(?P<dec>0|[1-9][0-9]*))"
)
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_BASES: Final = {"hex": 16, "bin": 2, "oct": 8, "dec": 10}
_MAX_NUMBER: Final = 64
"""Characters of a number; a longer one is text and then of the wrong type."""

_CORE: Final = "tag:yaml.org,2002:"
_MERGE: Final = "<<"


def read_text(path: Path) -> str:
    """Return the text of a configuration file.

    Raises
    ------
    ConfigError
        If it cannot be read, is too large or is not UTF-8.
    """
    source = str(path)
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError("", f"cannot be read: {error.strerror}", source=source) from error
    if len(raw) > MAX_BYTES:
        raise ConfigError("", f"is larger than {MAX_BYTES} bytes", source=source)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError("", f"is not UTF-8 at byte {error.start}", source=source) from error


def read_document(text: str) -> tuple[Plain, list[Mistake]]:
    """Return what the one document in ``text`` says, and the keys that stand in it twice.

    Parameters
    ----------
    text
        YAML, or JSON if it begins with a brace.

    Returns
    -------
    The data (the first of two equal keys counts) and a mistake for each repeated key.

    Raises
    ------
    ConfigError
        If the text is empty, malformed, too large, too deep, more than one document, or uses
        what no configuration needs: a key that is not text, a tag, an alias of itself.
    """
    if len(text) > MAX_BYTES:
        raise ConfigError("", f"is larger than {MAX_BYTES} bytes")
    if text.lstrip().startswith("{"):
        try:
            return _read_json(text)
        except json.JSONDecodeError:
            pass  # YAML may begin with a brace, too
    try:
        return _Composer(text).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
        raise ConfigError("", f"is not YAML: {where}{error.problem}") from error
    except yaml.YAMLError as error:
        raise ConfigError("", f"is not YAML: {' '.join(str(error).split())}") from error


# --- YAML -------------------------------------------------------------------------------------


class _Composer:
    """Builds data from the parser's events, so that no recursion is deeper than the cap."""

    def __init__(self, text: str) -> None:
        self._events: Iterator[Any] = iter(yaml.parse(text, Loader=_LOADER))
        self._anchors: dict[str, tuple[Plain, int, int]] = {}
        """What each anchor names: the value, how many values it holds, how deep it is."""
        self._mistakes: list[Mistake] = []
        self._values = 0
        self._deepest = 0

    def document(self) -> tuple[Plain, list[Mistake]]:
        next(self._events)  # the start of the stream
        if isinstance(next(self._events), yaml.StreamEndEvent):
            raise ConfigError("", "is empty")
        data = self._value(next(self._events), "", 0)
        next(self._events)  # the end of the document
        if not isinstance(next(self._events), yaml.StreamEndEvent) and not self._rest_is_empty():
            raise ConfigError("", "holds more than one document; split the file")
        if data is None:
            raise ConfigError("", "is empty")
        return data, self._mistakes

    def _rest_is_empty(self) -> bool:
        """Tell whether what follows is a last ``---`` with nothing behind it."""
        first = next(self._events)
        if not (isinstance(first, yaml.ScalarEvent) and first.value == ""):
            return False
        next(self._events)
        return isinstance(next(self._events), yaml.StreamEndEvent)

    def _value(self, event: Any, path: str, depth: int) -> Plain:
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event.anchor, path, depth)
        values_before, deepest_before = self._values, self._deepest
        self._deepest = depth
        self._count(1, depth, path)
        value: Plain
        if isinstance(event, yaml.ScalarEvent):
            value = _scalar(event, path)
        elif isinstance(event, yaml.SequenceStartEvent):
            _refuse_tag(event.tag, "seq", path)
            value = self._sequence(path, depth)
        else:
            _refuse_tag(event.tag, "map", path)
            value = self._mapping(path, depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = (
                value,
                self._values - values_before,
                self._deepest - depth,
            )
        self._deepest = max(self._deepest, deepest_before)
        return value

    def _alias(self, anchor: str | None, path: str, depth: int) -> Plain:
        named = self._anchors.get(anchor or "")
        if named is None:
            raise ConfigError(path, f"the alias *{anchor} names nothing that stands before it")
        value, values, height = named
        self._count(values, depth + height, path)
        return value

    def _count(self, values: int, depth: int, path: str) -> None:
        self._values += values
        self._deepest = max(self._deepest, depth)
        if self._values > MAX_VALUES:
            raise ConfigError(path, f"the file comes to more than {MAX_VALUES} values")
        if depth > MAX_DEPTH:
            raise ConfigError(path, f"is nested deeper than {MAX_DEPTH} levels")

    def _sequence(self, path: str, depth: int) -> Plain:
        values: list[Plain] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            values.append(self._value(event, item(path, len(values)), depth + 1))
        return values

    def _mapping(self, path: str, depth: int) -> Plain:
        values: dict[str, Plain] = {}
        merged: list[Plain] = []
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise ConfigError(path, "has a key that is not text")
            key = event.value
            where = child(path, key)
            value = self._value(next(self._events), where, depth + 1)
            if key == _MERGE and event.implicit[0]:
                merged += value if isinstance(value, list) else [value]
            elif key in values:
                self._mistakes.append(Mistake(where, "stands there twice"))
            else:
                values[key] = value
        for mapping in merged:
            if not isinstance(mapping, dict):
                raise ConfigError(path, f"{_MERGE} merges mappings, not {shown(mapping)}")
            values = {**mapping, **values}
        return values


def _scalar(event: Any, path: str) -> Plain:
    plain, _ = event.implicit
    text: str = event.value
    if event.tag in (None, "!", f"{_CORE}str"):
        return resolve_word(text) if plain and event.tag is None else text
    kind = event.tag.removeprefix(_CORE)
    value = resolve_word(text)
    types: dict[str, tuple[type, ...]] = {
        "int": (int,),
        "float": (int, float),
        "bool": (bool,),
        "null": (type(None),),
    }
    if kind not in types:
        raise ConfigError(path, f"the tag {shown(event.tag)} has no place in a configuration")
    if not isinstance(value, types[kind]) or (isinstance(value, bool) and kind != "bool"):
        raise ConfigError(path, f"{shown(text)} is tagged !!{kind} and is none")
    return value


def _refuse_tag(tag: str | None, kind: str, path: str) -> None:
    if tag not in (None, "!", _CORE + kind):
        raise ConfigError(path, f"the tag {shown(tag)} has no place in a configuration")


def resolve_word(text: str) -> str | int | float | bool | None:
    """Return what an unquoted word means."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789" or len(text) > _MAX_NUMBER:
        return text
    number = text if text[0] == "." else text.replace("_", "")
    if (found := _INTEGER.fullmatch(number)) is not None:
        base = found.lastgroup or "dec"
        value = int(found[base], _BASES[base])
        return -value if found["sign"] == "-" else value
    if _FLOAT.fullmatch(number) is not None and math.isfinite(value_f := float(number)):
        return value_f
    return text


# --- JSON -------------------------------------------------------------------------------------


class _Pairs(list[tuple[str, Any]]):
    """A JSON object before its keys are looked at."""


def _read_json(text: str) -> tuple[Plain, list[Mistake]]:
    try:
        raw = json.loads(
            text,
            object_pairs_hook=_Pairs,
            parse_int=_json_integer,
            parse_float=_json_float,
            parse_constant=_refuse_constant,
        )
    except RecursionError:
        raise ConfigError("", f"is nested deeper than {MAX_DEPTH} levels") from None
    mistakes: list[Mistake] = []
    return _laid_open(raw, "", 0, mistakes), mistakes


def _laid_open(raw: Any, path: str, depth: int, mistakes: list[Mistake]) -> Plain:
    if depth > MAX_DEPTH:
        raise ConfigError(path, f"is nested deeper than {MAX_DEPTH} levels")
    if isinstance(raw, _Pairs):
        values: dict[str, Plain] = {}
        for key, value in raw:
            where = child(path, key)
            if key in values:
                mistakes.append(Mistake(where, "stands there twice"))
            else:
                values[key] = _laid_open(value, where, depth + 1, mistakes)
        return values
    if isinstance(raw, list):
        return [
            _laid_open(value, item(path, index), depth + 1, mistakes)
            for index, value in enumerate(raw)
        ]
    value_: Plain = raw
    return value_


def _json_integer(text: str) -> int | str:
    return int(text) if len(text) <= _MAX_NUMBER else text


def _json_float(text: str) -> float | str:
    value = float(text)
    return value if math.isfinite(value) else text


def _refuse_constant(text: str) -> NoReturn:
    raise ConfigError("", f"is not JSON: {text} is no number there")
