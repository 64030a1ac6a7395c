"""``python -m tests.parity``: berth against kube-scheduler's own plugins, case by case."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from tests.parity.branches import CASES_FOR_ENOUGH, too_seldom
from tests.parity.campaign import Report
from tests.parity.cases import DEVICES, QUESTIONS_OF
from tests.parity.comparing import CASES, compare
from tests.parity.processes import Pair

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable

    from tests.parity.branches import Branch

STEP = 2500
"""Cases between two lines of progress."""


def main() -> int:
    """Compare, report, and return the exit status: 1 when anything differs or is not reached."""
    parser = argparse.ArgumentParser(prog="python -m tests.parity", description=__doc__)
    parser.add_argument("--kind", choices=[*QUESTIONS_OF, DEVICES], default="verdicts")

    def all_cases(
        options: argparse.Namespace, first_seed: int, progress: Callable[[int], None]
    ) -> Counter[Branch]:
        with Pair() as pair:
            return compare(pair, options.cases, first_seed, progress, options.kind)

    def missing(options: argparse.Namespace, counts: Counter[Branch]) -> list[str]:
        seldom = too_seldom(counts, options.kind).items()
        return [f"reached only {count} times: {branch}" for branch, count in seldom]

    report = Report(CASES, CASES_FOR_ENOUGH, STEP)
    return report.tell(parser, lambda options: f"cases of {options.kind}", all_cases, missing)


if __name__ == "__main__":
    sys.exit(main())
