"""No room of ``cache``, ``plugins`` or ``scheduler`` imports another in a circle.

Imports under ``if TYPE_CHECKING`` count: whoever reads a room has to know what it speaks of.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.house.imports import Import, imports_of, room_of, rooms_graph
from tests.house.layering import knots_of
from tests.house.source import read_modules

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.house.source import Module

ROOT = Path(__file__).resolve().parents[2]


@cache
def modules() -> Mapping[str, Module]:
    return read_modules(ROOT)


@cache
def imports() -> tuple[Import, ...]:
    return imports_of(modules())


def between(rooms: Iterable[str]) -> list[str]:
    """Return the imports that lead from one of some rooms to another of them."""
    found = []
    for each in imports():
        start, end = (room_of(modules()[name]) for name in each[:2])
        if start != end and {start, end} <= set(rooms):
            found.append(str(each))
    return found


def test_no_import_runs_back() -> None:
    for knot in knots_of(rooms_graph(modules(), imports())):
        pytest.fail("these import each other in a circle:\n" + "\n".join(between(knot)))
