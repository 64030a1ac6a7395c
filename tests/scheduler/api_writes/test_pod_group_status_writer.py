from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from cache.pod_group_objects import GroupSource
from cache.pod_groups import PodGroups
from scheduler.api_writes.pod_group_status_writer import (
    FORBIDDEN_S,
    MAX_CONDITIONS,
    MAX_TRIES,
    PUT_OFF_S,
    PodGroupStatusWriter,
)
from tests.fakes.clock import FakeClock
from tests.fakes.object_api import FakeObjectApi
from tests.fakes.ports import FakeExecutor, fake_ports
from tests.fakes.refusals import lost, refusal
from tests.pod_group_builders import KEY, KINDS, X_KEY, member, raw_group, raw_x_group

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.filterwarnings("error")


def play(scene):
    """Turn a coroutine function into a test."""
    return lambda: asyncio.run(scene())


class GroupScene:
    """A writer that leads, an API server with groups, and a clock that runs while all wait."""

    def __init__(self, *faults: Any, leads: bool = True, names=("berth",), **options: Any) -> None:
        self.api = FakeObjectApi()
        self.api.faults.extend(faults)
        self.clock = FakeClock()
        self.groups = PodGroups()
        self.api.watch(KINDS[GroupSource.FIELD], self.groups.pod_group_changed)
        self.api.watch(KINDS[GroupSource.LABEL], self.groups.x_pod_group_changed)
        ports = fake_ports(
            self.api, self.clock, wall=self.clock, executor=FakeExecutor(self._sleep)
        )
        self.writer = PodGroupStatusWriter(
            ports, self.groups, KINDS.get, lambda: frozenset(names), **options
        )
        self._leads = leads
        self.times: list[float] = []

    async def _sleep(self, seconds: float) -> None:
        self.clock.advance(seconds)
        await asyncio.sleep(0)

    async def __aenter__(self):
        self.writer.start()
        if self._leads:
            self.writer.lead()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.writer.stop()

    def put(self, key=KEY, minimum: int = 3, **status: Any) -> None:
        """Let somebody create or replace a group."""
        make = raw_group if key.source is GroupSource.FIELD else raw_x_group
        self.api.put(KINDS[key.source], key.namespace, key.name, make(minimum, key=key, **status))

    def join(self, *numbers: int, of=KEY, phase: str = "Pending", **more: Any) -> None:
        """Let members come, or change to a phase."""
        for number in numbers:
            self.groups.pod_changed(None, member(number, phase, of=of, **more))

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until something is true."""
        async with asyncio.timeout(30):
            while not condition():  # noqa: ASYNC110 - not every condition has an event
                await asyncio.sleep(0)

    async def settled(self) -> None:
        """Wait until nothing is left to be written."""
        for _ in range(3):
            await asyncio.sleep(0)
        assert await self.writer.drain(3_600) == 0

    def status(self, key=KEY) -> dict[str, Any]:
        return self.api.raw(KINDS[key.source], key.namespace, key.name).get("status", {})

    def said(self, key=KEY) -> list[tuple[str, str, str]]:
        """The conditions of a group."""
        conditions = self.status(key).get("conditions", ())
        return [(each["status"], each["reason"], each["message"]) for each in conditions]

    @property
    def patches(self) -> list[Any]:
        return [patch["status"] for _, _, _, patch in self.api.patches]


# --- conditions ---------------------------------------------------------------------------------


@play
async def test_a_refusal_is_written():
    async with GroupScene() as scene:
        scene.put()
        scene.join(0)
        scene.writer.report(KEY, "Unschedulable", "3 of 4 fit")
        await scene.settled()
    assert scene.said() == [("False", "Unschedulable", "3 of 4 fit")]
    (patch,) = scene.api.patches
    assert patch[3]["metadata"] == {"uid": "gang-uid"}


@play
async def test_the_same_again_is_not_written():
    async with GroupScene() as scene:
        scene.put()
        scene.join(0)
        for _ in range(3):
            scene.writer.report(KEY, "Unschedulable", "3 of 4 fit")
            await scene.settled()
    assert len(scene.patches) == 1


@play
async def test_the_same_again_is_not_written_before_the_watch_shows_it():
    async with GroupScene() as scene:
        scene.put()
        scene.join(0)
        scene.api.hold_watches()
        for _ in range(3):
            scene.writer.report(KEY, "Unschedulable", "3 of 4 fit")
            await scene.settled()
    assert len(scene.patches) == 1


@play
async def test_a_group_that_was_scheduled_stays_so():
    async with GroupScene() as scene:
        scene.put()
        scene.join(0)
        scene.writer.report(KEY, "Scheduled", "whole")
        scene.writer.report(KEY, "Unschedulable", "before it was written")
        await scene.settled()
        scene.writer.report(KEY, "Unschedulable", "after it was written")
        await scene.settled()
    assert scene.said() == [("True", "Scheduled", "whole")]


@play
async def test_a_success_that_failed_to_be_written_is_not_lost_to_a_refusal():
    async with GroupScene(*[refusal("PATCH", 503)] * 5) as scene:
        scene.put()
        scene.join(0)
        scene.writer.report(KEY, "Scheduled", "whole")
        await scene.until(lambda: scene.patches)
        scene.writer.report(KEY, "Unschedulable", "too late")
        await scene.settled()
    assert scene.said() == [("True", "Scheduled", "whole")]


@play
async def test_an_eviction_is_told_beside_the_other_condition():
    async with GroupScene() as scene:
        scene.put()
        scene.join(0)
        scene.writer.report(KEY, "Scheduled", "whole")
        scene.writer.evicting(KEY, "room for more")
        assert await scene.writer.written(KEY)
        told = scene.said()
        scene.writer.spared(KEY, "enough")
        await scene.settled()
    assert ("True", "PreemptionByScheduler", "room for more") in told
    assert scene.said() == [
        ("True", "Scheduled", "whole"),
        ("False", "PreemptionByScheduler", "enough"),
    ]


@play
async def test_waiting_for_a_write_ends_when_time_is_up():
    async with GroupScene(*[refusal("PATCH", None)] * 100) as scene:
        scene.put()
        scene.join(0)
        scene.writer.evicting(KEY, "room for more")
        assert not await scene.writer.written(KEY)


@play
async def test_nothing_is_written_about_a_group_without_an_object():
    async with GroupScene() as scene:
        scene.join(0)
        scene.writer.report(KEY, "Unschedulable", "no object")
        await scene.settled()
    assert scene.patches == []


@play
async def test_content_about_an_object_that_was_made_again_is_dropped():
    async with GroupScene() as scene:
        scene.put()
        scene.join(0)
        scene.writer.report(KEY, "Unschedulable", "old")
        for _ in range(2):
            await asyncio.sleep(0)
        scene.writer.report(KEY, "Unschedulable", "old, and held back by the pace")
        await asyncio.sleep(0)
        again = raw_group(3)
        again["metadata"]["uid"] = "another"
        scene.api.put(KINDS[GroupSource.FIELD], "ns", "gang", again)
        await scene.settled()
    assert scene.said() == []


@pytest.mark.parametrize(
    ("scheduler", "count"), [pytest.param("berth", 1, id="ours"), pytest.param("x", 0, id="not")]
)
def test_conditions_are_only_for_groups_of_ours(scheduler, count):
    async def scene():
        async with GroupScene() as made:
            made.put()
            made.join(0, scheduler=scheduler)
            made.writer.report(KEY, "Unschedulable", "3 of 4 fit")
            await made.settled()
        assert len(made.patches) == count

    asyncio.run(scene())


@play
async def test_a_group_whose_minimum_has_nodes_was_scheduled_whoever_saw_it():
    async with GroupScene() as scene:
        scene.put(minimum=2)
        scene.join(0, node="n1")
        scene.join(1, phase="Succeeded")
        await scene.settled()
    assert [(status, reason) for status, reason, _ in scene.said()] == [("True", "Scheduled")]


@play
async def test_conditions_beyond_the_limit_are_dropped_and_counted():
    async with GroupScene(leads=False) as scene:
        scene.writer._demanded.update(range(MAX_CONDITIONS))
        scene.writer.report(KEY, "Unschedulable", "one too many")
    assert scene.writer.statistics().dropped == 1


# --- phases -------------------------------------------------------------------------------------


@play
async def test_a_group_without_members_is_pending():
    async with GroupScene() as scene:
        scene.put(X_KEY)
        await scene.settled()
    assert scene.status(X_KEY) == {"phase": "Pending"}


@play
async def test_a_life_goes_through_the_phases():
    phases = []
    async with GroupScene() as scene:
        scene.put(X_KEY)
        for phase in ("Pending", "Running", "Succeeded"):
            scene.join(0, 1, 2, of=X_KEY, phase=phase, owners=("job",))
            await scene.settled()
            phases.append(scene.status(X_KEY)["phase"])
    assert phases == ["Scheduling", "Running", "Finished"]
    assert scene.status(X_KEY)["occupiedBy"] == "ns/job"
    assert scene.status(X_KEY)["succeeded"] == 3


@play
async def test_a_phase_that_was_over_before_the_next_write_counts():
    async with GroupScene() as scene:
        scene.put(X_KEY)
        scene.join(0, 1, 2, of=X_KEY, phase="Running")
        await scene.settled()
        scene.join(0, of=X_KEY, phase="Failed")
        await asyncio.sleep(0)
        scene.join(0, of=X_KEY, phase="Running")
        await scene.settled()
    assert scene.status(X_KEY)["phase"] == "Failed"


@play
async def test_the_start_stays_while_the_watch_is_behind():
    async with GroupScene() as scene:
        scene.put(X_KEY)
        await scene.settled()
        scene.api.hold_watches()
        scene.join(0, 1, 2, of=X_KEY)
        await scene.settled()
        started = scene.status(X_KEY)["scheduleStartTime"]
        scene.clock.advance(10)
        scene.join(0, of=X_KEY, phase="Running")
        await scene.settled()
    assert scene.status(X_KEY)["scheduleStartTime"] == started
    assert scene.status(X_KEY)["running"] == 1


@pytest.mark.parametrize(
    ("options", "members", "phase"),
    [
        pytest.param({"writes_x_statuses": False}, ["berth"], None, id="left to the controller"),
        pytest.param({}, ["other"], None, id="members of another scheduler"),
        pytest.param({}, ["other", "berth"], "Pending", id="some of ours"),
    ],
)
def test_statuses_are_left_to_others(options, members, phase):
    async def scene():
        async with GroupScene(leads=False, **options) as made:
            made.put(X_KEY)
            for number, scheduler in enumerate(members):
                made.join(number, of=X_KEY, scheduler=scheduler, phase="Succeeded")
            made.writer.lead()
            await made.settled()
        assert made.status(X_KEY).get("phase") == phase

    asyncio.run(scene())


# --- pace ---------------------------------------------------------------------------------------


@play
async def test_a_group_is_written_once_a_second():
    async with GroupScene() as scene:
        scene.put()
        scene.join(0)
        await scene.settled()
        began_s = scene.clock()
        for number in range(20):
            scene.writer.report(KEY, "Unschedulable", f"{number} fit")
            await asyncio.sleep(0)
            scene.clock.advance(0.1)
        await scene.settled()
    assert scene.said() == [("False", "Unschedulable", "19 fit")]
    assert len(scene.patches) <= 1 + (scene.clock() - began_s)


@play
async def test_another_group_does_not_wait_for_that():
    other = KEY._replace(name="other")
    async with GroupScene() as scene:
        for key in (KEY, other):
            scene.put(key)
            scene.join(0, of=key)
        scene.writer.report(KEY, "Unschedulable", "first")
        await scene.settled()
        scene.writer.report(KEY, "Unschedulable", "second")
        scene.writer.report(other, "Unschedulable", "at once")
        now_s = scene.clock()
        while not scene.said(other):
            await asyncio.sleep(0)
            assert scene.clock() <= now_s + 1
        await scene.settled()
    assert [text for _, _, text in scene.said()] == ["second"]


# --- leaders ------------------------------------------------------------------------------------


@play
async def test_a_standby_writes_nothing():
    async with GroupScene(leads=False) as scene:
        scene.put(X_KEY)
        scene.put(minimum=1)
        scene.join(0, node="n1")
        scene.writer.report(KEY, "Scheduled", "whole")
        await scene.settled()
    assert scene.patches == []


@play
async def test_a_new_leader_writes_what_is_out_of_date_and_nothing_else():
    keys = [X_KEY._replace(name=f"g{number}") for number in range(1_000)]
    async with GroupScene(leads=False) as scene:
        for number, key in enumerate(keys):
            scene.put(key, phase="" if number % 100 == 0 else "Pending")
        scene.writer.lead()
        await scene.settled()
    assert len(scene.patches) == 10
    assert {scene.status(key)["phase"] for key in keys} == {"Pending"}


@play
async def test_a_new_leader_says_that_a_group_was_scheduled():
    async with GroupScene(leads=False) as scene:
        scene.put(minimum=1)
        scene.join(0, node="n1")
        scene.writer.lead()
        await scene.settled()
    assert [status for status, _, _ in scene.said()] == ["True"]


# --- failures -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(refusal("PATCH", 503), id="busy"),
        pytest.param(refusal("PATCH", None), id="unreachable"),
        pytest.param(refusal("PATCH", 409), id="conflict"),
        pytest.param(lost("PATCH"), id="no answer"),
        pytest.param((lost("PATCH"), True), id="no answer, but carried out"),
    ],
)
def test_a_write_that_fails_is_sent_again(fault):
    async def scene():
        async with GroupScene(fault) as made:
            made.put()
            made.join(0)
            made.writer.report(KEY, "Unschedulable", "3 of 4 fit")
            await made.settled()
        assert made.said() == [("False", "Unschedulable", "3 of 4 fit")]
        assert made.writer.statistics().failed == 0

    asyncio.run(scene())


@play
async def test_a_refused_write_is_given_up_and_counted():
    async with GroupScene(refusal("PATCH", 422)) as scene:
        scene.put()
        scene.join(0)
        scene.writer.report(KEY, "Unschedulable", "3 of 4 fit")
        await scene.settled()
        assert scene.writer.statistics().failed == 1
        scene.writer.report(KEY, "Unschedulable", "2 of 4 fit")
        await scene.settled()
    assert scene.said() == [("False", "Unschedulable", "2 of 4 fit")]


@play
async def test_writes_that_fail_in_one_namespace_are_given_up():
    async with GroupScene(*[refusal("PATCH", 500)] * MAX_TRIES) as scene:
        scene.put()
        scene.join(0)
        scene.writer.report(KEY, "Unschedulable", "3 of 4 fit")
        await scene.settled()
    assert len(scene.patches) == MAX_TRIES
    assert scene.writer.statistics().failed == 1


@play
async def test_what_nobody_answered_is_written_later():
    async with GroupScene(*[refusal("PATCH", None)] * MAX_TRIES) as scene:
        scene.put(X_KEY)
        scene.join(0, 1, 2, of=X_KEY, phase="Succeeded")
        began_s = scene.clock()
        await scene.settled()
    assert scene.status(X_KEY)["phase"] == "Finished"
    assert scene.clock() - began_s >= PUT_OFF_S
    assert scene.writer.statistics().put_off == 1


@play
async def test_a_group_that_is_gone_is_no_failure():
    async with GroupScene() as scene:
        scene.put()
        scene.join(0)
        scene.api.hold_watches()
        scene.api.delete(KINDS[GroupSource.FIELD], "ns", "gang")
        scene.writer.report(KEY, "Unschedulable", "3 of 4 fit")
        await scene.settled()
    assert scene.writer.statistics().failed == 0
    assert len(scene.patches) == 1


@play
async def test_without_the_right_to_write_there_are_few_requests():
    async with GroupScene(refusal("PATCH", 403)) as scene:
        scene.put()
        scene.join(0)
        for number in range(10):
            scene.writer.report(KEY, "Unschedulable", f"{number} fit")
            await scene.settled()
        assert len(scene.patches) == 1
        scene.clock.advance(FORBIDDEN_S)
        scene.writer.report(KEY, "Unschedulable", "with the right")
        await scene.settled()
    assert scene.said() == [("False", "Unschedulable", "with the right")]


@play
async def test_a_group_that_goes_leaves_nothing_behind():
    async with GroupScene() as scene:
        scene.put(X_KEY)
        await scene.settled()
        scene.join(0, 1, 2, of=X_KEY)
        scene.api.delete(KINDS[GroupSource.LABEL], "ns", "gang")
        await scene.settled()
        assert not scene.writer._wanted
