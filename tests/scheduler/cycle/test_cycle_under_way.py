"""A cycle that does not come back, and a scheduling thread that dies."""

from __future__ import annotations

import asyncio

import pytest

from cache.snapshot import Snapshot
from scheduler.cycle import schedule_one
from scheduler.cycle.host_selection import HostSelector
from scheduler.cycle.schedule_one import Deciders, Outcomes, SchedulingLoop
from scheduler.cycle.scheduling_cycle import SchedulingCycle
from scheduler.runtime.profile_map import Profiles
from tests.fakes.ports import FakeExecutor, fake_ports
from tests.scheduler.cycle.test_one_pod import FITS, Keeper, Stage


def told(stage: Stage) -> tuple[float, str | None, str]:
    """Return how long a cycle has been under way, whether that is a problem, and its pod."""
    scheduling = stage.scheduling
    return scheduling.cycle_under_way_s, scheduling.problem(), scheduling.pod_under_way


def test_a_cycle_under_way_is_seen_and_in_the_end_a_problem(monkeypatch):
    seen: list[tuple[float, str | None, str]] = []

    class Looking(Keeper):
        def reserve(self, state, info, node_name):
            seen.append(told(stage))
            monkeypatch.setattr(schedule_one, "MAX_CYCLE_S", 0.0)
            seen.append(told(stage))
            return super().reserve(state, info, node_name)

    stage = Stage(FITS.build(), [None], Looking())
    asyncio.run(stage.play())
    (early_s, early, pod), (late_s, late, _) = seen
    assert pod == "default/a"
    assert 0.0 < early_s <= late_s
    assert early is None
    assert late is not None
    assert "has been under way" in late
    assert told(stage) == (0.0, None, "")


def test_a_scheduling_thread_that_dies_says_so_and_is_a_problem():
    deaths: list[str] = []

    async def play() -> str | None:
        stage = await Stage(FITS.build(), [None]).play()
        queue = stage.parts.queue
        scheduling = SchedulingLoop(
            fake_ports(
                executor=FakeExecutor(
                    on_death=lambda name, error: deaths.append(f"{name}: {error!r}")
                )
            ),
            stage.parts.pods,
            Deciders(
                Profiles(stage.scheduling._profiles),
                SchedulingCycle(Snapshot(), HostSelector(1)),
            ),
            Outcomes(stage.bindings, stage.scheduling._failures),
            stage.reports,
        )
        monkey = pytest.MonkeyPatch()
        monkey.setattr(queue, "pop", raising(SystemExit("a plugin calls sys.exit")))
        try:
            scheduling.start()
            assert await asyncio.to_thread(scheduling.join, 30)
        finally:
            monkey.undo()
        return scheduling.problem()

    def raising(error: BaseException):
        def pop(timeout_s: float | None = None) -> None:
            raise error

        return pop

    assert asyncio.run(play()) == "the scheduling thread has ended"
    assert deaths == ["scheduling: SystemExit('a plugin calls sys.exit')"]
