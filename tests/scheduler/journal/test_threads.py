"""What other threads do while a decision is made, or between a record and its change."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from plugins.default_preemption import DefaultPreemption
from scheduler.journal import Journal, JournalOptions, JournalWriter
from scheduler.journal.frames import files_of, read_frames
from scheduler.journal.replay import Replay
from tests.regressions.bystander import Bystander, made_for
from tests.regressions.steps import in_the_middle, of
from tests.scheduler.journal.journaled import KNOWN, JournaledScenario, quiet, replayed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from scheduler.journal.replay import Counts


class InterruptedJournal(Journal):
    """A journal whose threads are switched between the record of an object and its change.

    Attributes
    ----------
    switched
        What the other thread does then, once.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.switched: list[Callable[[], object]] = []

    def record(self, what: str, subject: Any, more: str) -> None:
        super().record(what, subject, more)
        if what == "object" and self.switched:
            self.switched.pop()()

    def _is_own(self) -> bool:
        return False


class InterruptedScenario(JournaledScenario):
    """The cluster of a scenario with such a journal."""

    def make_journal(self) -> Journal:
        self.journal = InterruptedJournal(1, 1_000_000, self.wall_clock)
        return self.journal


def _played(directory: Path, play: Callable[[InterruptedScenario], Awaitable[None]]) -> Counts:
    async def scene() -> None:
        async with InterruptedScenario() as world:
            writer = JournalWriter(world.journal, JournalOptions(directory))
            await play(world)
            await world.settle()
            writer.write_now()

    with quiet():
        asyncio.run(scene())
    return replayed(directory)


async def _take(world: InterruptedScenario, *lines: str) -> None:
    for line in lines:
        of(line)(world)
        await world.settle()


def test_a_decision_belongs_to_the_profile_that_it_began_with(tmp_path: Path) -> None:
    async def play(world: InterruptedScenario) -> None:
        await _take(world, "node n1 cpu=1", "pod p1 cpu=4")
        in_the_middle(lambda world: world.serve("berth", without="NodeResourcesFit"))(world)
        await _take(world, "cycle")

    counts = _played(tmp_path, play)
    assert not counts.differences
    assert counts.equal == 1


def test_a_change_that_was_recorded_but_not_made_was_not_seen(tmp_path: Path) -> None:
    async def play(world: InterruptedScenario) -> None:
        await _take(world, "node n1", "pod first", "cycle")
        await _take(world, "group g min=2", "pod a group=g", "pod b group=g")
        assert isinstance(world.journal, InterruptedJournal)
        world.journal.switched.append(world.cycle)
        # No node has a rack: the group would be refused after this change.
        await _take(world, "group g min=2 rack=required")

    counts = _played(tmp_path, play)
    assert not counts.differences
    assert (counts.groups, counts.equal, counts.reordered) == (1, 2, 0)


def test_a_change_between_filters_and_preemption_was_seen_by_preemption_alone(
    tmp_path: Path,
) -> None:
    async def play(world: InterruptedScenario) -> None:
        await _take(world, "node n1 cpu=4", "pod victim cpu=0", "cycle")
        await _take(world, "pod nominated cpu=4 priority=100 gate=g")
        world.cluster.change("pods", "nominated", {"status": {"nominatedNodeName": "n1"}})
        await _take(world, "pod preemptor cpu=4 priority=50")
        preemption = made_for(world.scheduling._profiles, DefaultPreemption)
        real = preemption.handle.live_pod

        def live_pod(namespace: str, name: str) -> Any:
            # With this, the filters would have found room.
            of("end pod nominated")(world)
            world.hear()
            return real(namespace, name)

        preemption.handle.live_pod = live_pod  # type: ignore[method-assign]
        await _take(world, "cycle")

    counts = _played(tmp_path, play)
    assert not counts.differences
    assert (counts.placed, counts.equal) == (1, 2)


def test_an_attempt_whose_budget_ran_out_runs_out_at_the_same_place(tmp_path: Path) -> None:
    async def play(world: InterruptedScenario) -> None:
        await _take(world, "node n1", "plugin needs 600ms for p1", "pod p1", "cycle")
        await _take(world, "pod p2", "cycle")

    class Busy(Bystander):
        def __init__(self, args: Any, handle: Any) -> None:
            super().__init__(args, handle)
            self.needs_s = {"p1": 0.6}

    without_work = _played(tmp_path, play)
    assert (without_work.equal, without_work.different) == (1, 0)
    assert sum(without_work.not_compared.values()) == 1
    replay = Replay({**KNOWN, Bystander.name: Busy})
    for path in files_of(tmp_path):
        replay.file(read_frames(path))
    counts = replay.counts
    assert (counts.placed, counts.equal, counts.not_compared) == (1, 2, {})
