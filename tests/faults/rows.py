"""A row of the table: what may happen, what must hold then, and the tests that show it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_REGRESSION: Final = "tests/regressions/test_regressions.py::test_the_mistake_is_not_made"


class Proof(NamedTuple):
    """A test, and the broken variant of Berth with which it fails.

    Attributes
    ----------
    test
        As pytest names it. Without a row in brackets: at least one of its rows fails.
    variant
        A name that :func:`tests.faults.variants.without` knows.
    """

    test: str
    variant: str


class Row(NamedTuple):
    """What may happen.

    Attributes
    ----------
    key
        ``F`` and a number for a fault, ``R`` for a mistake of other schedulers, ``I`` for an
        invariant, ``B`` for a mistake that Berth once had.
    what
        What happens; for an invariant: what always holds.
    holds
        What must hold then; empty for an invariant.
    """

    key: str
    what: str
    holds: str
    proofs: tuple[Proof, ...]


def row(key: str, what: str, holds: str, *proofs: tuple[str, str]) -> Row:
    """Return a row, given pairs of a test and a variant."""
    return Row(key, what, holds, tuple(Proof(*each) for each in proofs))


def scenario(name: str) -> str:
    """Return the test that plays a regression scenario."""
    return f"{_REGRESSION}[{name}]"


def keys(prefix: str, last: int) -> Iterator[str]:
    """Yield the keys from 1 to a last one."""
    return (f"{prefix}{number}" for number in range(1, last + 1))
