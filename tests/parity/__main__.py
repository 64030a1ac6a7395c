"""``python -m tests.parity``: berth against kube-scheduler's own plugins, case by case."""

from __future__ import annotations

import argparse
import random
import sys
import time

from tests.parity.branches import CASES_FOR_ENOUGH, too_seldom
from tests.parity.cases import QUESTIONS_OF
from tests.parity.comparing import CASES, DifferenceError, compare
from tests.parity.processes import Pair

STEP = 2500
"""Cases between two lines of progress."""


def main() -> int:
    """Compare, report, and return the exit status: 1 when anything differs or is not reached."""
    parser = argparse.ArgumentParser(prog="python -m tests.parity", description=__doc__)
    parser.add_argument("--kind", choices=QUESTIONS_OF, default="verdicts")
    parser.add_argument("--cases", type=int, default=CASES_FOR_ENOUGH, metavar="N")
    parser.add_argument("--seed", type=int, help="of an earlier run, to see the same cases")
    options = parser.parse_args()
    first_seed = random.randrange(10**9) if options.seed is None else options.seed
    print(f"comparing {options.cases} cases of {options.kind}, seed {first_seed}", flush=True)
    started, told = time.monotonic(), 0

    def progress(done: int) -> None:
        nonlocal told
        if done - told >= STEP or done >= options.cases:
            told = done
            print(f"  {done} cases, {time.monotonic() - started:.0f} s", flush=True)

    try:
        with Pair() as pair:
            counts = compare(pair, options.cases, first_seed, progress, options.kind)
    except DifferenceError as error:
        print(f"DIFFERENT\n{error}")
        return 1
    for branch, count in sorted(counts.items()):
        print(f"  {count:7} {branch}")
    print(f"no difference in {counts[CASES]} cases, seed {first_seed}")
    missing = too_seldom(counts, options.kind) if options.cases >= CASES_FOR_ENOUGH else {}
    for branch, count in missing.items():
        print(f"reached only {count} times: {branch}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
