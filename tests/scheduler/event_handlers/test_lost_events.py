from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from scheduler.client.errors import ApiError
from scheduler.event_handlers import lost_events
from scheduler.event_handlers.lost_events import LostEvents
from scheduler.informers.metadata_list import metadata_pages
from tests.builders import node
from tests.fakes.ports import FakeExecutor, fake_ports
from tests.scheduler.client.virtual_loop import run_in_virtual_time
from tests.scheduler.informers.harness import Naps, Rig, pod, rig, run, until
from tests.scheduler.parts import Parts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ON_NODE = {"spec": {"nodeName": "n1"}}


class Scene:
    """A watch of pods, what follows from it, and who looks for what it lost."""

    def __init__(self, it: Rig) -> None:
        self.server, self.informer = it.server, it.informer
        self.parts = Parts()
        self.parts.cache.add_node(node("n1").capacity(cpu="4", memory="8Gi").build())
        it.informer.add_handler(self.parts.handlers.on_pods)
        self.naps = Naps()
        self.lost = LostEvents(
            fake_ports(executor=FakeExecutor(self.naps)),
            lambda: [it.informer],
            self.parts.handlers,
            self.parts.metrics,
            lambda: True,
        )

    async def caught_up(self) -> None:
        """Let the watch pass whatever was dropped."""
        self.server.send_bookmarks()
        await until(lambda: self.informer.resource_version == str(self.server.version))

    async def round(self) -> dict[str, float]:
        """Look once, and return what has been put right so far."""
        await self.lost.round()
        return self.repaired()

    def repaired(self) -> dict[str, float]:
        name = "berth_lost_events_repaired_total"
        counts = {
            kind: self.parts.counter(f'{name}{{resource="pods",kind="{kind}"}}')
            for kind in ("add", "update", "delete")
        }
        return {kind: count for kind, count in counts.items() if count}


@asynccontextmanager
async def scene(*names: str) -> AsyncIterator[Scene]:
    def prepare(server):
        for name in names:
            server.create("pods", pod(name))

    async with rig(prepare=prepare) as it:
        yield Scene(it)


def test_where_nothing_was_lost_nothing_is_asked_for():
    async def main():
        async with scene("a", "b") as it:
            it.server.create("pods", pod("c"))
            await it.caught_up()
            before = len(it.server.requests)
            assert await it.round() == {}
            assert [each.verb for each in it.server.requests[before:]] == ["list"]

    run(main)


def test_a_pod_that_was_never_shown_is_queued():
    async def main():
        async with scene("a") as it:
            it.server.faults.drop_event("pods", "ADDED")
            it.server.create("pods", pod("lost"))
            await it.caught_up()
            assert it.parts.queue.counts().active == 1
            assert await it.round() == {"add": 1}
            assert it.parts.queue.counts().active == 2
            assert await it.round() == {"add": 1}

    run(main)


def test_a_deletion_that_was_never_told_gives_the_room_back():
    async def main():
        async with scene("a", "b") as it:
            it.server.patch("pods", "a", ON_NODE, namespace="default")
            it.server.faults.drop_event("pods", "DELETED")
            it.server.delete("pods", "a", namespace="default")
            await it.caught_up()
            assert it.parts.cache.counts().pods == 1
            assert await it.round() == {"delete": 1}
            assert it.parts.cache.counts().pods == 0

    run(main)


def test_a_change_that_was_never_told_is_taken_in():
    async def main():
        async with scene("a") as it:
            it.server.faults.drop_event("pods", "MODIFIED")
            it.server.patch("pods", "a", ON_NODE, namespace="default")
            await it.caught_up()
            assert it.parts.queue.counts().active == 1
            assert await it.round() == {"update": 1}
            assert it.parts.queue.counts().active == 0
            assert it.parts.cache.counts().pods == 1

    run(main)


