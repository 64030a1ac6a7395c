"""Random choices for generators that make whole clusters.

Hypothesis keeps a record of every choice, which takes most of the time where a case is made of a
thousand of them; such generators draw from here, and a case that differs is made smaller by
leaving out parts of it.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.parity.vocabulary import Json

T = TypeVar("T")


class Dice(Random):
    """Choices that depend on the seed alone."""

    def chance(self, percent: float) -> bool:
        """Return True in about so many of a hundred cases."""
        return self.random() * 100 < percent

    def some(self, values: Sequence[T], least: int, most: int) -> list[T]:
        """Return different ones of the values, in any order."""
        return self.sample(values, min(len(values), self.randint(least, most)))


def _smaller(value: object) -> Iterator[object]:
    """Yield the value without one of its parts; the larger parts first."""
    if isinstance(value, list):
        half = len(value) // 2
        if half > 1:
            yield value[half:]
            yield value[:half]
        for place in range(len(value)):
            yield value[:place] + value[place + 1 :]
        for place, part in enumerate(value):
            for smaller in _smaller(part):
                yield [*value[:place], smaller, *value[place + 1 :]]
    elif isinstance(value, dict):
        for key, part in value.items():
            if key not in _KEPT:
                yield {name: its for name, its in value.items() if name != key}
            for smaller in _smaller(part):
                yield {**value, key: smaller}


_KEPT = frozenset(
    {
        *("apiVersion", "kind", "metadata", "name", "namespace", "uid", "spec", "status"),
        *(
            "objects",
            "pod",
            "steps",
            "claims",
            "after",
            "containers",
            "devices",
            "request",
            "device",
            "nodeSelectorTerms",
        ),
        *("driver", "pool", "generation", "resourceSliceCount", "nodeName", "nodeSelector"),
        *("cel", "expression", "value", "key", "operator", "int", "bool", "string", "version"),
    }
)
"""Without these an object is another one, or none."""


def smallest(case: Json, differs: Callable[[Json], bool], most: int = 1500) -> Json:
    """Return a case that still differs after as much of it as possible was left out.

    Parameters
    ----------
    most
        How many cases are tried.
    """
    candidates = _smaller(case)
    while most and (candidate := next(candidates, None)) is not None:
        most -= 1
        if isinstance(candidate, dict) and differs(candidate):
            case = candidate
            candidates = _smaller(case)
    return case
