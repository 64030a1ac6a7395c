from __future__ import annotations

import asyncio
import gc
import itertools
from typing import TYPE_CHECKING

import msgspec
import pytest

from cache.objects import PodCondition
from cache.pod_info import PodInfo
from scheduler.api_writes.eviction import MAX_TRIES, Evicted, Evictor
from scheduler.client.errors import ApiError
from tests.builders import pod
from tests.fakes.eviction_api import FakeEvictionApi
from tests.fakes.ports import FakeExecutor, fake_ports
from tests.fakes.refusals import lost, refusal
from tests.scheduler.informers.harness import until

if TYPE_CHECKING:
    from cache.objects import Pod

VICTIM = pod("victim").uid("u-1").on("n1").build()
MESSAGE = "berth: preempting to accommodate a higher priority pod"


def error(status: int | None, message: str = "because", *, ambiguous: bool = False) -> ApiError:
    return lost("DELETE") if ambiguous else refusal("DELETE", status, message)


class Scene:
    def __init__(self, api: FakeEvictionApi, live: Pod | None = VICTIM) -> None:
        self.api = api
        self.live = live
        self.held: set[str] = set()
        self.wanted = True
        self.is_placed = True
        self.turned_back: list[tuple[str, str]] = []
        self.evictor = Evictor(
            fake_ports(api, wall=lambda: 1_700_000_000.0, executor=FakeExecutor(self._sleep)),
            lambda namespace, name: self.live,
            self._turn_back,
            lambda uid: self.is_placed,
        )

    def _turn_back(self, uid: str, plugin: str) -> bool:
        if uid in self.held:
            self.turned_back.append((uid, plugin))
        return uid in self.held

    async def _sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)

    async def evict(self, victim: Pod = VICTIM) -> Evicted:
        info = PodInfo(victim)
        return await self.evictor.evict(info, "DefaultPreemption", MESSAGE, lambda: self.wanted)


def evict(api: FakeEvictionApi | None = None, live: Pod | None = VICTIM) -> tuple[Evicted, Scene]:
    async def scene() -> tuple[Evicted, Scene]:
        made = Scene(api or FakeEvictionApi(), live)
        return await made.evict(), made

    return asyncio.run(scene())


def with_condition(reason: str, message: str = MESSAGE) -> Pod:
    condition = PodCondition(type="DisruptionTarget", status="True", reason=reason, message=message)
    status = msgspec.structs.replace(VICTIM.status, conditions=(condition,))
    return msgspec.structs.replace(VICTIM, status=status)


def stored(made: Pod) -> Pod:
    metadata = msgspec.structs.replace(made.metadata, resource_version="7")
    return msgspec.structs.replace(made, metadata=metadata)


MARKED = with_condition("PreemptionByScheduler")


def test_the_condition_is_written_before_the_pod_is_deleted():
    outcome, scene = evict()
    assert outcome is Evicted.DELETED
    assert scene.api.writes == [("patch", "victim"), ("delete", "victim")]


def test_both_writes_carry_the_pod_s_uid():
    _, scene = evict()
    assert scene.api.uids == ["u-1", "u-1"]


def test_the_condition_says_why():
    _, scene = evict()
    ((condition,),) = [patch["conditions"] for patch in scene.api.patched]
    assert condition == {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": MESSAGE,
        "lastProbeTime": None,
        "lastTransitionTime": "2023-11-14T22:13:20Z",
    }


def test_a_condition_that_is_there_already_is_not_written_again():
    _, scene = evict(live=with_condition("PreemptionByScheduler"))
    assert scene.api.writes == [("delete", "victim")]


def test_another_reason_for_the_disruption_is_replaced():
    _, scene = evict(live=with_condition("EvictionByEvictionAPI"))
    assert ("patch", "victim") in scene.api.writes


@pytest.mark.parametrize(
    "live",
    [
        pytest.param(None, id="gone"),
        pytest.param(pod("victim").uid("u-2").build(), id="made again under its name"),
        pytest.param(pod("victim").uid("u-1").terminating().build(), id="being deleted"),
    ],
)
def test_nothing_is_written_about_a_pod_that_leaves_anyway(live):
    outcome, scene = evict(live=live)
    assert (outcome, scene.api.writes) == (Evicted.GONE, [])


