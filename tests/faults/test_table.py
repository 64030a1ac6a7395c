"""The table is complete, and what it names exists; ``make faults`` proves the rest."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.faults.injected import FAULTS
from tests.faults.invariants import INVARIANTS
from tests.faults.mistakes import MISTAKES
from tests.faults.page import PAGE, rendered
from tests.faults.rows import keys
from tests.faults.table import OWN_MISTAKES, TABLE
from tests.faults.variants import TABLE as VARIANTS
from tests.faults.variants import known

ROOT = Path(__file__).parents[2]
SCENARIOS = ROOT / "tests" / "regressions" / "scenarios"

PROOFS = [
    pytest.param(proof, id=f"{row.key}-{number}")
    for row in TABLE
    for number, proof in enumerate(row.proofs, 1)
]


@pytest.mark.parametrize(
    ("rows", "prefix", "last"),
    [
        pytest.param(FAULTS, "F", 35, id="faults"),
        pytest.param(MISTAKES, "R", 30, id="mistakes"),
        pytest.param(INVARIANTS, "I", 17, id="invariants"),
        pytest.param(OWN_MISTAKES, "B", 13, id="own mistakes"),
    ],
)
def test_nothing_is_missing(rows, prefix, last):
    assert [row.key for row in rows] == list(keys(prefix, last))
    assert all(row.proofs for row in rows)


@pytest.mark.parametrize("proof", PROOFS)
def test_the_test_and_the_variant_exist(proof):
    path, _, name = proof.test.partition("[")[0].partition("::")
    assert name in names_in(path)
    assert proof.variant in known()
    if path == "tests/regressions/test_regressions.py":
        row = proof.test.partition("[")[2].removesuffix("]")
        assert (SCENARIOS / f"{row}.txt").exists()


def test_each_variant_of_the_table_is_used():
    assert set(VARIANTS) <= {proof.variant for row in TABLE for proof in row.proofs}


def test_the_page_shows_the_table():
    assert PAGE.read_text(encoding="utf-8") == rendered(), "python -m tests.faults.page"


@cache
def names_in(path: str) -> frozenset[str]:
    """Return the tests of a file as pytest names them, its classes too."""
    names = set()
    for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
            names |= {f"{node.name}::{each.name}" for each in node.body if isinstance(each, kinds)}
        elif isinstance(node, ast.Assign):
            names.update(each.id for each in node.targets if isinstance(each, ast.Name))
    return frozenset(names)
