"""``make faults``: each test of the table passes, and fails where its mechanism is gone."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

import pytest

from tests.faults.prover import Prover
from tests.faults.table import TABLE

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Prove all rows, or those that are named; return 1 when a test proves nothing."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("keys", nargs="*", help="rows such as F9 or R3; all by default")
    keys = parser.parse_args(argv).keys
    rows = [row for row in TABLE if not keys or row.key in keys]
    prover = Prover([(row.key, proof) for row in rows for proof in row.proofs])
    tests = {proof.test for row in rows for proof in row.proofs}
    arguments = ["-q", "--no-header", "-p", "no:cacheprovider", *sorted(tests)]
    ended = pytest.main(arguments, plugins=[prover])
    print(f"{len(rows)} rows, {len(tests)} tests, {prover.missing} prove nothing")
    return 1 if ended or prover.missing else 0


if __name__ == "__main__":
    sys.exit(main())
