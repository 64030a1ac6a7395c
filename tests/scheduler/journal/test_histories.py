"""Random histories of the whole scheduler, decided again from their journals."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from scheduler.journal import JournalOptions, JournalWriter
from scheduler.journal.frames import encode, files_of, frame, header_frame, read_frames, read_header
from scheduler.journal.records import OBJECT, TYPES
from scheduler.journal.replay import Counts
from scheduler.journal.ties import RecordedTies
from tests.scheduler.cycle.test_group_histories import History
from tests.scheduler.journal.journaled import (
    CUT,
    JournaledScenario,
    play_lines,
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


def test_domains_of_equal_rank_come_out_equal_from_a_later_file(tmp_path: Path) -> None:
    """What racks there have been once must not decide between those that there are."""
    racks = [f"node n{number} cpu=8 rack=r{number}" for number in range(6)]
    groups = []
    for number in range(12):
        groups += [
            f"group g{number} min=2 rack=required",
            f"pod p{number} group=g{number} copies=2",
        ]
        groups += ["cycle", f"delete group g{number}"]
        groups += [f"delete pod p{number}-{copy}" for copy in range(2)]
    moved = ["node n0 cpu=8 rack=zz", "node n3 cpu=8 rack=aa"]
    play_steps([*racks, *groups[:5], *moved, CUT, *groups[5:]], tmp_path)
    assert replayed(tmp_path).groups == 12
    files_of(tmp_path)[0].unlink()
    later = replayed(tmp_path)
    assert not later.differences
    assert later.groups == 11


VOLUME = {
    "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]},
    "status": {"phase": "Bound"},
}
CLAIM = {
    "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
    "spec": {"accessModes": ["ReadWriteOnce"], "volumeName": "v1"},
    "status": {"phase": "Bound"},
}
POD = {
    "spec": {
        "schedulerName": "berth",
        "containers": [{"name": "c"}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c1"}}],
    }
}


def arrives_meanwhile(directory: Path, kind: str) -> None:
    """Move a change of an object behind the snapshot of the last decision."""
    (path,) = files_of(directory)
    header = read_header(path)
    assert header is not None
    records = [record for records in read_frames(path) for record in records]
    numbers = {
        record[1] for record in records if record[0] == OBJECT and TYPES[record[2]].__name__ == kind
    }
    (change,) = (record for record in records if record[0] == "object" and record[4] in numbers)
    records.remove(change)
    change[2] = False
    last = max(at for at, record in enumerate(records) if record[0] == "snapshot")
    records.insert(last + 1, change)
    path.write_bytes(header_frame(header) + frame(encode(records)))


BOUND_TO_A_VOLUME = (
    "node n1",
    f"create persistentvolumes v1 {json.dumps(VOLUME)}",
    f"create persistentvolumeclaims c1 {json.dumps(CLAIM)}",
    f"create pods p1 {json.dumps(POD)}",
    "cycle",
)


def test_a_change_that_arrives_during_a_decision_may_have_been_seen(tmp_path: Path) -> None:
    play_lines(BOUND_TO_A_VOLUME, tmp_path)
    before = replayed(tmp_path)
    assert (before.equal, before.reordered) == (1, 0)
    arrives_meanwhile(tmp_path, "PersistentVolumeClaim")
    after = replayed(tmp_path)
    assert (after.equal, after.reordered) == (1, 1)
