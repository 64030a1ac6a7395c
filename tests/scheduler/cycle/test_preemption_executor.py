"""Preemptions carried out: everything real but the API server and the watch."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from cache.pod_group_objects import GROUP_LABEL, GroupKey, GroupSource
from plugins.framework.cluster_events import ASSIGNED_POD_DELETE
from plugins.framework.status import SUCCESS
from plugins.framework.victims import Victims
from scheduler.client.errors import ApiError
from scheduler.cycle.preemption_executor import (
    MAX_EVICTIONS,
)
from scheduler.pod_groups.preemption import GroupVictims
from scheduler.queueing import entry_uid
from scheduler.queueing.queue_states import QueueState
from tests.builders import pod
from tests.fakes.eviction_api import FakeEvictionApi
from tests.scheduler.cycle.preemption_scene import (
    FORBIDDEN,
    PREEMPTOR,
    Scene,
    eventually,
    evicting_one,
    play,
    victims,
)
from tests.scheduler.informers.harness import until
from tests.scheduler.queueing.test_groups import GroupStage, member

if TYPE_CHECKING:
    from cache.pod_info import PodInfo


def test_all_victims_are_deleted_the_last_one_by_itself():
    scene = play(victims(4))
    assert sorted(scene.api.deleted) == ["v0", "v1", "v2", "v3"]
    assert scene.api.writes[-2:] == [("patch", "v3"), ("delete", "v3")]


def test_the_condition_names_the_scheduler():
    scene = play(victims(1))
    ((condition,),) = [patch["conditions"] for patch in scene.api.patched]
    assert condition["message"] == "berth: preempting to accommodate a higher priority pod"


def test_an_event_tells_each_victim_by_whom():
    scene = play(victims(1))
    (event,) = [call.body for call in scene.writes.calls if call.verb == "create"]
    assert (event["reason"], event["action"], event["note"]) == (
        "Preempted",
        "Preempting",
        "Preempted by pod u-p on node n1",
    )
    assert (event["regarding"]["name"], event["related"]["name"]) == ("v0", "preemptor")


def test_metrics_count_victims_and_the_result():
    scene = play(victims(3))
    assert scene.counter("scheduler_preemption_victims_sum") == 3
    result = 'scheduler_preemption_goroutines_execution_total{result="success"}'
    assert scene.counter(result) == 1


def test_not_more_than_so_many_evictions_are_under_way_at_a_time():
    async def scene() -> Scene:
        api = FakeEvictionApi()
        api.gate.clear()
        listed = victims(MAX_EVICTIONS + 20)
        made = Scene(api, *listed)
        made.preempt(listed)
        await eventually(lambda: api.under_way >= MAX_EVICTIONS)
        for _ in range(50):
            await asyncio.sleep(0)
        api.gate.set()
        await made.executor.drain(30)
        return made

    made = asyncio.run(scene())
    assert made.api.most_under_way == MAX_EVICTIONS
    assert len(made.api.deleted) == MAX_EVICTIONS + 20


def test_victims_that_are_leaving_already_are_left_alone():
    leaving = pod("v0").uid("u-0").on("n1").terminating().info()
    scene = play([leaving])
    assert scene.api.writes == []
    assert not scene.executor.is_running("u-p")


class TestWhileItRuns:
    """What the queue makes of a preemptor whose victims are being evicted."""

    def test_it_is_kept_out_until_its_last_victim_leaves(self):
        async def scene() -> list[QueueState]:
            api = FakeEvictionApi()
            api.gate.clear()
            listed = victims(2)
            made = Scene(api, *listed)
            made.preempt(listed)
            made.refuse()
            await eventually(lambda: api.under_way > 0)
            rooms = []
            made.watch_shows_gone("v0")
            rooms.append(made.state)
            api.gate.set()
            await eventually(lambda: "v1" in api.deleted)
            made.watch_shows_gone("v1")
            rooms.append(made.state)
            await made.executor.drain(30)
            return rooms

        kept_out, tried_again = asyncio.run(scene())
        assert kept_out is QueueState.GATED
        assert tried_again in (QueueState.ACTIVE, QueueState.BACKOFF)

    def test_the_watch_may_be_faster_than_the_answer_to_the_delete(self):
        async def scene() -> QueueState:
            made = await evicting_one()
            made.watch_shows_gone("v0")
            room = made.state
            made.api.gate.set()
            await made.executor.drain(30)
            return room

        assert asyncio.run(scene()) in (QueueState.ACTIVE, QueueState.BACKOFF)


class TestWhenNoEventWillCome:
    """A preemptor is never left waiting for what has happened already."""

    def test_a_last_victim_that_was_gone_before_we_came(self):
        async def scene() -> QueueState:
            made = Scene(FakeEvictionApi(), *victims(1))
            made.preempt(victims(1))
            made.watch_shows_gone("v0")
            made.refuse()
            await made.executor.drain(30)
            return made.state

        assert asyncio.run(scene()) is QueueState.ACTIVE

    def test_a_last_victim_that_is_gone_is_waited_for_while_the_watch_still_shows_it(self):
        scene = play(victims(1), FakeEvictionApi(deletes=[ApiError(404, "NotFound", "gone")]))
        before = scene.state
        scene.watch_shows_gone("v0")
        after = scene.state
        assert before is QueueState.UNSCHEDULABLE
        assert after in (QueueState.ACTIVE, QueueState.BACKOFF)

    def test_each_of_several_victims_is_waited_for(self):
        tried = (QueueState.ACTIVE, QueueState.BACKOFF)

        async def scene() -> tuple[bool, bool]:
            gone = ApiError(404, "NotFound", "gone")
            made = Scene(FakeEvictionApi(deletes=[gone]), *victims(2))
            made.preempt(victims(2))
            made.watch_shows_gone("v1")
            made.refuse()
            await made.executor.drain(30)
            before = made.state in tried
            made.watch_shows_gone("v0")
            return before, made.state in tried

        assert asyncio.run(scene()) == (False, True)

    def test_a_victim_that_was_turned_back(self):
        scene = play(victims(1), held=["u-0"])
        assert (scene.state, scene.api.writes) == (QueueState.ACTIVE, [])

    def test_a_victim_whose_binding_has_failed_is_left_alone(self):
        async def scene() -> tuple[QueueState, list[str]]:
            made = Scene(FakeEvictionApi(), *victims(1))
            made.unplaced = {"u-0"}
            made.preempt(victims(1))
            made.refuse()
            await made.executor.drain(30)
            return made.state, made.api.deleted

        assert asyncio.run(scene()) == (QueueState.ACTIVE, [])

    def test_a_last_victim_whose_binding_fails_while_it_is_deleted(self):
        async def scene() -> QueueState:
            (victim,) = victims(1)
            made = Scene(FakeEvictionApi(), victim)
            made.live[victim.name] = pod(victim.name).uid(victim.uid).build()
            made.preempt([victim])
            made.refuse()
            await made.executor.drain(30)
            return made.state

        assert asyncio.run(scene()) is QueueState.ACTIVE

    def test_a_last_victim_whose_binding_fails_and_which_is_gone_before_the_answer(self):
        async def scene() -> QueueState:
            made = await evicting_one()
            # The failure of its binding wakes others, but the preemptor is kept out. To the watch
            # it never had a node, so that its end is no news to anybody.
            made.queue.move_all(ASSIGNED_POD_DELETE, made.live["v0"], None)
            del made.live["v0"]
            before = made.state
            made.api.gate.set()
            await made.executor.drain(30)
            assert before is QueueState.GATED
            return made.state

        assert asyncio.run(scene()) is QueueState.ACTIVE

    @pytest.mark.parametrize("count", [1, 3])
    def test_a_refusal(self, count):
        scene = play(victims(count), FakeEvictionApi(deletes=[FORBIDDEN] * count))
        assert scene.state is QueueState.BACKOFF

    def test_a_refusal_before_its_attempt_has_ended(self):
        async def scene() -> QueueState:
            made = Scene(FakeEvictionApi(patches=[FORBIDDEN]), *victims(1))
            made.preempt(victims(1))
            await made.executor.drain(30)
            made.refuse()
            return made.state

        assert asyncio.run(scene()) in (QueueState.ACTIVE, QueueState.BACKOFF)


class TestFailure:
    def test_the_last_victim_is_spared(self):
        scene = play(victims(2), FakeEvictionApi(patches=[FORBIDDEN]))
        assert scene.api.deleted == []

    def test_the_nomination_ends(self):
        scene = play(victims(1), FakeEvictionApi(patches=[FORBIDDEN]))
        assert scene.queue.nominator.node_of("u-p") is None

    def test_the_result_is_counted_as_an_error(self):
        scene = play(victims(1), FakeEvictionApi(patches=[FORBIDDEN]))
        result = 'scheduler_preemption_goroutines_execution_total{result="error"}'
        assert scene.counter(result) == 1


class TestLowerNominations:
    """Pods of a lower priority that are nominated for the node may no longer fit there."""

    def play(self, priority: int) -> Scene:
        async def scene() -> Scene:
            listed = victims(1)
            made = Scene(FakeEvictionApi(), *listed)
            lower = pod("lower").uid("u-l").scheduler("berth").priority(priority)
            made.refuse("n1", made._pop(lower))
            return await made.play(listed)

        return asyncio.run(scene())

    def test_they_lose_their_nomination_and_are_tried_again(self):
        scene = self.play(5)
        assert scene.queue.nominator.node_of("u-l") is None
        assert scene.queue.state_of("u-l") is QueueState.ACTIVE

    def test_pods_of_the_same_priority_keep_theirs(self):
        scene = self.play(10)
        assert scene.queue.nominator.node_of("u-l") == "n1"
        assert scene.queue.state_of("u-l") is QueueState.UNSCHEDULABLE


def test_two_preemptors_with_one_victim_delete_it_once():
    async def scene() -> list[str]:
        listed = victims(1)
        made = Scene(FakeEvictionApi(), *listed)
        other = made._pop(pod("other").uid("u-o").scheduler("berth").priority(10))
        made.preempt(listed)
        made.executor.start(other.info, "n1", Victims(tuple(listed)), "DefaultPreemption")
        await made.executor.drain(30)
        return made.api.deleted

    assert asyncio.run(scene()) == ["v0"]


def test_a_victim_whose_delete_was_accepted_is_not_deleted_again_before_the_watch_shows_it():
    async def scene() -> list[str]:
        listed = victims(1)
        made = Scene(FakeEvictionApi(), *listed)
        made.preempt(listed)
        await made.executor.drain(30)
        made.preempt(listed)
        await made.executor.drain(30)
        return made.api.deleted

    assert asyncio.run(scene()) == ["v0"]


def test_a_preemptor_that_is_deleted_meanwhile_leaves_nothing_behind():
    async def scene() -> Scene:
        listed = victims(1)
        made = Scene(FakeEvictionApi(patches=[FORBIDDEN]), *listed)
        made.preempt(listed)
        del made.live["preemptor"]
        made.queue.delete("u-p")
        made.refuse()
        await made.executor.drain(30)
        return made

    made = asyncio.run(scene())
    assert len(made.queue.nominator) == 0
    assert (made.state, len(made.executor._running)) == (QueueState.NOWHERE, 0)


class TestGangs:
    """Victims that are evicted together, and preemptors that are groups."""

    KEY = GroupKey("default", "g", GroupSource.LABEL)

    def members(self, count: int) -> list[PodInfo]:
        made = (pod(f"v{i}").uid(f"u-{i}").label(GROUP_LABEL, "g").on("n1") for i in range(count))
        return [each.info() for each in made]

    def test_a_chosen_victim_is_leaving_until_the_watch_shows_it(self):
        async def scene() -> list[tuple[str, ...]]:
            listed = victims(1)
            made = Scene(FakeEvictionApi(), *listed)
            seen = [tuple(made.executor.leaving())]
            made.preempt(listed)
            seen.append(tuple(made.executor.leaving()))
            await made.executor.drain(30)
            seen.append(tuple(made.executor.leaving()))
            return seen

        assert asyncio.run(scene()) == [(), ("u-0",), ("u-0",)]

    @pytest.mark.parametrize("gangs", [frozenset(), frozenset({KEY})], ids=["pods", "gang"])
    def test_a_gang_that_has_lost_a_member_goes_whole_even_if_nobody_needs_it_any_more(self, gangs):
        async def scene() -> list[str]:
            api = FakeEvictionApi()
            listed = self.members(MAX_EVICTIONS + 3)
            made = Scene(api, *listed)
            api.gate.clear()
            found = Victims(tuple(listed), 0, gangs)
            made.executor.start(made.queued.info, "n1", found, "DefaultPreemption")
            await eventually(lambda: api.under_way >= MAX_EVICTIONS)
            made.live.pop("preemptor")
            api.gate.set()
            await made.executor.drain(30)
            return api.deleted

        deleted = asyncio.run(scene())
        assert len(deleted) == (MAX_EVICTIONS + 3 if gangs else MAX_EVICTIONS)

    @pytest.mark.parametrize("is_refused", [False, True], ids=["evicted", "refused"])
    def test_a_gang_is_told_before_its_members_go_and_when_none_did(self, is_refused):
        async def scene() -> Scene:
            api = FakeEvictionApi(patches=[FORBIDDEN] * 2 if is_refused else ())
            listed = self.members(2)
            made = Scene(api, *listed)
            found = Victims(tuple(listed), 0, frozenset({self.KEY}), 2)
            made.executor.start(made.queued.info, "n1", found, "DefaultPreemption")
            await made.executor.drain(30)
            return made

        made = asyncio.run(scene())
        told = [("evicting", "default/g", 0), ("told", "default/g", 0)]
        assert made.gangs.lines == told + [("spared", "default/g", 0)] * is_refused
        assert made.counter("berth_gang_victims_total") == 2

    def test_a_gang_is_evicted_until_the_watch_shows_that_its_members_leave(self):
        async def scene() -> list[bool]:
            listed = self.members(2)
            made = Scene(FakeEvictionApi(), *listed)
            for each in listed:
                made.pods.groups.pod_changed(None, each.pod)
            found = Victims(tuple(listed), 0, frozenset({self.KEY}), 2)
            made.executor.start(made.queued.info, "n1", found, "DefaultPreemption")
            await made.executor.drain(30)
            seen = [made.pods.groups.standing(self.KEY).is_evicted]
            for each in listed:
                made.pods.groups.pod_changed(each.pod, None)
                seen.append(made.pods.groups.standing(self.KEY).is_evicted)
            return seen

        assert asyncio.run(scene()) == [True, True, False]

    def group(self, *listed: PodInfo) -> GroupVictims:
        members = ((PREEMPTOR.info(), "n1"), (pod("second").uid("u-2nd").info(), "n2"))
        return GroupVictims(listed, 0, members, priority=10)

    def test_a_group_preempts_as_one(self):
        async def scene() -> Scene:
            listed = victims(3)
            made = Scene(FakeEvictionApi(), *listed)
            made.recorder.start()
            assert made.executor.start_group(self.KEY, "u-g", self.group(*listed)) == SUCCESS
            assert made.executor.is_running(entry_uid(self.KEY))
            assert not made.executor.is_running("u-p")
            await made.executor.drain(30)
            await made.recorder.drain(30)
            await made.recorder.stop()
            return made

        made = asyncio.run(scene())
        assert not made.executor.is_running(entry_uid(self.KEY))
        assert sorted(made.api.deleted) == ["v0", "v1", "v2"]
        notes = {call.body["note"] for call in made.writes.calls if call.verb == "create"}
        assert notes == {"Preempted by podgroup u-g on node cluster"}
        messages = {patch["conditions"][0]["message"] for patch in made.api.patched}
        assert messages == {"berth: preempting to accommodate a higher priority podgroup"}

    def test_a_pod_and_a_group_with_one_victim_delete_it_once(self):
        async def scene() -> list[str]:
            listed = victims(2)
            made = Scene(FakeEvictionApi(), *listed)
            made.preempt(listed)
            made.executor.start_group(self.KEY, "u-g", self.group(*listed))
            await made.executor.drain(30)
            return made.api.deleted

        assert sorted(asyncio.run(scene())) == ["v0", "v1"]

    def test_pods_of_a_lower_priority_lose_their_nomination_for_all_nodes_of_a_group(self):
        async def scene() -> Scene:
            listed = victims(1)
            made = Scene(FakeEvictionApi(), *listed)
            for name, node_name, priority in (("a", "n1", 9), ("b", "n2", 9), ("c", "n2", 10)):
                builder = pod(name).uid(name).scheduler("berth").priority(priority)
                made.refuse(node_name, made._pop(builder))
            made.executor.start_group(self.KEY, "u-g", self.group(*listed))
            await made.executor.drain(30)
            return made

        nominator = asyncio.run(scene()).queue.nominator
        assert [nominator.node_of(uid) for uid in ("a", "b", "c")] == [None, None, "n2"]

    def test_a_group_is_tried_again_when_no_event_of_a_victim_is_left_to_come(self):
        async def scene() -> QueueState:
            stage = GroupStage()
            stage.group(1)
            stage.show(member("a").priority(10))
            entry = stage.pop_group()
            stage.refuse_group(entry, *(member("a"),))
            listed = victims(1)
            made = Scene(FakeEvictionApi(), *listed)
            (info,) = (queued.info for queued in entry.tried)
            made.live[info.name] = info.pod
            made.executor._queue = stage.queue
            found = GroupVictims(tuple(listed), 0, ((info, "n1"),), priority=10)
            made.executor.start_group(entry.key, "u-g", found)
            del made.live[listed[0].name]
            await made.executor.drain(30)
            return stage.queue.state_of(entry.info.uid)

        assert asyncio.run(scene()) is QueueState.ACTIVE


def test_nobody_is_evicted_any_more_for_a_preemption_that_a_shutdown_cancelled():
    async def scene() -> list[str]:
        api, listed = FakeEvictionApi(), victims(1)
        api.connected.clear()
        made = Scene(api, *listed)
        made.preempt(listed)
        await until(lambda: api.writes)
        await made.executor.drain(0)
        api.connected.set()
        for _ in range(20):
            await asyncio.sleep(0)
        return api.deleted

    assert asyncio.run(scene()) == []
