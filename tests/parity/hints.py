"""``python -m tests.parity.hints``: whom a change wakes, in berth and in kube-scheduler.

Each row is a pending pod and one object before and after. Both sides say which events the change
makes and, for every plugin, whether each event wakes the pod if that plugin rejected it.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from tests.controlplane.binaries import find_or_build
from tests.parity.campaign import Campaign, Report
from tests.parity.changes import rows
from tests.parity.hint_branches import ROWS_FOR_ENOUGH, not_reached
from tests.parity.processes import LineProcess
from tests.parity.waking import BESIDES, Berth

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from tests.parity.vocabulary import Json

CHUNK = 50
"""Draws of one run of hypothesis."""

STEP = 1000
"""Rows between two lines of progress."""

ROWS = "rows"

_WAKES = frozenset({"Queue", "Error"})
_UPDATE_OF_NOTHING = frozenset({"AssignedPodUpdate", "UnschedulablePodUpdate"})


class Hints:
    """kube-scheduler's hints and berth's, asked the same."""

    def __enter__(self) -> Self:
        program = find_or_build(["hints"])["hints"]
        self._oracle = LineProcess("the hints", [str(program)])
        self.berth = Berth()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._oracle.close()

    def ask(self, row: Json) -> tuple[Json, dict[str, dict[str, bool]]]:
        """Return the oracle's answer and berth's."""
        self._oracle.send(json.dumps(row).encode() + b"\n")
        return self._oracle.receive(), self.berth.answer(row)

    def plugins(self) -> frozenset[str]:
        """Return the plugins that are compared."""
        return frozenset(self.berth.registrations)

    def differences(self, row: Json, counts: Counter[str]) -> list[str]:
        """Return what differs in the answers to a row, and count what was reached."""
        theirs, ours = self.ask(row)
        if theirs.get("error"):
            return [f"the oracle: {theirs['error']}"]
        counts[ROWS] += 1
        found = []
        upstream = {each["label"]: each["plugins"] for each in theirs["events"]}
        for label in sorted({*upstream, *ours}):
            said = {
                plugin: word in _WAKES
                for plugin, word in upstream.get(label, {}).items()
                if plugin in self.plugins()
            }
            if label not in ours and label in _UPDATE_OF_NOTHING and not any(said.values()):
                # Differs: berth tells nobody of an update that changes nothing it reads.
                counts[f"{label} is nothing"] += 1
            elif label not in ours or label not in upstream:
                found.append(f"{label}: only {'ours' if label in ours else 'theirs'}")
            else:
                counts.update(f"{label} {name} {wakes}" for name, wakes in ours[label].items())
                found += [
                    f"{label} {plugin}: kube-scheduler {said.get(plugin)}, "
                    f"berth {ours[label].get(plugin)}"
                    for plugin in sorted({*said, *ours[label]})
                    if said.get(plugin) != ours[label].get(plugin) and BESIDES not in plugin
                ]
        return found


def compare(
    hints: Hints,
    count: int,
    first_seed: int,
    progress: Callable[[int], None] = lambda done: None,
) -> Counter[str]:
    """Compare at least ``count`` fresh rows; return what they reached, and how often.

    The same ``first_seed`` gives the same rows. The key ``ROWS`` holds their number.

    Raises
    ------
    DifferenceError
        With the seed of the chunk, the shrunk row and what differs.
    """
    return Campaign(rows(), CHUNK, ROWS, hints.differences).run(count, first_seed, progress)


def main() -> int:
    """Compare, report, and return the exit status: 1 when anything differs or is not reached."""
    parser = argparse.ArgumentParser(prog="python -m tests.parity.hints", description=__doc__)

    def all_rows(
        options: argparse.Namespace, first_seed: int, progress: Callable[[int], None]
    ) -> Counter[str]:
        with Hints() as hints:
            print(f"plugins: {', '.join(sorted(hints.plugins()))}")
            return compare(hints, options.cases, first_seed, progress)

    def missing(options: argparse.Namespace, counts: Counter[str]) -> list[str]:
        return [f"never reached: {branch}" for branch in not_reached(counts)]

    report = Report(ROWS, ROWS_FOR_ENOUGH, STEP)
    return report.tell(parser, lambda options: ROWS, all_rows, missing)


if __name__ == "__main__":
    sys.exit(main())