@pytest.mark.parametrize(
    "refusal",
    [
        pytest.param(error(404), id="not found"),
        pytest.param(error(422, "metadata.uid: is immutable"), id="another pod has the name"),
    ],
)
def test_a_pod_that_is_gone_when_its_condition_comes_is_not_deleted(refusal):
    outcome, scene = evict(FakeEvictionApi(patches=[refusal]))
    assert (outcome, scene.api.deleted) == (Evicted.GONE, [])


@pytest.mark.parametrize("status", [404, 409])
def test_a_pod_that_is_gone_when_it_is_deleted_is_gone(status):
    outcome, _ = evict(FakeEvictionApi(deletes=[error(status)]))
    assert outcome is Evicted.GONE


@pytest.mark.parametrize(
    "api",
    [
        pytest.param(FakeEvictionApi([error(404)], stored={"victim": VICTIM}), id="condition"),
        pytest.param(FakeEvictionApi(deletes=[error(404)], stored={"victim": VICTIM}), id="delete"),
        pytest.param(
            FakeEvictionApi([error(422, "metadata.uid: no")], stored={"victim": VICTIM}), id="uid"
        ),
    ],
)
def test_a_webhook_may_answer_that_a_pod_is_gone(api):
    with pytest.raises(ApiError):
        evict(api)


def test_a_busy_server_is_asked_again():
    outcome, scene = evict(
        FakeEvictionApi(deletes=[error(503), error(429)], stored={"victim": VICTIM})
    )
    assert (outcome, scene.api.deleted) == (Evicted.DELETED, ["victim"] * 3)


def test_a_delete_whose_answer_was_lost_is_settled_by_asking():
    stored = {"victim": pod("victim").uid("u-1").terminating().build()}
    outcome, scene = evict(FakeEvictionApi(deletes=[error(None, ambiguous=True)], stored=stored))
    assert (outcome, scene.api.deleted) == (Evicted.GONE, ["victim"])


def test_a_delete_that_was_not_carried_out_is_sent_again():
    outcome, scene = evict(
        FakeEvictionApi(deletes=[error(None, ambiguous=True)], stored={"victim": VICTIM})
    )
    assert (outcome, scene.api.deleted) == (Evicted.DELETED, ["victim"] * 2)


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param([error(403)], id="forbidden"),
        pytest.param([error(503)] * MAX_TRIES, id="no success"),
    ],
)
def test_a_refusal_for_good_is_told(answers):
    with pytest.raises(ApiError):
        evict(FakeEvictionApi(deletes=answers, stored={"victim": VICTIM}))


def test_two_preemptors_delete_a_victim_once():
    async def scene() -> tuple[list[Evicted], list[str]]:
        api = FakeEvictionApi()
        made = Scene(api)
        return await asyncio.gather(made.evict(), made.evict()), api.deleted

    outcomes, deleted = asyncio.run(scene())
    assert (sorted(each.value for each in outcomes), deleted) == (["deleted", "gone"], ["victim"])


def test_a_pod_whose_room_nobody_needs_is_left_alone():
    async def scene() -> tuple[Evicted, list[tuple[str, str]], list[tuple[str, str]]]:
        made = Scene(FakeEvictionApi())
        made.held.add("u-1")
        made.wanted = False
        return await made.evict(), made.turned_back, made.api.writes

    assert asyncio.run(scene()) == (Evicted.SPARED, [], [])


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param([], id="after its condition was written"),
        pytest.param([error(503)], id="after a first DELETE has failed"),
    ],
)
def test_a_pod_whose_room_nobody_needs_any_more_is_spared(answers):
    async def scene() -> tuple[Evicted, list[str]]:
        made = Scene(FakeEvictionApi(deletes=answers, stored={"victim": VICTIM}))
        asked = iter([True, True, *[True for _ in answers for _ in range(2)]])
        info = PodInfo(VICTIM)
        outcome = await made.evictor.evict(info, "P", MESSAGE, lambda: next(asked, False))
        return outcome, made.api.deleted

    assert asyncio.run(scene()) == (Evicted.SPARED, ["victim" for _ in answers])


