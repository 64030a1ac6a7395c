from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from scheduler.explain import ExplainError
from scheduler.ui.desk import Desk
from tests.builders import node
from tests.scheduler.ui.listings import listing

if TYPE_CHECKING:
    from scheduler.ui.listing import Listing

OLD, NEW = listing(node("old").capacity(cpu="1")), listing(node("new").capacity(cpu="1"))


def names(shown: Listing) -> list[str]:
    return list(shown.cluster.nodes)


def ask_twice(desk: Desk, clock: list[float], later_s: float) -> tuple[list[str], list[str]]:
    async def ask() -> tuple[list[str], list[str]]:
        clock[0] += later_s
        first = await desk.work(names)
        await desk.refreshed()
        return first, await desk.work(names)

    try:
        return asyncio.run(ask())
    finally:
        desk.close()


def test_an_old_listing_answers_until_the_new_one_is_there() -> None:
    clock = [0.0]
    desk = Desk(OLD, lambda: NEW, 30.0, lambda: clock[0])
    assert ask_twice(desk, clock, 31.0) == (["old"], ["new"])


def test_a_young_listing_is_kept() -> None:
    clock = [0.0]
    desk = Desk(OLD, lambda: NEW, 30.0, lambda: clock[0])
    assert ask_twice(desk, clock, 29.0) == (["old"], ["old"])


def test_a_dump_is_never_read_again() -> None:
    clock = [0.0]
    assert ask_twice(Desk(OLD, None, 30.0, lambda: clock[0]), clock, 1e6) == (["old"], ["old"])


def test_a_list_that_fails_keeps_the_old_one_and_is_said() -> None:
    clock = [0.0]

    def fail() -> Listing:
        raise ExplainError("the cluster cannot be read")

    desk = Desk(OLD, fail, 30.0, lambda: clock[0])
    assert ask_twice(desk, clock, 31.0) == (["old"], ["old"])
    assert desk.failure == "the cluster cannot be read"
