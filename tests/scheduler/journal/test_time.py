"""What a decision takes from time, or from those before it, is decided again in a replay."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from cache.snapshot import Snapshot
from plugins.default_preemption import EVERYTHING, DefaultPreemptionArgs
from plugins.default_preemption import candidates as candidate_search
from plugins.default_preemption.emptied_nodes import EmptiedNodes
from plugins.dynamic_resources import DynamicResources
from plugins.registry import PLUGINS
from scheduler.cycle.scheduling_cycle import SchedulingCycle
from scheduler.journal import Journal, JournalOptions, JournalWriter
from scheduler.journal.frames import files_of, read_frames
from scheduler.journal.records import SEARCHED, SPENT
from scheduler.journal.replayed_services import Answers, ReplayedServices
from scheduler.journal.replayed_state import ReplayedState
from scheduler.pod_groups.plan import Verdict
from scheduler.pod_groups.planned_room import PlannedRoom
from scheduler.runtime.profile_builder import build_framework
from tests.regressions.steps import of
from tests.scheduler.journal.decided import default_profile
from tests.scheduler.journal.journaled import (
    CUT,
    JournaledScenario,
    play_steps,
    quiet,
    replayed,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

NODES = 12
FULL = [line for n in range(NODES) for line in (f"node n{n} cpu=4", f"pod low{n} cpu=4", "cycle")]


def records_in(directory: Path, what: str) -> list[Any]:
    """Return the records of a kind."""
    paths = files_of(directory)
    frames = (frame for path in paths for frame in read_frames(path))
    return [record for records in frames for record in records if record[0] == what]


def preempts(name: str) -> list[str]:
    """Return the steps in which a pod evicts another one and takes its place."""
    return [f"pod {name} cpu=4 priority=100", "cycle", "advance 30s", "cycle"]


@pytest.fixture
def few_dry_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let searches end early: after a few dry runs, with two candidates."""
    monkeypatch.setattr(candidate_search, "MAX_FILTER_RUNS", 4)
    monkeypatch.setattr(DefaultPreemptionArgs, "candidates_wanted", lambda *_: 2)


@pytest.mark.usefixtures("few_dry_runs")
def test_a_search_that_ended_early_passes_over_the_same_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pods = [line for number in range(6) for line in preempts(f"high{number}")]
    play_steps([*FULL, *pods], tmp_path)
    decisions = records_in(tmp_path, "decision")
    assert any(read[0] == SEARCHED for record in decisions for read in record[1][4])
    counts = replayed(tmp_path)
    assert (counts.different, counts.equal) == (0, len(decisions))
    monkeypatch.setattr(ReplayedServices, "extent", lambda _: EVERYTHING)
    assert replayed(tmp_path).different


@pytest.mark.usefixtures("few_dry_runs")
def test_what_earlier_searches_have_left_does_not_decide(tmp_path: Path) -> None:
    before, after = preempts("first"), [line for n in range(4) for line in preempts(f"then{n}")]
    play_steps([*FULL, *before, CUT, *after], tmp_path)
    files_of(tmp_path)[0].unlink()
    counts = replayed(tmp_path)
    assert not counts.differences
    assert counts.equal == 4


# --- budgets ----------------------------------------------------------------------------------


def play(
    lines: Sequence[str], directory: Path, prepare: Callable[[JournaledScenario], object]
) -> None:
    """Play the steps of a scenario after some preparation, and write its journal."""

    async def scene() -> None:
        async with JournaledScenario() as world:
            prepare(world)
            writer = JournalWriter(world.journal, JournalOptions(directory))
            for line in lines:
                of(line)(world)
                await world.settle()
            writer.write_now()

    with quiet():
        asyncio.run(scene())


