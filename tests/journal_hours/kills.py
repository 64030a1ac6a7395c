"""SIGKILL at random moments of writing: what is left is replayed, every time."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from scheduler.journal.frames import files_of, read_header
from scheduler.journal.replay import Counts
from tests.scheduler.journal.journaled import replayed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LONGEST_S: Final = 2.5
"""From the first decision to the kill: some files are complete by then."""


class Killed(NamedTuple):
    """What was left of a process that was killed.

    Attributes
    ----------
    told
        Decisions that it had encoded by its own last word.
    equal, different
        Decisions that came out as recorded, and otherwise.
    torn_bytes
        Of an incomplete frame at the end of the last file.
    """

    after_s: float
    told: int
    files: int
    equal: int
    different: int
    torn_bytes: int


def kill_writers(count: int, seed: int, directory: Path) -> Iterator[Killed]:
    """Start a process that writes, kill it, and replay what it left; again and again.

    Raises
    ------
    JournalError
        When what is left cannot be read.
    """
    rng = random.Random(seed)
    for number in range(count):
        yield _kill_one(
            directory / f"{number:03}", rng.randrange(1 << 30), rng.uniform(0, LONGEST_S)
        )


def _kill_one(directory: Path, seed: int, after_s: float) -> Killed:
    command = [sys.executable, "-m", "tests.journal_hours.writing", str(directory), str(seed)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if int(line):
                break
        # The moment is what the campaign is about, not a wait for something to happen.
        time.sleep(after_s)
    finally:
        process.kill()
    lines = process.stdout.read().splitlines(keepends=True)
    told = [int(line) for line in lines if line.endswith("\n")]
    process.wait()
    process.stdout.close()
    # The first file may not have been begun yet.
    files = files_of(directory) if directory.exists() else []
    counts = replayed(directory) if files else Counts()
    torn = sum(map(_torn_bytes, files))
    most = max(told, default=0)
    return Killed(after_s, most, len(files), counts.equal, counts.different, torn)


def _torn_bytes(path: Path) -> int:
    """Return how many bytes follow the last complete frame."""
    if read_header(path) is None:
        return path.stat().st_size
    with path.open("rb") as file:
        file.seek(8)
        end = 8
        while len(prefix := file.read(8)) == 8:
            length = int.from_bytes(prefix[:4], "big")
            if len(file.read(length)) < length:
                break
            end = file.tell()
    return path.stat().st_size - end