def test_a_pod_that_was_made_again_unseen_is_another_one():
    async def main():
        async with scene("a") as it:
            it.server.faults.drop_event("pods", times=2)
            it.server.delete("pods", "a", namespace="default")
            made = it.server.create("pods", pod("a"))
            await it.caught_up()
            assert await it.round() == {"add": 1, "delete": 1}
            assert [each.metadata.uid for each in it.informer.list()] == [made["metadata"]["uid"]]

    run(main)


def test_a_history_that_was_rewritten_under_a_watch_is_a_restore():
    async def main():
        async with scene("a") as it:
            before = it.server.version
            it.server.patch("pods", "a", ON_NODE, namespace="default")
            await it.caught_up()
            assert it.parts.cache.counts().pods == 1
            # The new history gets as far as the old one before the watch asks again.
            it.server.rewind(before)
            it.server.create("pods", pod("b"))
            it.server.create("pods", pod("c"))
            await it.caught_up()
            assert it.parts.cache.counts().pods == 1
            assert await it.round() == {}
            await until(lambda: it.informer.statistics().rewinds == 1)
            assert sorted(each.metadata.name for each in it.informer.list()) == ["a", "b", "c"]
            assert it.parts.cache.counts().pods == 0
            assert it.parts.queue.counts().active == 3

    run(main)


@pytest.mark.parametrize("late", ["create", "delete"])
def test_a_watch_that_is_late_has_lost_nothing(late):
    async def main():
        async with scene("a") as it:
            it.server.faults.hold_watch("pods")
            if late == "create":
                it.server.create("pods", pod("b"))
            else:
                it.server.delete("pods", "a", namespace="default")
            looking = asyncio.create_task(it.lost.round())
            await until(lambda: lost_events._LOOK_S in it.naps.asked_s)
            it.server.faults.release_watch("pods")
            await it.caught_up()
            await looking
            assert it.repaired() == {}
            assert len(it.server.requests_of("list")) == 1

    run(main)


def test_a_watch_that_does_not_get_as_far_proves_nothing():
    async def main():
        async with scene("a") as it:
            it.server.faults.drop_event("pods", "ADDED")
            it.server.create("pods", pod("lost"))
            assert await it.round() == {}
            asked_s = [each for each in it.naps.asked_s if each == lost_events._LOOK_S]
            assert sum(asked_s) == lost_events._CATCH_UP_S

    run(main)


def test_a_list_comes_in_pages():
    async def main():
        async with scene(*(f"pod-{number}" for number in range(5))) as it:
            pages = metadata_pages(it.informer._transport, it.informer.kind.path, 2)
            assert [len(page.objects) async for page in pages] == [2, 2, 1]

    run(main)


def test_a_round_asks_for_so_many_and_the_next_one_for_the_others(monkeypatch):
    monkeypatch.setattr(lost_events, "_MAX_REREADS", 2)

    async def main():
        async with scene() as it:
            it.server.faults.drop_event("pods", "ADDED", times=3)
            for number in range(3):
                it.server.create("pods", pod(f"lost-{number}"))
            await it.caught_up()
            assert not await it.lost.round()
            assert it.repaired() == {"add": 2}
            assert await it.lost.round()
            assert it.repaired() == {"add": 3}

    run(main)


def test_a_pod_that_the_queue_has_lost_is_queued():
    async def main():
        async with scene("a", "b") as it:
            (uid,) = (each.metadata.uid for each in it.informer.list() if each.metadata.name == "a")
            it.parts.queue.delete(uid)
            with capture_logs() as lines:
                assert await it.round() == {"add": 1}
            assert [each["name"] for each in lines if each["log_level"] == "error"] == ["a"]
            assert it.parts.queue.counts().active == 2

    run(main)


def test_a_pod_that_is_being_tried_or_bound_is_not_lost():
    async def main():
        async with scene("a", "b") as it:
            tried, bound = it.parts.queue.pop(timeout_s=0), it.parts.queue.pop(timeout_s=0)
            assert tried is not None
            assert bound is not None
            it.parts.cache.assume_pod(bound.info, "n1")
            it.parts.queue.done(bound.info.uid)
            assert await it.round() == {}

    run(main)


