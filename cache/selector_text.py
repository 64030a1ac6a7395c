"""Read a label selector as ``kubectl --selector`` writes it: ``pool=a,zone in (x,y),!spot``.

*Source*: k8s.io/apimachinery pkg/labels/selector.go, Parse (0.36).
"""

from __future__ import annotations

import re
from typing import Final

from cache.label_selectors import (
    DOES_NOT_EXIST,
    EXISTS,
    GT,
    IN,
    LT,
    NOT_IN,
    Requirement,
    Selector,
    is_label_value,
    parse_int64,
)
from cache.resources import is_qualified_name

_SET: Final = re.compile(r"(\S+)\s+(in|notin)\s*\(([^()]*)\)")
_COMPARED: Final = re.compile(r"([^\s=!<>]+)\s*(==|=|!=|>|<)\s*([^\s=!<>]*)")
_PRESENT: Final = re.compile(r"(!?)\s*([^\s=!<>]+)")
_COMMAS: Final = re.compile(r",(?![^()]*\))")
"""Commas that are not within parentheses."""

_OPERATORS: Final = {"=": IN, "==": IN, "!=": NOT_IN, ">": GT, "<": LT, "in": IN, "notin": NOT_IN}


def parse_selector(text: str) -> Selector:
    """Return the selector; the empty text selects everything.

    Raises
    ------
    ValueError
        When it is none; the message names the part that cannot be read.
    """
    if not text.strip():
        return Selector()
    return Selector(_requirement(part.strip()) for part in _COMMAS.split(text))


def _requirement(part: str) -> Requirement:
    if matched := _SET.fullmatch(part):
        key, operator, listed = matched.groups()
        values = frozenset(value.strip() for value in listed.split(","))
        return _checked(part, key, _OPERATORS[operator], values)
    if matched := _COMPARED.fullmatch(part):
        key, operator, value = matched.groups()
        return _checked(part, key, _OPERATORS[operator], frozenset((value,)))
    if matched := _PRESENT.fullmatch(part):
        return _checked(part, matched[2], DOES_NOT_EXIST if matched[1] else EXISTS, frozenset())
    raise ValueError(f"{part!r} is no requirement of a label selector")


def _checked(part: str, key: str, operator: str, values: frozenset[str]) -> Requirement:
    if not is_qualified_name(key):
        raise ValueError(f"{part!r}: {key!r} is no key of a label")
    for value in values:
        if operator in (GT, LT) and parse_int64(value) is None:
            raise ValueError(f"{part!r}: {value!r} is no integer")
        if not is_label_value(value):
            raise ValueError(f"{part!r}: {value!r} is no value of a label")
    return Requirement(key, operator, values)
