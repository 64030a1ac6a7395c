from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

from cache.ages import AGE_S, AGES
from scheduler.process.process_memory import (
    Aging,
    calm_collector,
    resident_bytes,
    settle_memory,
    trim_memory,
)
from tests.scheduler.client.virtual_loop import run_in_virtual_time


def test_an_age_begins_every_few_minutes_until_stopped():
    async def ages_begun() -> list[int]:
        first = AGES.number
        aging = Aging()
        aging.start()
        await asyncio.sleep(AGE_S * 3.5)
        begun = [AGES.number - first]
        aging.stop()
        await asyncio.sleep(AGE_S * 2)
        return [*begun, AGES.number - first]

    assert run_in_virtual_time(ages_begun()) == [3, 3]


def test_free_pages_between_others_go_back_to_the_system():
    # Each is larger than what Python takes from its own arenas, and smaller than what the C library
    # maps apart. One of a hundred stays, so that no heap becomes free at its end.
    blocks = [bytes(10_000) + bytes([index % 256]) for index in range(6_000)]
    kept = blocks[::100]
    del blocks
    before = resident_bytes()
    trim_memory()
    assert before - resident_bytes() > 30_000_000
    assert len(kept) == 60


@pytest.mark.usefixtures("interpreter_as_it_is")
def test_no_run_of_the_collector_looks_at_what_has_stayed():
    calm_collector()
    calm_collector()  # once or twice is the same
    settle_memory()
    looked_at: list[int] = []

    def count(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            looked_at.append(sum(len(gc.get_objects(each)) for each in range(3)))

    gc.callbacks.append(count)
    kept = [[index] for index in range(200_000)]
    gc.callbacks.remove(count)
    assert len(kept) == 200_000
    assert len(looked_at) > 40
    assert max(looked_at) < 5_000


@pytest.mark.usefixtures("interpreter_as_it_is")
def test_nothing_is_looked_at_while_the_process_starts():
    calm_collector()
    looks: list[str] = []
    gc.callbacks.append(lambda phase, info: looks.append(phase))
    kept = [[index] for index in range(200_000)]
    gc.callbacks.pop()
    assert len(kept) == 200_000
    assert not looks


@pytest.mark.usefixtures("interpreter_as_it_is")
def test_whoever_asks_for_a_look_at_everything_sees_what_is_left():
    calm_collector()
    kept = [[]]
    gc.collect()
    assert any(each is kept for each in gc.get_objects())


@pytest.mark.usefixtures("interpreter_as_it_is")
def test_cycles_that_do_not_last_are_collected():
    calm_collector()
    settle_memory()
    collected: list[int] = []

    def count(phase: str, info: dict[str, int]) -> None:
        if phase == "stop":
            collected.append(info["collected"])

    gc.callbacks.append(count)
    for _ in range(50_000):
        cycle: list[object] = []
        cycle.append(cycle)
    gc.callbacks.remove(count)
    assert sum(collected) > 40_000


class Cycle:
    """Garbage that only the collector frees."""

    def __init__(self) -> None:
        self.itself = self


@pytest.mark.usefixtures("interpreter_as_it_is")
@pytest.mark.parametrize(
    ("mib", "freed"),
    [
        pytest.param([100, 150, 200], False, id="not doubled"),
        pytest.param([900, 900, 100], False, id="the first age is where it begins"),
        pytest.param([100, 100, 201], True, id="doubled"),
    ],
)
def test_cycles_that_have_become_old_are_freed_when_memory_has_doubled(mib, freed):
    calm_collector()

    async def old_cycle() -> bool:
        readings = iter([each << 20 for each in mib])
        aging = Aging(lambda: next(readings, 1 << 20))
        cycle = Cycle()
        alive = weakref.ref(cycle)
        gc.freeze()
        del cycle
        aging.start()
        await asyncio.sleep(AGE_S * 3.5)
        aging.stop()
        return alive() is None

    assert run_in_virtual_time(old_cycle()) is freed