def test_a_list_that_fails_costs_itself():
    async def main():
        async with scene("a") as it:
            (held,) = it.informer.list()
            it.parts.queue.delete(held.metadata.uid)
            it.server.faults.refuse("pods", "list", 503)
            assert await it.round() == {"add": 1}

    run(main)


class TestThePeriod:
    def lost(self, *, leads: bool, period_s: float = 720.0) -> LostEvents:
        parts = Parts()
        return LostEvents(
            fake_ports(),
            list,
            parts.handlers,
            parts.metrics,
            lambda: leads,
            period_s,
        )

    def rounds_in(self, lost: LostEvents, seconds: float) -> int:
        async def passing() -> None:
            lost.start()
            await asyncio.sleep(seconds)
            await lost.stop()

        run_in_virtual_time(passing())
        return lost.rounds

    def test_ten_to_fifteen_minutes_lie_between_two_looks(self):
        lost = self.lost(leads=True)
        pauses = [lost._next_pause_s() for _ in range(1000)]
        assert 600 <= min(pauses) < 610
        assert 890 < max(pauses) <= 900

    def test_it_looks_again_and_again(self):
        assert self.rounds_in(self.lost(leads=True), 7200) in range(8, 13)

    def test_a_standby_leaves_the_api_server_alone(self):
        assert self.rounds_in(self.lost(leads=False), 7200) == 0

    def test_with_a_period_of_0_it_never_looks(self):
        assert self.rounds_in(self.lost(leads=True, period_s=0.0), 7200) == 0


class LateAnswers:
    """What is asked for while the watch goes on: each answer comes after `meanwhile`."""

    def __init__(self, it: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
        transport = it.informer._transport
        self._ask = transport.request
        self._it = it
        self.meanwhile = lambda: None
        monkeypatch.setattr(transport, "request", self._request)

    async def _request(self, *what, **more):
        answer = await self._ask(*what, **more)
        self.meanwhile()
        await self._it.caught_up()
        return answer


def test_an_answer_from_before_a_deletion_does_not_bring_back_the_dead(monkeypatch):
    async def main():
        async with scene("a") as it:
            uid = it.informer.get("default", "a").metadata.uid
            answers = LateAnswers(it, monkeypatch)
            answers.meanwhile = lambda: it.server.delete("pods", "a", namespace="default")
            assert await it.informer.reread("default", "a", uid) == []
            assert it.informer.get_by_uid(uid) is None
            assert it.parts.queue.counts().active == 0

    run(main)


def test_an_answer_from_before_a_creation_does_not_remove_it(monkeypatch):
    async def main():
        async with scene() as it:
            new = pod("b")
            new["metadata"]["uid"] = "uid-b"
            answers = LateAnswers(it, monkeypatch)
            answers.meanwhile = lambda: it.server.create("pods", new)
            assert await it.informer.reread("default", "b", "uid-b") == []
            assert it.informer.get_by_uid("uid-b") is not None
            assert it.parts.queue.counts().active == 1

    run(main)


def test_an_answer_of_a_server_that_is_behind_the_watch_is_none(monkeypatch):
    async def main():
        async with scene("a") as it:
            uid = it.informer.get("default", "a").metadata.uid
            transport = it.informer._transport
            query = [("fieldSelector", "metadata.name=a")]
            old = await transport.request("GET", "/api/v1/namespaces/default/pods", query=query)
            it.server.delete("pods", "a", namespace="default")
            await it.caught_up()

            async def answer(*what, **more):
                return old

            monkeypatch.setattr(transport, "request", answer)
            with pytest.raises(ApiError, match="older than"):
                await it.informer.reread("default", "a", uid)
            assert it.informer.get_by_uid(uid) is None

    run(main)
