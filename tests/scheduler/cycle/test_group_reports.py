from __future__ import annotations

import asyncio

import msgspec
import pytest

from cache.objects import PodCondition
from cache.pod_info import PodInfo
from scheduler.api_writes.member_conditions import MAX_QUEUED
from scheduler.cycle.group_reports import SHORT_LIMIT, short_text
from tests.pod_group_builders import KEY, KINDS, X_KEY
from tests.scheduler.cycle.group_scene import GroupScene, play

KEYS = [pytest.param(KEY, id="field"), pytest.param(X_KEY, id="label")]
TEXT = 'pod group "gang": 2 of 3 fit'


@play
async def test_a_refusal_is_in_the_status_in_an_event_and_in_each_member():
    async with GroupScene() as scene:
        scene.put()
        scene.reports.refused(KEY, scene.join(0, 1), "Unschedulable", "2 of 3 fit")
        await scene.settled()
    assert scene.said() == [("False", "Unschedulable", "2 of 3 fit")]
    assert scene.told == [("PodGroup", "FailedScheduling", "2 of 3 fit")]
    assert scene.member_texts == [(f"gang-{n}", "Unschedulable", TEXT) for n in (0, 1)]


@pytest.mark.parametrize("key", KEYS)
def test_a_reason_is_told_once_and_not_for_each_attempt(key):
    async def scene():
        async with GroupScene() as made:
            made.put(key)
            members = made.join(0, 1, of=key)
            for _ in range(20):
                made.reports.refused(key, members, "Unschedulable", "2 of 3 fit")
                await made.settled()
                made.clock.advance(10)
        assert len(made.told) == 1
        assert len(made.member_texts) == 2
        assert made.events.statistics().folded == 0

    asyncio.run(scene())


@play
async def test_a_new_reason_is_told_at_once():
    async with GroupScene() as scene:
        scene.put()
        members = scene.join(0)
        scene.reports.refused(KEY, members, "Unschedulable", "2 of 3 fit")
        scene.reports.refused(KEY, members, "SchedulerError", "a plugin failed")
        await scene.settled()
    assert [reason for _, reason, _ in scene.said()] == ["SchedulerError"]
    assert len(scene.told) == 2
    assert scene.member_texts[-1][1] == "SchedulerError"


@pytest.mark.parametrize(
    ("members", "texts"),
    [pytest.param(2, 5, id="once a minute"), pytest.param(120, 3, id="a write a second")],
)
def test_members_hear_of_other_numbers_now_and_then(members, texts):
    async def scene():
        async with GroupScene() as made:
            made.put()
            listed = made.join(*range(members))
            for number in range(30):
                made.reports.refused(KEY, listed, "Unschedulable", f"{number} fit")
                await made.settled()
                made.clock.advance(10)
        return made

    made = asyncio.run(scene())
    assert len(made.told) == 30
    assert len(made.member_texts) == members * texts


@play
async def test_a_member_that_joins_hears_what_the_others_heard():
    async with GroupScene() as scene:
        scene.put()
        scene.reports.refused(KEY, scene.join(0), "Unschedulable", "2 of 3 fit")
        await scene.settled()
        scene.reports.refused(KEY, scene.join(1), "Unschedulable", "2 of 3 fit")
        await scene.settled()
    assert scene.member_texts == [(f"gang-{n}", "Unschedulable", TEXT) for n in (0, 1)]


@play
async def test_a_group_that_is_held_is_nothing_for_autoscalers():
    async with GroupScene() as scene:
        scene.put()
        scene.reports.held(KEY, scene.join(0), "waiting for members")
        await scene.settled()
    assert scene.said() == [("False", "Unschedulable", "waiting for members")]
    assert [reason for _, reason, _ in scene.member_texts] == ["WaitingForPodGroup"]


@play
async def test_members_of_a_group_without_an_object_are_told():
    async with GroupScene() as scene:
        scene.reports.held(KEY, scene.join(0), "waiting for the object")
        await scene.settled()
    assert scene.told == []
    assert len(scene.member_texts) == 1


@play
async def test_an_object_that_is_made_again_hears_the_reason_again():
    async with GroupScene() as scene:
        scene.put()
        members = scene.join(0)
        scene.reports.refused(KEY, members, "Unschedulable", "2 of 3 fit")
        await scene.settled()
        again = scene.api.raw(*_of(KEY)) | {"status": {}}
        again["metadata"]["uid"] = "another"
        scene.api.put(*_of(KEY), again)
        scene.reports.refused(KEY, members, "Unschedulable", "2 of 3 fit")
        await scene.settled()
    assert scene.said() == [("False", "Unschedulable", "2 of 3 fit")]
    assert len(scene.told) == 2