@pytest.mark.parametrize(
    ("change", "end"),
    [
        pytest.param(lambda made: setattr(made, "wanted", False), Evicted.SPARED, id="not wanted"),
        pytest.param(lambda made: setattr(made, "live", None), Evicted.GONE, id="gone"),
    ],
)
def test_a_delete_that_waits_for_a_connection_is_not_sent_in_vain(change, end):
    async def scene() -> tuple[Evicted, list[str]]:
        made = Scene(FakeEvictionApi(stored={"victim": VICTIM}))
        made.api.connected.clear()
        eviction = asyncio.ensure_future(made.evict())
        await until(lambda: made.api.writes == [("patch", "victim")])
        await asyncio.sleep(0)
        change(made)
        made.api.connected.set()
        return await eviction, made.api.deleted

    assert asyncio.run(scene()) == (end, [])


class TestSpared:
    """What becomes of the condition of a pod that is not evicted after all."""

    @staticmethod
    def spare(api: FakeEvictionApi, wanted: int = 2) -> tuple[Evicted | int | None, Scene]:
        """Evict while somebody wants it, for so many questions; the outcome, or the refusal."""

        async def scene() -> tuple[Evicted | int | None, Scene]:
            made, asked = Scene(api), iter([True] * wanted)
            info = PodInfo(VICTIM)
            try:
                return await made.evictor.evict(
                    info, "P", MESSAGE, lambda: next(asked, False)
                ), made
            except ApiError as refused:
                return refused.status, made

        return asyncio.run(scene())

    @staticmethod
    def statuses(scene: Scene) -> list[str]:
        return [patch["conditions"][0]["status"] for patch in scene.api.patched]

    def test_it_is_taken_back(self):
        outcome, scene = self.spare(FakeEvictionApi(stored={"victim": stored(MARKED)}))
        assert (outcome, self.statuses(scene)) == (Evicted.SPARED, ["True", "False"])

    def test_from_the_version_that_was_looked_at(self):
        _, scene = self.spare(FakeEvictionApi(stored={"victim": stored(MARKED)}))
        assert scene.api.versions == ["", "7"]

    def test_also_when_its_own_answer_was_lost(self):
        api = FakeEvictionApi([error(None, ambiguous=True)], stored={"victim": stored(MARKED)})
        outcome, scene = self.spare(api)
        assert (outcome, self.statuses(scene)) == (Evicted.SPARED, ["True", "False"])

    def test_also_when_the_delete_is_refused(self):
        api = FakeEvictionApi(deletes=[error(403)], stored={"victim": stored(MARKED)})
        outcome, scene = self.spare(api, 9)
        assert (outcome, self.statuses(scene)) == (403, ["True", "False"])

    def test_not_when_the_delete_may_be_carried_out_yet(self):
        unanswered = [error(None, ambiguous=True)] * MAX_TRIES
        outcome, scene = self.spare(
            FakeEvictionApi(deletes=unanswered, stored={"victim": stored(MARKED)}), 99
        )
        assert (outcome, self.statuses(scene)) == (None, ["True"])

    @pytest.mark.parametrize(
        "found",
        [
            pytest.param(None, id="gone"),
            pytest.param(pod("victim").uid("u-2").build(), id="made again under its name"),
            pytest.param(VICTIM, id="it was never written"),
            pytest.param(with_condition("EvictionByEvictionAPI"), id="somebody else's"),
            pytest.param(with_condition("PreemptionByScheduler", "other: no"), id="of another one"),
            pytest.param(
                pod("victim").uid("u-1").preempted().terminating().build(), id="on its way out"
            ),
        ],
    )
    def test_nothing_is_taken_back_from_a_pod_that_is(self, found):
        kept = {} if found is None else {"victim": found}
        outcome, scene = self.spare(FakeEvictionApi(stored=kept))
        assert (outcome, self.statuses(scene)) == (Evicted.SPARED, ["True"])

    def test_a_pod_that_changes_meanwhile_keeps_it(self):
        api = FakeEvictionApi([None, error(409)], stored={"victim": stored(MARKED)})
        outcome, scene = self.spare(api)
        assert (outcome, self.statuses(scene)) == (Evicted.SPARED, ["True", "False"])


