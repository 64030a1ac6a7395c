"""All rows: faults, mistakes of other schedulers, invariants, and mistakes that Berth once had."""

from __future__ import annotations

from typing import Final

from tests.faults.injected import FAULTS
from tests.faults.invariants import INVARIANTS
from tests.faults.mistakes import MISTAKES
from tests.faults.rows import Row, row
from tests.storm.mutations import step7

OWN_MISTAKES: Final = tuple(
    row(key, each.text, "", (each.test, key)) for key, each in step7.MISTAKES.items()
)
TABLE: Final[tuple[Row, ...]] = (*FAULTS, *MISTAKES, *INVARIANTS, *OWN_MISTAKES)
