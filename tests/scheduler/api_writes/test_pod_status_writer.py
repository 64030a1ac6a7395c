from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from scheduler.api_writes.pod_condition import TRUST_S
from scheduler.api_writes.pod_status_writer import MAX_TRIES, PodStatusWriter
from scheduler.client.errors import ApiError
from tests.builders import pod
from tests.fakes.clock import FakeClock
from tests.fakes.ports import FakeExecutor, fake_ports
from tests.fakes.refusals import lost, refusal
from tests.fakes.write_api import FakeWriteApi

if TYPE_CHECKING:
    from cache.objects import Pod

POD = pod("web-0", namespace="shop").uid("u-1").build()


def error(status: int | None, *, ambiguous: bool = False) -> ApiError:
    return lost("PATCH") if ambiguous else refusal("PATCH", status)


class Scene:
    """A writer that has been started, its API and its clock.

    Parameters
    ----------
    answers
        The API's.
    before_retry
        Called in each wait between two attempts.
    """

    def __init__(self, *answers: ApiError | None, before_retry=None, **options) -> None:
        self.api = FakeWriteApi(answers)
        self.clock = FakeClock()
        self._before_retry = before_retry
        self.placed: set[str] = set()
        self.writer = PodStatusWriter(
            fake_ports(self.api, self.clock, wall=self.clock, executor=FakeExecutor(self._sleep)),
            self.placed.__contains__,
            **options,
        )

    async def _sleep(self, _: float) -> None:
        if self._before_retry is not None:
            self._before_retry(self)
        await asyncio.sleep(0)

    async def __aenter__(self):
        self.writer.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.writer.stop()

    def refuse(self, message: str = "no room", of: Pod = POD, nominated: str | None = None) -> None:
        self.writer.unscheduled(of, "Unschedulable", message, nominated)

    async def written(self) -> None:
        assert await self.writer.drain(30) == 0

    async def until(self, condition) -> None:
        async with asyncio.timeout(30):
            while not condition():  # noqa: ASYNC110 - not every condition has an event
                await asyncio.sleep(0)

    async def turns(self) -> None:
        """Let everybody come as far as they get."""
        for _ in range(20):
            await asyncio.sleep(0)

    @property
    def messages(self) -> list[str]:
        """The messages of all requests."""
        return [call.body["conditions"][0]["message"] for call in self.api.calls]


def play(scene):
    """Turn a coroutine function into a test."""
    return lambda: asyncio.run(scene())


def pods(count: int) -> list[Pod]:
    return [pod(f"p{number}").uid(f"u{number}").build() for number in range(count)]


# --- what is written --------------------------------------------------------------------------


@play
async def test_the_condition_is_written_into_the_pod():
    async with Scene() as scene:
        scene.refuse()
        await scene.written()
    (call,) = scene.api.calls
    assert (call.verb, call.namespace, call.name, call.uid) == ("status", "shop", "web-0", "u-1")
    assert call.body["conditions"][0]["message"] == "no room"


@play
async def test_the_same_again_is_not_written():
    async with Scene() as scene:
        for _ in range(3):
            scene.refuse()
            await scene.written()
    assert scene.messages == ["no room"]
    assert scene.writer.statistics().unchanged == 2


@play
async def test_another_message_is_written():
    async with Scene() as scene:
        for message in ("no room", "no ports", "no room"):
            scene.refuse(message)
            await scene.written()
    assert scene.messages == ["no room", "no ports", "no room"]


@play
async def test_the_transition_time_stays_through_our_own_changes():
    async with Scene() as scene:
        scene.refuse("no room")
        await scene.written()
        scene.clock.advance(5)
        scene.refuse("no ports")
        await scene.written()
    first, second = (call.body["conditions"][0] for call in scene.api.calls)
    assert first["lastTransitionTime"] == second["lastTransitionTime"]


@play
async def test_a_pod_that_still_shows_nothing_long_after_is_written_again():
    async with Scene() as scene:
        scene.refuse()
        await scene.written()
        scene.clock.advance(TRUST_S + 1)
        scene.refuse()
        await scene.written()
    assert len(scene.api.calls) == 2


@play
async def test_a_nomination_alone_is_written():
    async with Scene() as scene:
        scene.refuse()
        await scene.written()
        scene.refuse(nominated="n1")
        await scene.written()
    assert scene.api.calls[1].body == {"nominatedNodeName": "n1"}


# --- one pod, many statuses -------------------------------------------------------------------


@play
async def test_of_those_that_wait_only_the_newest_is_written():
    async with Scene(workers=1) as scene:
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
    async with Scene(workers=1) as scene:
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
    async with Scene() as scene:
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
    async with Scene(workers=4) as scene:
        scene.api.hold()
        for one in pods(9):
            scene.refuse(of=one)
        await scene.until(lambda: scene.api.waiting == 4)


@play
async def test_a_retry_gives_way_to_a_newer_status():
    async with Scene(error(503), before_retry=lambda scene: scene.refuse("new")) as scene:
        scene.refuse("old", nominated="n1")
        await scene.written()
    assert scene.messages == ["old", "new"]
    assert scene.api.calls[1].body["nominatedNodeName"] == "n1"


