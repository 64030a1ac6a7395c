from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from scheduler.api_writes.pod_condition import TRUST_S
from scheduler.api_writes.pod_status_writer import MAX_TRIES
from scheduler.client.errors import ApiError
from tests.scheduler.api_writes.scenes import POD, StatusScene, play, pods

if TYPE_CHECKING:
    from cache.objects import Pod

error = StatusScene.error


# --- what is written --------------------------------------------------------------------------


@play
async def test_the_condition_is_written_into_the_pod():
    async with StatusScene() as scene:
        scene.refuse()
        await scene.written()
    (call,) = scene.api.calls
    assert (call.verb, call.namespace, call.name, call.uid) == ("status", "shop", "web-0", "u-1")
    assert call.body["conditions"][0]["message"] == "no room"


@play
async def test_the_same_again_is_not_written():
    async with StatusScene() as scene:
        for _ in range(3):
            scene.refuse()
            await scene.written()
    assert scene.messages == ["no room"]
    assert scene.writer.statistics().unchanged == 2


@play
async def test_another_message_is_written():
    async with StatusScene() as scene:
        for message in ("no room", "no ports", "no room"):
            scene.refuse(message)
            await scene.written()
    assert scene.messages == ["no room", "no ports", "no room"]


@play
async def test_the_transition_time_stays_through_our_own_changes():
    async with StatusScene() as scene:
        scene.refuse("no room")
        await scene.written()
        scene.clock.advance(5)
        scene.refuse("no ports")
        await scene.written()
    first, second = (call.body["conditions"][0] for call in scene.api.calls)
    assert first["lastTransitionTime"] == second["lastTransitionTime"]


@play
async def test_a_pod_that_still_shows_nothing_long_after_is_written_again():
    async with StatusScene() as scene:
        scene.refuse()
        await scene.written()
        scene.clock.advance(TRUST_S + 1)
        scene.refuse()
        await scene.written()
    assert len(scene.api.calls) == 2


@play
async def test_a_nomination_alone_is_written():
    async with StatusScene() as scene:
        scene.refuse()
        await scene.written()
        scene.refuse(nominated="n1")
        await scene.written()
    assert scene.api.calls[1].body == {"nominatedNodeName": "n1"}


# --- one pod, many statuses -------------------------------------------------------------------


@play
async def test_of_those_that_wait_only_the_newest_is_written():
    async with StatusScene(workers=1) as scene:
        scene.api.hold()
        scene.refuse(of=pods(1)[0])
        await scene.until(lambda: scene.api.waiting)
        for number in range(5):
            scene.refuse(f"reason {number}")
        await scene.until(lambda: scene.writer.statistics().replaced == 4)
        scene.api.gate.set()
        await scene.written()
    assert scene.messages == ["no room", "reason 4"]


@play
async def test_a_nomination_survives_a_newer_status_that_leaves_it_open():
    async with StatusScene(workers=1) as scene:
        scene.api.hold()
        scene.refuse(of=pods(1)[0])
        await scene.until(lambda: scene.api.waiting)
        scene.refuse("old", nominated="n1")
        scene.refuse("new")
        await scene.until(lambda: scene.writer.statistics().replaced)
        scene.api.gate.set()
        await scene.written()
    assert scene.messages[1] == "new"
    assert scene.api.calls[1].body["nominatedNodeName"] == "n1"


@play
async def test_two_requests_about_one_pod_are_never_under_way_together():
    async with StatusScene() as scene:
        scene.api.hold()
        scene.refuse("first")
        await scene.until(lambda: scene.api.waiting)
        scene.refuse("second")
        await scene.turns()
        assert scene.api.waiting == 1
        scene.api.gate.set()
        await scene.written()
    assert scene.messages == ["first", "second"]


@play
async def test_requests_about_several_pods_are():
    async with StatusScene(workers=4) as scene:
        scene.api.hold()
        for one in pods(9):
            scene.refuse(of=one)
        await scene.until(lambda: scene.api.waiting == 4)


@play
async def test_a_retry_gives_way_to_a_newer_status():
    async with StatusScene(error(503), before_retry=lambda scene: scene.refuse("new")) as scene:
        scene.refuse("old", nominated="n1")
        await scene.written()
    assert scene.messages == ["old", "new"]
    assert scene.api.calls[1].body["nominatedNodeName"] == "n1"


# --- a pod that has found a node --------------------------------------------------------------


@play
async def test_a_retry_ends_when_the_pod_has_found_a_node():
    async with StatusScene(error(503), before_retry=lambda scene: scene.placed.add("u-1")) as scene:
        scene.refuse()
        await scene.written()
    assert scene.messages == ["no room"]
    assert scene.writer.statistics().replaced == 1


@play
async def test_a_status_that_waited_until_the_pod_had_a_node_is_not_written():
    async with StatusScene(workers=1) as scene:
        scene.api.hold()
        scene.refuse(of=pods(1)[0])
        await scene.until(lambda: scene.api.waiting)
        scene.refuse()
        scene.placed.add("u-1")
        scene.api.gate.set()
        await scene.written()
    assert len(scene.api.calls) == 1


@pytest.mark.parametrize(
    "say",
    [
        pytest.param(lambda scene: scene.refuse(nominated="n1"), id="a status"),
        pytest.param(lambda scene: scene.writer.nominate(POD, "n1"), id="a nomination"),
    ],
)
def test_what_comes_after_the_pod_has_found_a_node_is_not_written(say):
    async def scene():
        async with StatusScene() as made:
            made.placed.add("u-1")
            say(made)
            await made.written()
        assert made.api.calls == []

    asyncio.run(scene())


