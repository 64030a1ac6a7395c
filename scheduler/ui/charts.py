"""Small drawings as SVG paths: the page's security policy allows no styles inside its HTML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

STEPS: Final = 10
"""How many shades a map has besides "nothing" and "everything"."""

CELL: Final = 9
GAP: Final = 2


@dataclass(frozen=True, slots=True)
class Shade:
    """All cells of a map with one shade, as one path.

    Parameters
    ----------
    step
        0 for nothing, 1..``STEPS`` in between, ``STEPS`` + 1 for everything.
    path
        The ``d`` attribute.
    """

    step: int
    path: str


@dataclass(frozen=True, slots=True)
class Map:
    """A map of cells in rows of equal length, and its size in pixels."""

    shades: tuple[Shade, ...]
    columns: int
    width: int
    height: int


class Bar(NamedTuple):
    """A bar of a chart, in pixels."""

    x: float
    y: float
    width: float
    height: float


def map_of(shares: npt.NDArray[np.float64], columns: int) -> Map:
    """Return a map with one cell for each share (0..1), in rows of ``columns`` cells."""
    steps = np.ceil(shares * STEPS).astype(np.intp)
    steps[shares >= 0.995] = STEPS + 1
    pitch, shades = CELL + GAP, []
    for step in np.unique(steps).tolist():
        where = np.flatnonzero(steps == step)
        places = zip(
            (where % columns * pitch).tolist(), (where // columns * pitch).tolist(), strict=True
        )
        cell = f"h{CELL}v{CELL}h-{CELL}z"
        shades.append(Shade(step, "".join(f"M{x} {y}{cell}" for x, y in places)))
    rows = -(-len(shares) // columns) if len(shares) else 0
    used = min(columns, len(shares))
    return Map(tuple(shades), columns, max(used * pitch - GAP, 0), max(rows * pitch - GAP, 0))


def line_of(values: Sequence[float], width: int, height: int) -> str:
    """Return a line through values, from the left to the right; the largest is at the top."""
    if not values:
        return ""
    top = max([*values, 1])
    step = width / max(len(values) - 1, 1)
    points = [
        f"{index * step:.1f} {height - value / top * height:.1f}"
        for index, value in enumerate(values)
    ]
    return "M" + "L".join(points)


def time_line(
    times_s: Sequence[float], values: Sequence[int], width: int, height: int, points: int = 60
) -> str:
    """Return a line through values at moments, from the first to the last; 0 is at the bottom.

    Parameters
    ----------
    points
        About how many of the values are drawn.
    """
    every = -(-len(values) // points)
    drawn = sorted({*range(0, len(values), every), len(values) - 1})
    top, start_s = max([*values, 1]), times_s[0]
    scale = width / ((times_s[-1] - start_s) or 1.0)
    places = [
        f"{(times_s[index] - start_s) * scale:.1f} {height - values[index] / top * height:.1f}"
        for index in drawn
    ]
    return "M" + "L".join(places)


def bars_of(values: Sequence[float], width: int, height: int) -> tuple[Bar, ...]:
    """Return a bar for each value; any value above 0 is visible."""
    top, pitch = max([*values, 1]), width / max(len(values), 1)
    found = []
    for index, value in enumerate(values):
        tall = round(max(value / top * height, 1.0), 1) if value else 0.0
        found.append(Bar(round(index * pitch, 1), height - tall, round(pitch - 1, 1), tall))
    return tuple(found)
