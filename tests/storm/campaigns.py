"""Campaigns: which seeds have been played, by which code, and how often each fault occurred.

The state of a campaign is a file with one line of JSON for each seed that passed. It outlives what
plays it: a campaign that was stopped goes on, also with newer code, and is summed up as one.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.storm.playing import Played

FAULTS: Final = {
    1: "a watch is closed or breaks",
    2: "a connection that brings nothing",
    3: "410, as a status or as an event",
    4: "all watches expire and lists are refused",
    5: "API servers restart",
    6: "a stale API server",
    7: "events again",
    8: "the DELETED of a pod is lost",
    9: "the ADDED of a pod is lost",
    10: "the DELETED of a node is lost",
    11: "a pod is known before its node",
    12: "a node goes while a pod is bound to it",
    13: "a node comes back with half its size",
    14: "a pod is deleted while it is bound",
    15: "a pod is made again while it is bound",
    16: "a write whose answer, or effect, is lost",
    17: "another scheduler binds the pod",
    18: "403 for a binding",
    19: "429, 500 or 503 for a write",
    20: "a write that takes long",
    21: "the lease is refused or taken",
    22: "requests about the lease hang",
    23: "a process stands still",
    24: "a wall clock jumps",
    25: "SIGTERM",
    26: "SIGKILL",
    27: "a plugin raises or does not return",
    28: "an object or line that cannot be read",
    29: "a profile that is invalid, or gone",
    30: "a flood of pods, Events refused",
    31: "a kubelet rejects a pod",
    32: "a victim that does not end",
    33: "a token file that is rotated or empty",
    34: "a CA that is rotated",
    35: "a process that is cut off",
}
"""The faults of the tests of Berth, by their numbers; labels of counts begin with them."""

_LABEL: Final = re.compile(r"F(\d+) ")


class Campaign:
    """What has been played so far.

    Parameters
    ----------
    state
        The file; None for a campaign that nobody continues.

    Attributes
    ----------
    seeds
        Seeds that passed.
    steps
        Of all of them.
    seconds
        That they took.
    counts
        How often each fault, write, refusal and log line occurred in them.
    revisions
        How many seeds each commit has played.
    """

    def __init__(self, state: Path | None) -> None:
        self.seeds: set[int] = set()
        self.steps = 0
        self.seconds = 0.0
        self.counts: Counter[str] = Counter()
        self.revisions: Counter[str] = Counter()
        self._state = state
        self._revision = revision()
        if state is not None and state.exists():
            for line in state.read_text(encoding="utf-8").splitlines():
                self._take(json.loads(line))

    def passed(self, played: Played) -> None:
        """Add a seed that broke no promise."""
        line = {
            "seed": played.seed,
            "steps": played.steps,
            "seconds": round(played.seconds, 3),
            "revision": self._revision,
            "counts": played.counts,
        }
        self._take(line)
        if self._state is not None:
            with self._state.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")

    def _take(self, line: dict[str, Any]) -> None:
        if line["seed"] in self.seeds:
            return
        self.seeds.add(line["seed"])
        self.steps += line["steps"]
        self.seconds += line.get("seconds", 0.0)
        self.counts.update(line["counts"])
        self.revisions[line.get("revision", "unknown")] += 1

    def faults(self) -> dict[int, int]:
        """Return how often each fault occurred, by its number."""
        found = dict.fromkeys(FAULTS, 0)
        for label, count in self.counts.items():
            match = _LABEL.match(label)
            if match and int(match[1]) in found:
                found[int(match[1])] += count
        return found

    def report(self) -> Iterator[str]:
        """Return lines about all of it: what was played, and each fault as a row of Markdown."""
        rate = self.steps / self.seconds if self.seconds else 0.0
        yield f"{len(self.seeds)} seeds passed, {self.steps} steps, {rate:.0f} steps/s"
        for name, count in self.revisions.items():
            yield f"    {count} seeds by {name}"
        for number, count in self.faults().items():
            yield f"| F{number} | {FAULTS[number]} | {count} |"


def revision() -> str:
    """Return the commit of the code that plays; empty where git does not know it."""
    command = ("git", "describe", "--always", "--dirty", "--abbrev=10")
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()