def test_a_pod_that_one_preemptor_has_spared_is_evicted_for_the_other():
    async def scene() -> tuple[list[Evicted], list[str]]:
        made = Scene(FakeEvictionApi())
        info, asked = PodInfo(VICTIM), iter([True])
        first = made.evictor.evict(info, "P", MESSAGE, lambda: next(asked, False))
        return await asyncio.gather(first, made.evict()), made.api.deleted

    assert asyncio.run(scene()) == ([Evicted.SPARED, Evicted.DELETED], ["victim"])


def test_a_preemptor_that_comes_just_as_an_eviction_ends_does_not_wait_for_it(monkeypatch):
    shield, waits = asyncio.shield, itertools.count()

    def few(task):
        assert next(waits) < 10, "the loop stands still"
        return shield(task)

    async def two() -> list[Evicted]:
        scene = Scene(FakeEvictionApi())
        scene.wanted = False
        comes = asyncio.Event()
        loop = asyncio.get_running_loop()
        first = asyncio.ensure_future(scene.evict())
        # The first one's task ends in the turn in which the second one starts, right before it.
        loop.call_soon(comes.set)
        await comes.wait()
        return [await scene.evict(), await first]

    monkeypatch.setattr(asyncio, "shield", few)
    assert asyncio.run(two()) == [Evicted.SPARED, Evicted.SPARED]


def test_an_eviction_that_fails_when_nobody_waits_for_it_any_more_is_no_error_of_the_loop():
    async def scene() -> list[str]:
        messages: list[str] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: messages.append(context["message"]))
        made = Scene(FakeEvictionApi(deletes=[error(403)]))
        made.api.gate.clear()
        preemption = asyncio.ensure_future(made.evict())
        await until(lambda: made.api.deleted)
        preemption.cancel()
        await asyncio.wait([preemption])
        (task,) = made.evictor._under_way.values()
        made.api.gate.set()
        await asyncio.wait([task])
        del task
        gc.collect()
        return messages

    assert asyncio.run(scene()) == []


def test_a_pod_that_has_no_node_any_more_is_left_alone():
    async def scene() -> tuple[Evicted, list[tuple[str, str]]]:
        made = Scene(FakeEvictionApi())
        made.is_placed = False
        return await made.evict(), made.api.writes

    assert asyncio.run(scene()) == (Evicted.UNPLACED, [])


def test_a_victim_that_the_watch_still_shows_is_not_deleted_again():
    async def scene() -> tuple[Evicted, list[str], bool]:
        made = Scene(FakeEvictionApi())
        await made.evict()
        return await made.evict(), made.api.deleted, made.evictor.is_leaving(PodInfo(VICTIM))

    assert asyncio.run(scene()) == (Evicted.GONE, ["victim"], True)


def test_a_pod_of_the_same_name_that_came_after_is_another_victim():
    again = pod("victim").uid("u-2").on("n1").build()

    async def scene() -> list[str]:
        made = Scene(FakeEvictionApi())
        await made.evict()
        made.live = again
        assert await made.evict(again) is Evicted.DELETED
        return made.api.uids

    assert asyncio.run(scene()) == ["u-1", "u-1", "u-2", "u-2"]


def test_a_pod_that_is_not_bound_yet_is_turned_back_and_not_deleted():
    async def scene() -> tuple[Evicted, list[tuple[str, str]], list[tuple[str, str]]]:
        made = Scene(FakeEvictionApi())
        made.held.add("u-1")
        return await made.evict(), made.turned_back, made.api.writes

    outcome, turned_back, writes = asyncio.run(scene())
    assert (outcome, turned_back, writes) == (
        Evicted.SENT_BACK,
        [("u-1", "DefaultPreemption")],
        [],
    )