@play
async def test_a_pod_that_has_lost_its_node_again_is_written_about():
    async with StatusScene() as scene:
        scene.placed.add("u-1")
        scene.refuse("early")
        await scene.written()
        scene.placed.discard("u-1")
        scene.refuse("late")
        await scene.written()
    assert scene.messages == ["late"]


@play
async def test_a_binding_can_wait_for_the_request_that_is_under_way():
    async with StatusScene() as scene:
        scene.api.hold()
        scene.refuse()
        await scene.until(lambda: scene.api.waiting)
        quiet = asyncio.ensure_future(scene.writer.quiet("u-1"))
        await scene.turns()
        assert not quiet.done()
        scene.api.gate.set()
        await quiet
        assert not scene.api.waiting


@play
async def test_nobody_waits_for_a_request_that_is_to_be_tried_again():
    def look(scene):
        with pytest.raises(StopIteration):  # it has nothing to wait for
            scene.writer.quiet("u-1").send(None)

    async with StatusScene(error(503), before_retry=look) as scene:
        scene.refuse()
        await scene.written()
    assert scene.writer.statistics().written == 1


@play
async def test_the_node_where_a_pod_is_going_is_written_after_what_was_under_way():
    async with StatusScene() as scene:
        scene.api.hold()
        scene.refuse(nominated="n1")
        await scene.until(lambda: scene.api.waiting)
        scene.placed.add("u-1")
        going = asyncio.ensure_future(scene.writer.nominate_now(POD, "n2"))
        await scene.turns()
        assert scene.api.waiting == 1
        scene.api.gate.set()
        await going
    assert scene.api.calls[-1].body == {"nominatedNodeName": "n2"}


# --- failures ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param([error(503)], id="not available"),
        pytest.param([error(429)] * 3, id="too many requests"),
        pytest.param([error(None)], id="unreachable"),
        pytest.param([error(None, ambiguous=True)], id="answer lost"),
    ],
)
def test_a_status_is_written_in_spite_of(answers):
    async def scene():
        async with StatusScene(*answers) as scene:
            scene.refuse()
            await scene.written()
        assert scene.writer.statistics().written == 1

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("answers", "failed", "gone"),
    [
        pytest.param([error(404)], 0, 1, id="deleted"),
        pytest.param([error(409)], 0, 1, id="in conflict"),
        pytest.param(
            [ApiError(422, "Invalid", 'Pod "web-0" is invalid: metadata.uid: field is immutable')],
            0,
            1,
            id="made again under its name",
        ),
        pytest.param([error(403)], 1, 0, id="forbidden"),
        pytest.param([error(422)], 1, 0, id="invalid"),
        pytest.param([error(503)] * MAX_TRIES, 1, 0, id="refused to the end"),
        pytest.param([ValueError("no such path")], 1, 0, id="a mistake of ours"),
    ],
)
def test_a_status_is_given_up_and_counted(answers, failed, gone):
    async def scene():
        async with StatusScene(*answers) as scene:
            scene.refuse()
            await scene.written()
            statistics = scene.writer.statistics()
            assert (statistics.failed, statistics.gone) == (failed, gone)
            assert len(scene.api.calls) == len(answers)

    asyncio.run(scene())


@play
async def test_what_was_given_up_is_tried_again_with_the_next_refusal():
    async with StatusScene(error(403)) as scene:
        scene.refuse()
        await scene.written()
        scene.refuse()
        await scene.written()
    assert scene.writer.statistics().written == 1


# --- bounds and the end -----------------------------------------------------------------------


@play
async def test_a_newer_status_of_a_pod_that_waits_needs_no_room():
    async with StatusScene(capacity=1, workers=1) as scene:
        scene.api.hold()
        scene.refuse(of=pods(1)[0])
        await scene.until(lambda: scene.api.waiting)
        scene.refuse("old")
        await scene.turns()
        scene.refuse("new")
        scene.api.gate.set()
        await scene.written()
    assert scene.messages == ["no room", "new"]


class TestNominations:
    """The nominated node alone, without a word about the condition."""

    @staticmethod
    def written(*wanted: tuple[str, ...], of: Pod = POD) -> list[dict[str, Any]]:
        async def scene() -> list[dict[str, Any]]:
            async with StatusScene() as made:
                for each in wanted:
                    if len(each) == 1:
                        made.writer.nominate(of, each[0])
                    else:
                        made.refuse(each[0], of, each[1])
                await made.written()
                return [dict(call.body) for call in made.api.calls]

        return asyncio.run(scene())

    def test_it_is_written_by_itself(self):
        assert self.written(("n1",)) == [{"nominatedNodeName": "n1"}]

    def test_it_is_taken_away(self):
        status = msgspec.structs.replace(POD.status, nominated_node_name="n1")
        nominated = msgspec.structs.replace(POD, status=status)
        assert self.written(("",), of=nominated) == [{"nominatedNodeName": None}]

    def test_what_the_pod_says_already_is_not_written(self):
        assert self.written(("",)) == []

    def test_it_leaves_an_older_word_about_the_condition_that_waits(self):
        (patch,) = self.written(("no room", "n1"), ("n2",))
        assert patch["nominatedNodeName"] == "n2"
        assert [each["message"] for each in patch["conditions"]] == ["no room"]