# --- a pod that has found a node --------------------------------------------------------------


@play
async def test_a_retry_ends_when_the_pod_has_found_a_node():
    async with Scene(error(503), before_retry=lambda scene: scene.placed.add("u-1")) as scene:
        scene.refuse()
        await scene.written()
    assert scene.messages == ["no room"]
    assert scene.writer.statistics().replaced == 1


@play
async def test_a_status_that_waited_until_the_pod_had_a_node_is_not_written():
    async with Scene(workers=1) as scene:
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
        async with Scene() as made:
            made.placed.add("u-1")
            say(made)
            await made.written()
        assert made.api.calls == []

    asyncio.run(scene())


@play
async def test_a_pod_that_has_lost_its_node_again_is_written_about():
    async with Scene() as scene:
        scene.placed.add("u-1")
        scene.refuse("early")
        await scene.written()
        scene.placed.discard("u-1")
        scene.refuse("late")
        await scene.written()
    assert scene.messages == ["late"]


@play
async def test_a_binding_can_wait_for_the_request_that_is_under_way():
    async with Scene() as scene:
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

    async with Scene(error(503), before_retry=look) as scene:
        scene.refuse()
        await scene.written()
    assert scene.writer.statistics().written == 1


@play
async def test_the_node_where_a_pod_is_going_is_written_after_what_was_under_way():
    async with Scene() as scene:
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
        async with Scene(*answers) as scene:
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
        async with Scene(*answers) as scene:
            scene.refuse()
            await scene.written()
            statistics = scene.writer.statistics()
            assert (statistics.failed, statistics.gone) == (failed, gone)
            assert len(scene.api.calls) == len(answers)

    asyncio.run(scene())


@play
async def test_where_all_statuses_are_refused_each_is_sent_once_until_one_is_accepted():
    elsewhere = pod("b", namespace="other").uid("u-b").build()
    answers = [*[error(500)] * (MAX_TRIES + 2), error(500), None, None, error(500), None]
    async with Scene(*answers, workers=1) as scene:
        calls = []
        for message, of in (
            ("1", POD),
            ("2", POD),
            ("3", POD),
            ("4", elsewhere),
            ("5", POD),
            ("6", POD),
        ):
            before = len(scene.api.calls)
            scene.refuse(message, of=of)
            await scene.written()
            calls.append(len(scene.api.calls) - before)
    assert calls == [MAX_TRIES, 1, 1, 2, 1, 2]


@play
async def test_a_status_that_shall_wait_for_long_is_given_up():
    later = refusal("PATCH", 429, details={"retryAfterSeconds": 60})
    async with Scene(later) as scene:
        scene.refuse()
        await scene.written()
        assert (len(scene.api.calls), scene.writer.statistics().failed) == (1, 1)


@play
async def test_what_was_given_up_is_tried_again_with_the_next_refusal():
    async with Scene(error(403)) as scene:
        scene.refuse()
        await scene.written()
        scene.refuse()
        await scene.written()
    assert scene.writer.statistics().written == 1


# --- bounds and the end -----------------------------------------------------------------------


@play
async def test_beyond_the_capacity_the_newest_are_dropped_and_counted():
    async with Scene(capacity=10, workers=1) as scene:
        scene.api.hold()
        everyone = pods(30)
        scene.refuse(of=everyone[0])
        await scene.until(lambda: scene.api.waiting)
        for one in everyone[1:]:
            scene.refuse(of=one)
        assert scene.writer.statistics().dropped == 19
        scene.api.gate.set()
        await scene.written()
    assert [call.name for call in scene.api.calls] == [f"p{number}" for number in range(11)]


@play
async def test_a_newer_status_of_a_pod_that_waits_needs_no_room():
    async with Scene(capacity=1, workers=1) as scene:
        scene.api.hold()
        scene.refuse(of=pods(1)[0])
        await scene.until(lambda: scene.api.waiting)
        scene.refuse("old")
        await scene.turns()
        scene.refuse("new")
        scene.api.gate.set()
        await scene.written()
    assert scene.messages == ["no room", "new"]


@play
async def test_statuses_from_another_thread_are_all_written():
    async with Scene() as scene:
        thread = threading.Thread(target=lambda: [scene.refuse(of=one) for one in pods(300)])
        thread.start()
        await scene.until(lambda: not thread.is_alive())
        await scene.written()
    assert {call.uid for call in scene.api.calls} == {f"u{number}" for number in range(300)}


@play
async def test_draining_ends_when_time_is_up():
    async with Scene() as scene:
        scene.api.hold()
        for one in pods(7):
            scene.refuse(of=one)
        assert await scene.writer.drain(0.01) == 7


@play
async def test_after_the_end_statuses_are_dropped():
    async with Scene() as scene:
        await scene.writer.stop()
        scene.refuse()
    assert scene.writer.statistics().dropped == 1
    assert not scene.api.calls


class TestNominations:
    """The nominated node alone, without a word about the condition."""

    @staticmethod
    def written(*wanted: tuple[str, ...], of: Pod = POD) -> list[dict[str, Any]]:
        async def scene() -> list[dict[str, Any]]:
            async with Scene() as made:
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
