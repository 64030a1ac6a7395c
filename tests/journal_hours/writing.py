"""A process that writes a journal until it is killed.

    python -m tests.journal_hours.writing DIRECTORY SEED

A random history of pods and groups runs through the whole scheduler, over an API server in memory,
and the two threads of the journal write at the same time. The line on standard output is the number
of decisions so far.
"""

from __future__ import annotations

import asyncio
import random
import sys
from pathlib import Path

from scheduler.journal import JournalOptions, JournalWriter
from tests.scheduler.cycle.test_group_histories import History
from tests.scheduler.journal.journaled import JournaledScenario, quiet

SEGMENT_S = 0.7


async def write(directory: Path, seed: int) -> None:
    """Write until the process ends."""
    options = JournalOptions(directory, segment_s=SEGMENT_S)
    rng = random.Random(seed)
    async with JournaledScenario() as world:
        writer = JournalWriter(world.journal, options)
        writer.start()
        happening = History(world, seed)
        while True:
            for _ in range(rng.randrange(1, 40)):
                await happening.happen()
            print(writer.decisions, flush=True)


def main() -> None:
    """Run from the command line."""
    with quiet():
        asyncio.run(write(Path(sys.argv[1]), int(sys.argv[2])))


if __name__ == "__main__":
    main()
