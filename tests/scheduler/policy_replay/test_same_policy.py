"""The recorded policy, replayed as another one, decides as it was recorded."""

from __future__ import annotations

import asyncio
from itertools import takewhile
from typing import TYPE_CHECKING

import pytest

from scheduler.journal import JournalOptions, JournalWriter, forms
from tests.scheduler.cycle.test_group_histories import History
from tests.scheduler.journal.journaled import (
    CUT,
    JournaledScenario,
    play_steps,
    play_world,
    quiet,
)
from tests.scheduler.policy_replay.policies import recorded_profiles, replay_by

if TYPE_CHECKING:
    from pathlib import Path

    from tests.scheduler.policy_replay.policies import Replayed

WORLDS = range(4)
GROUPS = range(3)


@pytest.mark.parametrize("seed", WORLDS)
def test_the_decisions_of_worlds_come_out_equal(seed: int, tmp_path: Path) -> None:
    play_world(seed, tmp_path, files=1)
    found = replay_by(recorded_profiles(tmp_path), tmp_path, one_config=True)
    # An attempt that was stopped then comes to its end now, and all may differ from there on.
    compared = list(takewhile(lambda pair: pair[0][forms.RAN_OUT_AT] is None, found.compared))
    assert not [(then, now) for then, now in compared if then != now]
    assert compared
    if compared == found.compared:
        assert not found.skipped


@pytest.mark.parametrize("seed", GROUPS)
def test_the_plans_for_groups_come_out_equal(seed: int, tmp_path: Path) -> None:
    async def play() -> None:
        async with JournaledScenario() as world:
            writer = JournalWriter(world.journal, JournalOptions(tmp_path))
            happening = History(world, seed)
            for _ in range(60):
                await happening.happen()
            await happening.rest()
            writer.write_now()

    with quiet():
        asyncio.run(play())
    found = replay_by(recorded_profiles(tmp_path), tmp_path)
    assert not [(then, now) for then, now in found.compared if then != now]
    assert found.compared
    assert not found.skipped


def test_the_same_policy_moves_nobody_and_fills_nodes_as_they_were(tmp_path: Path) -> None:
    pods = [f"pod p{number} cpu={number % 3 + 1}" for number in range(12)]
    lines = [line for pod in pods for line in (pod, "cycle")]
    lines[10:10] = ["end pod p1", "end pod p2"]
    play_steps([*(f"node n{number}" for number in range(5)), *lines, "cycle"], tmp_path)
    found = replay_by(recorded_profiles(tmp_path), tmp_path)
    profile = found.profile
    assert (profile.moved, profile.only_then, profile.only_now) == (0, 0, 0)
    assert profile.then.placed == profile.now.placed > 5
    assert found.end is not None
    assert found.end[0] == found.end[1]


SCENARIO = [
    *(f"node n{number} cpu=4" for number in range(4)),
    *(line for number in range(6) for line in (f"pod p{number} cpu=2", "cycle")),
    "end pod p1",
    *(line for number in range(6, 12) for line in (f"pod p{number} cpu=3", "cycle")),
    "end pod p2",
    "end pod p3",
    "cycle",
    "cycle",
    "node n4 cpu=8",
    "cycle",
    "cycle",
    "delete node n0",
    "pod late cpu=1",
    "cycle",
]


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Replayed:
    """Return the replay of the scenario in one file."""
    directory = tmp_path_factory.mktemp("one")
    play_steps(SCENARIO, directory)
    return replay_by(recorded_profiles(directory), directory)


@pytest.mark.parametrize("at", [9, 17, 30])
def test_it_goes_on_where_another_file_begins(at: int, one: Replayed, tmp_path: Path) -> None:
    lines = list(SCENARIO)
    lines[at:at] = [CUT]
    play_steps(lines, tmp_path)
    two = replay_by(recorded_profiles(tmp_path), tmp_path)
    assert [now for _, now in one.compared] == [now for _, now in two.compared]
    assert one.end == two.end
