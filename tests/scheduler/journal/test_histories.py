"""Random histories of the whole scheduler, decided again from their journals."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from scheduler.journal import JournalOptions, JournalWriter
from scheduler.journal.replay import Counts
from scheduler.journal.ties import RecordedTies
from tests.scheduler.cycle.test_group_histories import History
from tests.scheduler.journal.journaled import (
    JournaledScenario,
    play_steps,
    play_world,
    quiet,
    replayed,
)

if TYPE_CHECKING:
    from pathlib import Path

WORLDS = range(4)
GROUPS = range(4)


def test_the_decisions_of_worlds_come_out_equal(tmp_path: Path) -> None:
    counts = Counts()
    for seed in WORLDS:
        play_world(seed, tmp_path / str(seed))
        found = replayed(tmp_path / str(seed))
        assert not found.differences, seed
        counts.equal += found.equal
        counts.placed += found.placed
    assert counts.equal > 5 * len(WORLDS)
    assert counts.placed


@pytest.mark.parametrize("seed", GROUPS)
def test_the_plans_and_victims_for_groups_come_out_equal(seed: int, tmp_path: Path) -> None:
    async def play() -> None:
        async with JournaledScenario() as world:
            writer = JournalWriter(world.journal, JournalOptions(tmp_path))
            happening = History(world, seed)
            for number in range(60):
                await happening.happen()
                world.journal.wants_cut |= number == 30
            await happening.rest()
            writer.write_now()

    with quiet():
        asyncio.run(play())
    counts = replayed(tmp_path)
    assert not counts.differences
    assert counts.groups


def test_ties_come_out_equal_and_another_number_is_a_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pods = [line for number in range(20) for line in (f"pod p{number}", "cycle")]
    play_steps([*(f"node n{number} cpu=8" for number in range(12)), *pods], tmp_path)
    counts = replayed(tmp_path)
    assert (counts.equal, counts.different) == (20, 0)
    begin = RecordedTies.begin
    monkeypatch.setattr(RecordedTies, "begin", lambda self, number: begin(self, number + 1))
    assert replayed(tmp_path).different > 10
