"""The table as a page: ``python -m tests.faults.page`` writes docs/faults.md."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.faults.injected import FAULTS
from tests.faults.invariants import INVARIANTS
from tests.faults.mistakes import MISTAKES
from tests.faults.table import OWN_MISTAKES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.faults.rows import Row

PAGE: Final = Path(__file__).parents[2] / "docs" / "faults.md"

_HEAD: Final = """\
# Faults

This page is for contributors and reviewers. It lists what may go wrong around a scheduler, what
Berth does then, and the test that shows it. A test proves something only if it fails on wrong
code. Each row therefore names a *broken variant*: Berth without the mechanism that the test is
about. `make faults` runs each test twice, once with Berth as it is and once with the broken
variant, and fails if the first run fails or the second one passes. `make faults ROWS="F9 R3"`
runs some rows.

The variants are in `tests/regressions/broken_variants.py`, `tests/storm/mutations/`
and `tests/faults/variants.py`. Tests in
`tests/faults/test_in_simulation.py` play a fault in [simulated time](simulation.md), others on a
real API server or with fakes. This page is generated from `tests/faults/` by `python -m
tests.faults.page`.
"""

_FAULTS: Final = """
## Faults

What happens to Berth's requests, watches, processes, clocks and files.
"""

_MISTAKES: Final = """
## Mistakes of other schedulers

Mistakes that caused harm, with the threads where they were reported; `kubernetes` stands for
kubernetes/kubernetes. The regression scenarios of `tests/regressions` play most of
them.
"""

_INVARIANTS: Final = """
## Invariants

[architecture.md](architecture.md#invariants) lists more tests for each.
"""

_OWN: Final = """
## Mistakes that Berth once had

They were found by reading and trying. The broken variant is the mistake itself, put back
(`tests/storm/mutations/step7.py`). [simulation.md](simulation.md#mistakes-put-back) shows which of
them the simulation finds.
"""


def rendered() -> str:
    """Return the page."""
    parts = [_HEAD]
    parts += [_FAULTS, *_with_what_holds("fault", FAULTS)]
    parts += [_MISTAKES, *_with_what_holds("mistake", MISTAKES)]
    parts += [_INVARIANTS, *_without("invariant", INVARIANTS)]
    parts += [_OWN, *_without("mistake", OWN_MISTAKES)]
    return "".join(parts)


def _with_what_holds(what: str, rows: Sequence[Row]) -> Iterator[str]:
    yield f"\n| | {what} | what must hold | test and broken variant |\n|---|---|---|---|\n"
    for row in rows:
        yield f"| {row.key} | {row.what} | {row.holds} | {_proofs(row)} |\n"


def _without(what: str, rows: Sequence[Row]) -> Iterator[str]:
    yield f"\n| | {what} | test and broken variant |\n|---|---|---|\n"
    for row in rows:
        yield f"| {row.key} | {row.what} | {_proofs(row)} |\n"


def _proofs(row: Row) -> str:
    return "<br>".join(f"`{_shown(proof.test)}`: `{proof.variant}`" for proof in row.proofs)


def _shown(test: str) -> str:
    """Return a test as a page names it: a state machine of hypothesis by its file."""
    path, _, name = test.partition("::")
    return path if name.startswith("Test") and "::" not in name else test


if __name__ == "__main__":
    PAGE.write_text(rendered(), encoding="utf-8")
