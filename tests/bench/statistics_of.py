"""Medians, ratios and their spread, quantiles, and growth."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CURVE_STEPS = 50


@dataclass(frozen=True, slots=True)
class Ratio:
    """One contender's figure over another's.

    Attributes
    ----------
    value
        Of the medians.
    low, high
        The smallest and the largest of the ratios of rounds with the same number: they were
        measured one right after the other.
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"

    def floor(self) -> str:
        """Return the same, rounded down: a ratio below a goal is not printed as the goal."""
        value, low, high = (rounded(each, up=False) for each in (self.value, self.low, self.high))
        return f"{value} ({low} to {high})"


def ratio(ours: Mapping[int, float], theirs: Mapping[int, float]) -> Ratio | None:
    """Return the ratio of figures by number of the round; None where one has none, or zeros."""
    pairs = [ours[number] / theirs[number] for number in ours if theirs.get(number)]
    if not pairs:
        return None
    value = statistics.median(ours.values()) / statistics.median(theirs.values())
    return Ratio(value, min(pairs), max(pairs))


def rounded(value: float, digits: int = 2, *, up: bool) -> str:
    """Return the value with so many decimals, rounded up or down.

    A limit with no more decimals compares with the text as it does with the value: 1.996 misses 2.0
    and is 1.99, rounded down.
    """
    step = Decimal(1).scaleb(-digits)
    # repr() has the decimals that were meant: 1.1 is not 1.1000000000000001.
    return str(Decimal(repr(value)).quantize(step, ROUND_CEILING if up else ROUND_FLOOR))


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return the smallest of the ordered values that so many of them do not exceed.

    Raises
    ------
    ValueError
        There are none.
    """
    if not ordered:
        raise ValueError("no values")
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)]


def curve(ordered_s: Sequence[float], steps: int = CURVE_STEPS) -> list[float]:
    """Return when each share of the events had happened, from the first of them."""
    if not ordered_s:
        return []
    first_s = ordered_s[0]
    return [round(quantile(ordered_s, step / steps) - first_s, 4) for step in range(steps + 1)]


def growth(points: Sequence[tuple[float, float]]) -> float | None:
    """Return the exponent ``k`` of the best fit ``cost = c * size ** k``.

    0 is a cost that does not grow, 1 one that grows with the size. Least squares over the
    logarithms; None with fewer than two different sizes. Points that are not positive have no
    logarithm and do not count.
    """
    logs = [(math.log(size), math.log(cost)) for size, cost in points if size > 0 and cost > 0]
    if len({size for size, _ in logs}) < 2:
        return None
    return statistics.linear_regression(*zip(*logs, strict=True)).slope
