"""``python -m tests.house``: how the code is arranged, one or more checkouts side by side."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from tests.house.checkout import CheckoutError, checked_out
from tests.house.measures import measure
from tests.house.report import as_text

REPOSITORY = Path(__file__).resolve().parents[2]


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.house", description=__doc__)
    parser.add_argument(
        "checkouts",
        metavar="CHECKOUT",
        nargs="*",
        help="a folder or a git revision, the oldest first (default: this checkout)",
    )
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.add_argument(
        "--no-pod", action="store_true", help="run nothing: leave out the way of a pod"
    )
    options = parser.parse_args(arguments)
    houses = []
    with ExitStack() as stack:
        for name in options.checkouts or [str(REPOSITORY)]:
            try:
                root = stack.enter_context(checked_out(name, REPOSITORY))
            except CheckoutError as error:
                print(error, file=sys.stderr)
                return 2
            houses.append(measure(root, _label(name), follow_pod=not options.no_pod))
    if options.json:
        print(json.dumps([asdict(house) for house in houses], indent=2))
    else:
        print(as_text(houses), end="")
    return 0


def _label(name: str) -> str:
    return Path(name).resolve().name if Path(name).is_dir() else name


if __name__ == "__main__":
    sys.exit(main())