def _of(key):
    return KINDS[key.source], key.namespace, key.name


@pytest.mark.parametrize("key", KEYS)
def test_a_new_leader_repeats_nothing(key):
    async def scene():
        async with GroupScene() as made:
            made.put(key)
            for member in made.join(0, 1, of=key):
                shown = PodCondition("PodScheduled", "False", "Unschedulable", TEXT)
                status = msgspec.structs.replace(member.pod.status, conditions=(shown,))
                pod = msgspec.structs.replace(member.pod, status=status)
                made.pods[pod.metadata.name] = pod
            members = [PodInfo(pod) for pod in made.pods.values()]
            made.new_leader().refused(key, members, "Unschedulable", "2 of 3 fit")
            await made.settled()
        assert made.told == []
        assert made.member_texts == []

    asyncio.run(scene())


@play
async def test_a_placement_is_told_and_then_a_refusal_is_new_again():
    async with GroupScene() as scene:
        scene.put()
        members = scene.join(0)
        scene.reports.refused(KEY, members, "Unschedulable", "2 of 3 fit")
        scene.reports.scheduled(KEY, "3 members placed")
        scene.reports.refused(KEY, members, "Unschedulable", "2 of 3 fit")
        await scene.settled()
    assert scene.said() == [("True", "Scheduled", "3 members placed")]
    reasons = [reason for _, reason, _ in scene.told]
    assert sorted(reasons) == ["FailedScheduling", "Scheduled"]
    assert scene.events.statistics().folded == 1


@play
async def test_a_disruption_ends_when_the_group_is_placed_again():
    async with GroupScene() as scene:
        scene.put()
        scene.join(0)
        scene.reports.evicting(KEY, "room for others")
        await scene.reports.told(KEY)
        assert scene.said() == [("True", "PreemptionByScheduler", "room for others")]
        scene.reports.scheduled(KEY, "placed again")
        await scene.settled()
    assert ("False", "PreemptionByScheduler", "placed again") in scene.said()


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda scene: scene.leave(0), id="no member any more"),
        pytest.param(lambda scene: scene.join(0, phase="Running"), id="begun"),
    ],
)
def test_what_was_told_is_forgotten_with_the_group(end):
    async def scene():
        async with GroupScene() as made:
            made.put()
            made.reports.refused(KEY, made.join(0), "Unschedulable", "2 of 3 fit")
            await made.settled()
            end(made)
            assert not made.reports._told

    asyncio.run(scene())


@pytest.mark.parametrize("length", [1, SHORT_LIMIT, 100_000])
def test_the_text_for_members_is_short(length):
    text = short_text(KEY, "x" * length)
    assert text.startswith('pod group "gang": x')
    assert len(text) <= SHORT_LIMIT


# --- many members -------------------------------------------------------------------------------


@play
async def test_many_members_leave_room_for_other_pods():
    async with GroupScene() as scene:
        scene.put()
        members = scene.join(*range(3 * MAX_QUEUED))
        scene.api.gate.clear()
        scene.reports.refused(KEY, members, "Unschedulable", "2 of 3 fit")
        for _ in range(200):
            await asyncio.sleep(0)
        assert scene.statuses.queued == MAX_QUEUED
        assert scene.statuses.statistics().dropped == 0


@play
async def test_all_of_many_members_are_told_in_the_end():
    async with GroupScene() as scene:
        scene.put()
        members = scene.join(*range(MAX_QUEUED + 500))
        scene.reports.refused(KEY, members, "Unschedulable", "2 of 3 fit")
        await scene.until(lambda: len(scene.member_texts) == len(members))
    assert {uid for uid, _, _ in scene.member_texts} == {each.uid for each in members}


@play
async def test_a_newer_reason_takes_the_place_of_one_that_waits():
    async with GroupScene() as scene:
        scene.put()
        members = scene.join(*range(1_000))
        scene.reports.refused(KEY, members, "Unschedulable", "2 of 3 fit")
        scene.reports.refused(KEY, members, "SchedulerError", "a plugin failed")
        await scene.until(
            lambda: (
                len([text for text in scene.member_texts if text[1] == "SchedulerError"]) == 1_000
            )
        )
    assert len(scene.member_texts) == len(members)


@play
async def test_a_member_that_is_gone_or_has_a_node_is_told_nothing():
    async with GroupScene() as scene:
        scene.put()
        members = scene.join(0, 1, 2)
        scene.pods.pop("gang-0")
        scene.join(1, node="n1")
        scene.reports.refused(KEY, members, "Unschedulable", "2 of 3 fit")
        await scene.settled()
    assert [uid for uid, _, _ in scene.member_texts] == ["gang-2"]
