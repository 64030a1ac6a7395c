"""Comprehensions: loops over lists and maps, and variables bound to a value.

*Source*: github.com/google/cel-go interpreter/interpretable.go, ``evalFold`` and ``folder`` (0.26).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from plugins.cel.attributes import COST, WORK, Frame, Run, immutable
from plugins.cel.cost import COST_LIMIT
from plugins.cel.errors import CelError, LimitExceededError
from plugins.cel.go_text import go_type
from plugins.cel.values import (
    Map,
    MutableList,
    MutableMap,
    Value,
    is_list,
    is_map,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_WORK = 1_000_000
"""Bound of what an evaluation does without paying for it.

# Differs: in cel-go a turn of a loop may cost nothing, so that loops within loops run for minutes
below the limit of cost. Here they end with the same error as one that costs too much.
"""


class _Unset:
    __slots__ = ()


UNSET = _Unset()
"""An accumulator before it is first read: that evaluates its initial value."""


class Loop(NamedTuple):
    """The slots of a loop's accumulator and variables (second is 0 for none)."""

    accumulator: int
    first: int
    second: int
    initial: Run


def accumulated(slot: int, initial: Run) -> Run:
    """Return the run that reads an accumulator."""

    def read(frame: Frame) -> Value:
        value = frame[slot]
        if value is UNSET:
            value = frame[slot] = _initial(initial, frame)
        if type(value) is CelError:
            raise CelError(*value.args)
        return value

    return read


def _initial(initial: Run, frame: Frame) -> Value:
    """Return the first value of an accumulator; an empty list or map is one that grows."""
    try:
        value = initial(frame)
    except CelError as fault:
        return fault
    if is_list(value) and not value:
        return MutableList()
    if is_map(value) and not value.entries:
        return MutableMap({})
    return value


def spend(frame: Frame, work: int) -> None:
    """Count work that has no cost of its own, and check both limits.

    Raises
    ------
    LimitExceededError
        The evaluation did too much.
    """
    frame[WORK] += work
    if frame[WORK] > MAX_WORK or frame[COST] > COST_LIMIT:
        raise LimitExceededError


def _pairs(over: Value) -> Iterator[tuple[Value, Value]]:
    if is_map(over):
        held: Map = over
        return ((key, held.find(key)) for key in held.each_key())
    if is_list(over):
        return iter(enumerate(over))
    raise CelError(f"unsupported comprehension range type: {go_type(over)}")


def _elements(over: Value) -> Iterator[Value]:
    if is_list(over):
        return iter(over)
    if is_map(over):
        held: Map = over
        return held.each_key()
    raise CelError(f"got '{go_type(over)}', expected iterable type")


def fold(loop: Loop, over: Run, condition: Run, step: Run, result: Run) -> Run:
    """Return the run of a loop with one or two variables."""
    slot, first, second, _ = loop

    def turn(frame: Frame) -> bool:
        spend(frame, 1)
        try:
            if condition(frame) is False:
                return False
        except CelError:
            pass  # an error is not a reason to stop
        try:
            frame[slot] = step(frame)
        except CelError as fault:
            frame[slot] = fault
        return True

    def run(frame: Frame) -> Value:
        values = over(frame)
        frame[slot] = UNSET
        if second:
            for frame[first], frame[second] in _pairs(values):
                if not turn(frame):
                    break
        else:
            for frame[first] in _elements(values):
                if not turn(frame):
                    break
        return immutable(result(frame))

    return run
