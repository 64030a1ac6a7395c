from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from scheduler.process.loop_lag import LoopLag
from tests.fakes.clock import FakeClock
from tests.scheduler.client.virtual_loop import run_in_virtual_time


class Scene:
    """A loop whose timers come as late as it is told, one after the other."""

    def __init__(self, *late_s: float) -> None:
        self.seen: list[float] = []
        self.clock = FakeClock()
        self.late_s = list(late_s)

    def run(self) -> list[float]:
        """Let the timers come; what was observed."""

        async def passing() -> None:
            lag = LoopLag(lambda s: self.seen.append(round(s, 6)), self.clock)
            lag.start()
            for late_s in self.late_s:
                self.clock.advance(0.1 + late_s)
                # The timer is due in the middle of it.
                await asyncio.sleep(0.1)
            lag.stop()
            await asyncio.sleep(10)

        run_in_virtual_time(passing())
        return self.seen


@pytest.mark.parametrize(
    ("late_s", "seen"),
    [
        pytest.param([0.0, 0.0], [0.0, 0.0], id="in time"),
        pytest.param([0.003], [0.003], id="a bit late"),
        pytest.param([-0.001], [0.0], id="too early, as uvloop rounds: not late"),
        pytest.param([0.7, 0.0], [0.7, 0.0], id="what was late once is not late for ever"),
    ],
)
def test_it_observes_how_late_its_timers_are(late_s, seen):
    assert Scene(*late_s).run()[: len(seen)] == seen


def test_after_its_end_it_observes_nothing():
    assert len(Scene(0.0, 0.0).run()) <= 2


@pytest.mark.parametrize(
    ("late_s", "told"),
    [
        pytest.param([0.4], [], id="not for half a second"),
        pytest.param([0.7], [0.7], id="stood still"),
        pytest.param([0.7, 0.8], [0.7], id="the second within a second is not told"),
        pytest.param([0.7, 0.4, 2.0], [0.7, 2.0], id="later ones are"),
    ],
)
def test_it_tells_of_a_loop_that_stood_still(late_s, told):
    with capture_logs() as lines:
        Scene(*late_s).run()
    assert [line["seconds"] for line in lines] == told
    assert all({"own_cpu_seconds", "process_cpu_seconds"} <= line.keys() for line in lines)
