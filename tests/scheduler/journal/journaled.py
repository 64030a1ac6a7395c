"""Histories of the whole scheduler with a journal, over the API server of the worlds."""

from __future__ import annotations

import asyncio
import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

import structlog

from plugins.registry import PLUGINS
from scheduler.journal import Journal, JournalOptions, JournalWriter
from scheduler.journal.frames import files_of, read_frames
from scheduler.journal.replay import Replay
from tests.regressions import steps as scenario_steps
from tests.regressions.bystander import Bystander, Judge
from tests.regressions.world import World
from tests.worlds import steps
from tests.worlds.histories import history
from tests.worlds.playing import RecordedWorld

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from scheduler.journal.replay import Counts

FAILS_BY_CHANCE = "plugin fails next filter"
KNOWN = {**PLUGINS, Bystander.name: Bystander, Judge.name: Judge}


class JournaledWorld(RecordedWorld):
    """A world of :mod:`tests.worlds` whose scheduler has a journal."""

    def make_journal(self) -> Journal:
        self.journal = Journal(1, 1_000_000, self.wall_clock)
        # Everything is on one thread here; what happens in a cycle is not the scheduler's doing.
        self.journal._is_own = lambda: False  # type: ignore[method-assign]
        return self.journal


class JournaledScenario(World):
    """The cluster of a scenario whose scheduler has a journal; nothing happens within a cycle."""

    def make_journal(self) -> Journal:
        self.journal = Journal(1, 1_000_000, self.wall_clock)
        return self.journal


@contextmanager
def quiet() -> Iterator[None]:
    """Write no log lines."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    try:
        yield
    finally:
        structlog.configure(**before)


def play_world(seed: int, directory: Path, *, files: int = 3) -> None:
    """Play a world of some seed, and write its journal in some files."""
    # A plugin that fails without a reason of its own fails in no replay.
    lines = [line for line in history(seed) if line != FAILS_BY_CHANCE]
    play_lines(lines, directory, files=files)


def play_lines(lines: Sequence[str], directory: Path, *, files: int = 1) -> None:
    """Play what happens in a world, and write its journal in some files."""

    async def play() -> None:
        async with JournaledWorld() as world:
            writer = JournalWriter(world.journal, JournalOptions(directory))
            for number, line in enumerate(lines):
                steps.of(line)(world)
                await world.settle()
                if number % (len(lines) // files + 1) == 0 and number:
                    world.journal.wants_cut = True
                    writer.write_now()
            writer.write_now()

    with quiet():
        asyncio.run(play())


CUT = "cut"
"""Among the steps of a scenario: another file begins with the next cycle."""


def play_steps(lines: Sequence[str], directory: Path) -> None:
    """Play the steps of a scenario, and write its journal."""

    async def play() -> None:
        async with JournaledScenario() as world:
            writer = JournalWriter(world.journal, JournalOptions(directory))
            for line in lines:
                if line == CUT:
                    writer.write_now()
                    world.journal.wants_cut = True
                    continue
                scenario_steps.of(line)(world)
                await world.settle()
            writer.write_now()

    with quiet():
        asyncio.run(play())


def replayed(directory: Path) -> Counts:
    """Replay all files of a journal."""
    replay = Replay(KNOWN)
    with quiet():
        for path in files_of(directory):
            replay.file(read_frames(path))
    return replay.counts
