from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
import structlog

from cache.pod_group_objects import PARTIAL_GANG_GRACE
from scheduler.api_writes.eviction import Evictor
from scheduler.cycle.partial_gangs import AGAIN_S, PartialGangs, count_partial
from tests.builders import pod
from tests.fakes.refusals import refusal
from tests.pod_group_builders import KEY, X_KEY
from tests.scheduler.cycle.group_scene import OURS, GroupScene, play

KEYS = [pytest.param(KEY, id="field"), pytest.param(X_KEY, id="label")]


class Gang(GroupScene):
    """A gang with a grace of ten minutes, and rounds over the partial ones."""

    def __init__(self, grace: str | None = "10m", key=KEY, minimum: int = 3) -> None:
        super().__init__()
        evictor = Evictor(self.ports, self.live_pod, lambda uid, plugin: False, lambda uid: True)
        self.partial = PartialGangs(
            self.ports, self.groups, self.live_pod, lambda: OURS, evictor, self.reports
        )
        annotations = {} if grace is None else {PARTIAL_GANG_GRACE: grace}
        self.put(key, minimum, annotations=annotations)

    async def round(self, after_s: float = 0.0) -> list[str]:
        """Do a round some time later; return the pods that were deleted by then."""
        self.clock.advance(after_s)
        self.partial.round()
        await self.until(lambda: not self.partial._tasks)
        return self.api.deleted


@pytest.mark.parametrize("key", KEYS)
def test_the_rest_of_a_partial_gang_is_evicted_after_its_grace(key):
    async def scene():
        async with Gang(key=key) as made:
            made.join(0, 1, of=key, phase="Running")
            made.join(2, of=key)
            assert await made.round() == []
            assert await made.round(599) == []
            assert sorted(await made.round(1)) == ["gang-0", "gang-1"]

    asyncio.run(scene())


@pytest.mark.parametrize(
    "grace",
    [
        pytest.param(None, id="absent"),
        pytest.param("", id="empty"),
        pytest.param("0s", id="zero"),
        pytest.param("-5m", id="negative"),
        pytest.param("soon", id="no duration"),
        pytest.param("10", id="without a unit"),
    ],
)
def test_a_gang_without_a_grace_stays(grace):
    async def scene():
        async with Gang(grace) as made:
            made.join(0, phase="Running")
            await made.round()
            assert await made.round(1_000_000) == []

    asyncio.run(scene())


@play
async def test_a_grace_that_cannot_be_read_is_logged_once():
    async with Gang("soon") as made:
        made.join(0, phase="Running")
        with structlog.testing.capture_logs() as logs:
            for _ in range(3):
                await made.round(1)
    assert len([each for each in logs if "cannot be read" in each["event"]]) == 1


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda made: made.join(2, phase="Running"), id="whole again"),
        pytest.param(lambda made: made.join(0, phase="Succeeded"), id="a member has succeeded"),
        pytest.param(lambda made: made.groups.assume(KEY, ["gang-2"]), id="the rest is decided"),
        pytest.param(lambda made: made.put(minimum=2), id="the minimum was lowered"),
        pytest.param(lambda made: made.leave(0, 1), id="all gone"),
    ],
)
@pytest.mark.parametrize("is_under_way", [False, True], ids=["before", "while evicting"])
def test_a_gang_that_is_partial_no_more_stays(change, is_under_way):
    async def scene():
        async with Gang() as made:
            made.join(0, 1, phase="Running")
            made.join(2)
            await made.round()
            if is_under_way:
                made.clock.advance(600)
                made.partial.round()
            change(made)
            assert await made.round(600) == []

    asyncio.run(scene())


@play
async def test_the_time_counts_from_the_last_time_it_became_partial():
    async with Gang() as made:
        made.join(0, 1, phase="Running")
        await made.round()
        await made.round(500)
        made.join(2, phase="Running")
        await made.round(50)
        made.leave(2)
        await made.round(50)
        assert await made.round(599) == []
        assert len(await made.round(1)) == 2


@play
async def test_only_members_of_ours_are_evicted():
    async with Gang(minimum=5) as made:
        made.join(0, phase="Running")
        made.join(1, phase="Running", scheduler="other")
        await made.round()
        assert await made.round(600) == ["gang-0"]


@pytest.mark.parametrize(
    ("scheduler", "count"), [pytest.param("berth", 1, id="ours"), pytest.param("x", 0, id="not")]
)
def test_only_gangs_of_ours_count_and_are_evicted(scheduler, count):
    async def scene():
        async with Gang() as made:
            made.join(0, phase="Running", scheduler=scheduler)
            assert count_partial(made.groups, OURS) == count
            await made.round()
            assert len(await made.round(600)) == count

    asyncio.run(scene())


@play
async def test_the_group_says_so_before_its_members_are_evicted():
    async with Gang() as made:
        made.api.faults.append(refusal("PATCH", 503))
        made.join(0, phase="Running")
        await made.round()
        assert await made.round(600) == ["gang-0"]
        writes = [(verb, path) for verb, path, _ in made.api.requests]
        await made.settled()
    group_status = ("PATCH", "podgroups.scheduling.k8s.io/status")
    assert writes == [group_status, group_status, ("PATCH", "pods/status")]
    message = "only 1 of at least 3 members have had a node for more than 600 s"
    assert made.said() == [("True", "PreemptionByScheduler", message)]
    assert ("PodGroup", "Evicting", message) in made.told
    assert ("Pod", "PartialGangEvicted", message) in made.told


@play
async def test_an_eviction_that_fails_is_begun_again_after_a_pause():
    async with Gang() as made:
        made.join(0, phase="Running")
        made.api.delete_answers = [refusal("DELETE", 403)]
        await made.round()
        assert await made.round(600) == []
        assert await made.round(AGAIN_S / 2) == []
        assert await made.round(AGAIN_S / 2) == ["gang-0"]


@play
async def test_members_on_their_way_out_are_left_to_go():
    async with Gang() as made:
        made.join(0, phase="Running")
        await made.round()
        await made.round(600)
        gone = leaving(made)
        made.groups.pod_changed(made.pods["gang-0"], gone)
        made.pods["gang-0"] = gone
        assert await made.round(10 * AGAIN_S) == ["gang-0"]
        await made.settled()
    assert len([reason for _, reason, _ in made.told if reason == "Evicting"]) == 1


def leaving(scene: Gang) -> Any:
    pod = scene.pods["gang-0"]
    since = msgspec.structs.replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    return msgspec.structs.replace(pod, metadata=since)


@play
async def test_a_member_that_cannot_be_read_is_evicted_with_the_others():
    async with Gang() as made:
        made.join(0, 1, phase="Running")
        await made.round()
        read = made.pods["gang-1"]
        odd = pod("gang-1").request(cpu="1e102").build().spec.containers
        spec = msgspec.structs.replace(read.spec, containers=odd)
        made.pods["gang-1"] = msgspec.structs.replace(read, spec=spec)

        assert sorted(await made.round(600)) == ["gang-0", "gang-1"]
        made.leave(0, 1)
        assert not made.groups.standing(KEY).is_evicted


@play
async def test_a_round_forgets_gangs_that_are_whole():
    async with Gang() as made:
        made.join(0, phase="Running")
        await made.round()
        made.leave(0)
        await made.round()
        assert not made.partial._gangs