def test_a_budget_that_ran_out_in_a_dry_run_is_replayed_once(tmp_path: Path) -> None:
    """The first try leaves copies of nodes behind, for which a second try would not be charged."""
    with pytest.MonkeyPatch.context() as patched:

        def slow(world: JournaledScenario) -> None:
            real = EmptiedNodes._emptied

            def emptied(nodes: EmptiedNodes, info: Any) -> Any:
                world.bystander.cpu.advance(0.1)
                return real(nodes, info)

            patched.setattr(EmptiedNodes, "_emptied", emptied)

        play([*FULL, "pod high cpu=4 priority=100", "cycle"], tmp_path, slow)
    assert "budget exceeded" in str(records_in(tmp_path, "decision")[-1])
    counts = replayed(tmp_path)
    assert (counts.equal, counts.different, counts.not_compared) == (NODES + 1, 0, {})


RACKS = [f"node n{number} cpu=4 rack=r{number // 2}" for number in range(6)]
TOO_LARGE = ["group g min=3 rack=required", *(f"pod p{n} cpu=3 group=g" for n in range(2))]
"""With one more pod of 2 CPUs they fit into each rack by their sums alone."""


def test_a_group_that_ran_out_of_time_between_domains_does_so_again(tmp_path: Path) -> None:
    lines = [*RACKS, *TOO_LARGE, "pod p2 cpu=2 group=g", "plugin needs 45ms for p0", "cycle"]
    play(lines, tmp_path, lambda _: None)
    (plan,) = records_in(tmp_path, "plan")
    assert plan[8][0] == Verdict.NOT_FOUND.value
    (spent,) = [read for read in plan[1][4] if read[0] == SPENT]
    assert spent[2] is None, "it was late, and had some time left"
    counts = replayed(tmp_path)
    assert (counts.groups, counts.equal, counts.not_compared) == (1, 1, {})


def test_a_group_whose_budget_ran_out_is_decided_again(tmp_path: Path) -> None:
    lines = [*RACKS, *TOO_LARGE, "pod p2 cpu=2 group=g", "plugin needs 600ms for p0", "cycle"]
    play(lines, tmp_path, lambda _: None)
    counts = replayed(tmp_path)
    assert (counts.groups, counts.different) == (1, 0)


def test_victims_that_were_chosen_in_a_hurry_are_chosen_again(tmp_path: Path) -> None:
    nodes = [f"node n{number} cpu=4" for number in range(4)]
    low = [line for n in range(8) for line in (f"pod low{n} cpu=2 priority={n}", "cycle")]
    members = [f"pod p{n} cpu={3 - n} priority=100 group=g" for n in range(2)]
    with pytest.MonkeyPatch.context() as patched:

        def slow(world: JournaledScenario) -> None:
            real = PlannedRoom.plan

            def plan(room: PlannedRoom) -> Any:
                world.bystander.cpu.advance(0.04)
                return real(room)

            patched.setattr(PlannedRoom, "plan", plan)

        play([*nodes, *low, "group g min=2", *members, "cycle"], tmp_path, slow)
    (victims,) = records_in(tmp_path, "victims")
    assert victims[2][0] == "victims"
    assert any(read[0] == SPENT for read in victims[1])
    counts = replayed(tmp_path)
    assert (counts.groups, counts.different, counts.not_compared) == (1, 0, {})


# --- devices ----------------------------------------------------------------------------------


def test_a_search_for_devices_that_took_too_long_is_recorded_with_its_decision() -> None:
    services = ReplayedServices(ReplayedState())
    framework = build_framework(default_profile(), 0, PLUGINS, services)
    (plugin,) = (each for each in framework.plugins if isinstance(each, DynamicResources))
    journal = Journal(1, 10, lambda: 0.0)
    cycle = SchedulingCycle(Snapshot(), journal.ties)
    journal.configured(1, [framework])
    journal.between_cycles(cycle)
    journal.begin(cycle)
    plugin.search_times.on_timeout("uid", "n1")
    assert journal.reads is not None
    services.follow(framework)
    services.answers = Answers(journal.reads)
    assert plugin.search_times.has_timed_out("uid", "n1")
    assert not plugin.search_times.has_timed_out("uid", "n2")
