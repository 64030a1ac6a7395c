from __future__ import annotations

import asyncio

from scheduler.cycle.held_groups import LASTS_S, MAX_PER_ROUND, HeldGroups
from tests.pod_group_builders import KEY
from tests.scheduler.cycle.group_scene import GroupScene, play


class Held(GroupScene):
    """Groups that wait for members, and rounds over them."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[object] = []
        self.why: str | None = "waiting for members"
        self.given_up: list[object] = []
        self.held = HeldGroups(
            self.ports, self.groups, self._why_held, self.reports, self.given_up.append
        )

    def _why_held(self, key):
        self.asked.append(key)
        return None if self.why is None else (self.why, self.join())

    async def round(self, after_s: float = LASTS_S) -> None:
        self.clock.advance(after_s)
        self.held.round()
        await self.settled()


@play
async def test_a_group_that_has_waited_for_a_while_says_why():
    async with Held() as scene:
        scene.put()
        scene.join(0)
        await scene.round()
    assert scene.told == [("PodGroup", "FailedScheduling", "waiting for members")]


@play
async def test_a_group_whose_members_keep_coming_says_nothing_yet():
    async with Held() as scene:
        scene.put()
        for number in range(20):
            scene.join(number)
            scene.clock.advance(LASTS_S - 1)
            scene.held.round()
        assert scene.asked == []


@play
async def test_a_group_that_does_not_change_is_looked_at_once():
    async with Held() as scene:
        scene.put()
        scene.join(0)
        for _ in range(10):
            await scene.round()
    assert scene.asked == [KEY]


@play
async def test_a_group_that_can_be_tried_says_nothing():
    async with Held() as scene:
        scene.why = None
        scene.put()
        scene.join(0)
        await scene.round()
    assert scene.told == []


@play
async def test_members_that_join_a_group_that_waits_for_its_object_are_told():
    async with Held() as scene:
        scene.join(0)
        await scene.round()
        scene.join(1)
        await scene.round()
    assert [uid for uid, _, _ in scene.member_texts] == ["gang-0", "gang-1"]


@play
async def test_a_round_looks_at_a_bounded_number_of_groups():
    async with Held() as scene:
        scene.why = None
        for number in range(MAX_PER_ROUND + 1):
            scene.join(0, of=KEY._replace(name=f"g{number}"))
        scene.clock.advance(LASTS_S)
        scene.held.round()
        assert len(scene.asked) == MAX_PER_ROUND
        scene.held.round()
        assert len(set(scene.asked)) == MAX_PER_ROUND + 1


def test_groups_that_are_gone_leave_nothing_behind():
    async def scene():
        made = Held()
        for number in range(100):
            key = KEY._replace(name=f"g{number}")
            made.join(0, of=key)
            made.leave(0, of=key)
        assert not made.held._changed_at_s

    asyncio.run(scene())
