"""``python -m tests.parity.hints``: whom a change wakes, in berth and in kube-scheduler.

Each row is a pending pod and one object before and after. Both sides say which events the change
makes and, for every plugin, whether each event wakes the pod if that plugin rejected it.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.controlplane.binaries import find_or_build
from tests.parity.changes import rows
from tests.parity.hint_branches import ROWS_FOR_ENOUGH, not_reached
from tests.parity.processes import LineProcess
from tests.parity.waking import BESIDES, Berth

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from tests.parity.vocabulary import Json

CHUNK = 50
"""Draws of one run of hypothesis, which remembers all that it has drawn."""

STEP = 1000
"""Rows between two lines of progress."""

ROWS = "rows"

_WAKES = frozenset({"Queue", "Error"})
_UPDATE_OF_NOTHING = frozenset({"AssignedPodUpdate", "UnschedulablePodUpdate"})


class HintDifferenceError(AssertionError):
    """A row that wakes somebody else in berth; the message holds the smallest one found."""


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
    HintDifferenceError
        With the seed of the chunk, the shrunk row and what differs.
    """
    counts: Counter[str] = Counter()
    chunk_seed = first_seed
    while counts[ROWS] < count:
        _compare_chunk(hints, chunk_seed, counts)
        chunk_seed += 1
        progress(counts[ROWS])
    return counts


def _compare_chunk(hints: Hints, chunk_seed: int, counts: Counter[str]) -> None:
    @seed(chunk_seed)
    @settings(
        max_examples=CHUNK,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(rows())
    def same_hints(asked: list[Json]) -> None:
        for row in asked:
            found = hints.differences(row, counts)
            if found:
                lines = "\n  ".join(found)
                raise HintDifferenceError(f"seed {chunk_seed}\n  {lines}\n{json.dumps(row)}")

    same_hints()


def main() -> int:
    """Compare, report, and return the exit status: 1 when anything differs or is not reached."""
    parser = argparse.ArgumentParser(prog="python -m tests.parity.hints", description=__doc__)
    parser.add_argument("--cases", type=int, default=ROWS_FOR_ENOUGH, metavar="N")
    parser.add_argument("--seed", type=int, help="of an earlier run, to see the same rows")
    options = parser.parse_args()
    first_seed = random.randrange(10**9) if options.seed is None else options.seed
    print(f"comparing {options.cases} rows, seed {first_seed}", flush=True)
    started, told = time.monotonic(), 0

    def progress(done: int) -> None:
        nonlocal told
        if done - told >= STEP or done >= options.cases:
            told = done
            print(f"  {done} rows, {time.monotonic() - started:.0f} s", flush=True)

    try:
        with Hints() as hints:
            print(f"plugins: {', '.join(sorted(hints.plugins()))}")
            counts = compare(hints, options.cases, first_seed, progress)
    except HintDifferenceError as error:
        print(f"DIFFERENT\n{error}")
        return 1
    for reached, times in sorted(counts.items()):
        print(f"  {times:7} {reached}")
    print(f"no difference in {counts[ROWS]} rows, seed {first_seed}")
    missing = not_reached(counts) if options.cases >= ROWS_FOR_ENOUGH else []
    for branch in missing:
        print(f"never reached: {branch}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
