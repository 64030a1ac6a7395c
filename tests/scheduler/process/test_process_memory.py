from __future__ import annotations

import asyncio
import resource
from pathlib import Path

from cache.ages import AGE_S, AGES
from scheduler.process.process_memory import Aging, trim_memory
from tests.scheduler.client.virtual_loop import run_in_virtual_time


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


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
