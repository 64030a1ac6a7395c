"""Lists and maps that an expression writes, and membership in constant lists.

*Source*: github.com/google/cel-go interpreter/interpretable.go, decorators.go (0.26).
"""

from __future__ import annotations

from typing import Any

from plugins.cel.attributes import COST, Code, Constant, Frame, Part, Run
from plugins.cel.cost import LIST_COST, MAP_COST
from plugins.cel.errors import CelError
from plugins.cel.go_text import shown_value
from plugins.cel.values import (
    INT_MAX,
    UINT_MAX,
    Map,
    Optional,
    Uint,
    Value,
    canonical,
    check_hashable,
)


def list_run(parts: list[Part], optional: frozenset[int]) -> Part:
    """Return the part that builds a list; one of constants is built once."""
    if all(isinstance(each, Constant) for each in parts) and not optional:
        return Constant([each.value for each in parts if isinstance(each, Constant)])
    elements = tuple((part.run(), index in optional) for index, part in enumerate(parts))

    def build(frame: Frame) -> Value:
        frame[COST] += LIST_COST
        built = []
        for run, may_miss in elements:
            value = run(frame)
            if may_miss:
                if type(value) is not Optional:
                    raise CelError(
                        "cannot initialize optional list element from non-optional value "
                        f"{shown_value(value)}"
                    )
                if not value.present:
                    continue
                value = value.value
            built.append(value)
        return built

    return Code(build)


def map_run(entries: list[tuple[Part, Part, bool]]) -> Part:
    """Return the part that builds a map; one of constants is built once."""
    runs = tuple((key.run(), value.run(), optional) for key, value, optional in entries)
    constant = all(
        isinstance(key, Constant) and isinstance(value, Constant) and not optional
        for key, value, optional in entries
    )
    if constant:
        return Constant(_built([0], runs))

    def build(frame: Frame) -> Value:
        frame[COST] += MAP_COST
        return _built(frame, runs)

    return Code(build)


def _built(frame: Frame, runs: tuple[tuple[Run, Run, bool], ...]) -> Map:
    built: dict[Any, Value] = {}
    for key_run, value_run, optional in runs:
        key = key_run(frame)
        value = value_run(frame)
        if optional:
            if type(value) is not Optional:
                raise CelError(
                    f"cannot initialize optional entry '{shown_value(key)}' from non-optional "
                    f"value {shown_value(value)}"
                )
            if not value.present:
                built.pop(canonical(key), None)
                continue
            value = value.value
        built[canonical(key)] = value
    return Map(built)


def member_of_constants(run: Run, values: list[Value]) -> Part | None:
    """Return the part that looks a value up among constants, or None if they are no scalars.

    It costs nothing, whatever their number. A number is found in each of the types that hold it.
    """
    if not values:
        return Constant(False)
    members: set[Any] = set()
    for value in values:
        if type(value) not in (str, int, bool, Uint, float):
            return None
        members.add(canonical(value))
        members.update(canonical(each) for each in _as_other_numbers(value))

    def member(frame: Frame) -> bool:
        value = run(frame)
        kind = type(value)
        if kind is str:
            return value in members
        check_hashable(value)
        return kind in (int, bool, Uint, float) and (kind, value) in members

    return Code(member)


def _as_other_numbers(value: Value) -> list[Value]:
    if type(value) is int:
        return [float(value), *([Uint(value)] if value >= 0 else [])]
    if type(value) is Uint:
        return [float(value), *([int(value)] if value <= INT_MAX else [])]
    if type(value) is float and value.is_integer() and abs(value) < 2.0**64:
        whole = int(value)
        found: list[Value] = []
        if -INT_MAX <= whole <= INT_MAX:
            found.append(whole)
        if 0 <= whole <= UINT_MAX:
            found.append(Uint(whole))
        return found
    return []
