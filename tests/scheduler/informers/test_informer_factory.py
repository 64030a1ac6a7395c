from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from scheduler.client.credentials import Credentials
from scheduler.client.transport import Transport
from scheduler.informers.informer_factory import (
    InformerFactory,
    relists,
    restores,
    staleness_s,
)
from scheduler.informers.reflector_options import ReflectorOptions
from scheduler.kinds import NAMESPACES, NODES, PODS
from tests.fakes.api_server import FakeApiServer
from tests.scheduler.informers.harness import Clock, Mirror, Naps, pod, run, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cache.objects import Pod


class Setup:
    def __init__(self, server: FakeApiServer, transport: Transport) -> None:
        self.server = server
        self.transport = transport
        self.clock = Clock()
        self.factory = InformerFactory(transport, ReflectorOptions(clock=self.clock, sleep=Naps()))


@asynccontextmanager
async def setup() -> AsyncIterator[Setup]:
    async with FakeApiServer() as server:
        transport = Transport(Credentials(server.url), user_agent="test")
        made = Setup(server, transport)
        try:
            yield made
        finally:
            await made.factory.stop()
            await transport.close()


def trim(obj: Pod) -> Pod:
    return obj


def test_whoever_asks_for_a_kind_gets_the_same_informer() -> None:
    async def main() -> None:
        async with setup() as it:
            informer = it.factory.informer(PODS, transform=trim)
            assert it.factory.informer(PODS, transform=trim) is informer
            assert it.factory.informer(PODS) is informer

    run(main)


def test_another_transform_is_an_error() -> None:
    async def main() -> None:
        async with setup() as it:
            it.factory.informer(PODS)
            with pytest.raises(ValueError, match="pods already have"):
                it.factory.informer(PODS, transform=trim)

    run(main)


def test_synced_means_all_of_them() -> None:
    async def main() -> None:
        async with setup() as it:
            it.server.create("pods", pod("a"))
            it.server.create("nodes", {"metadata": {"name": "n1"}})
            pods, nodes = it.factory.informer(PODS), it.factory.informer(NODES)
            hold = it.server.faults.hold("nodes", None)
            it.factory.start()
            await pods.wait_synced()
            synced = asyncio.create_task(it.factory.wait_synced())
            await asyncio.sleep(0)
            assert not synced.done()
            hold.release()
            await synced
            assert nodes.has_synced
            assert nodes.get("", "n1") is not None

    run(main)


def test_an_informer_that_is_asked_for_late_starts_at_once() -> None:
    async def main() -> None:
        async with setup() as it:
            it.server.create("namespaces", {"metadata": {"name": "shop"}})
            it.factory.start()
            namespaces = it.factory.informer(NAMESPACES)
            await namespaces.wait_synced()
            assert namespaces.get("", "shop") is not None

    run(main)


def test_starting_twice_changes_nothing() -> None:
    async def main() -> None:
        async with setup() as it:
            it.factory.informer(PODS)
            it.factory.start()
            it.factory.start()
            await it.factory.wait_synced()
            assert len(it.server.requests) == 1

    run(main)


def test_one_that_is_removed_ends_its_watch_and_reports_its_objects_as_deleted() -> None:
    async def main() -> None:
        async with setup() as it:
            it.server.create("pods", pod("a"))
            it.server.create("pods", pod("b"))
            deaths: list[str] = []
            it.factory._on_death = lambda name, error: deaths.append(name)
            pods, nodes = it.factory.informer(PODS), it.factory.informer(NODES)
            mirror = Mirror()
            pods.add_handler(mirror)
            it.factory.start()
            await it.factory.wait_synced()
            mirror.told()
            await it.factory.remove("pods")
            assert sorted(mirror.told()) == [("deleted", "a"), ("deleted", "b")]
            assert list(it.factory.all) == [nodes]
            await until(lambda: it.server.open_watches() == 1)
            assert deaths == []

    run(main)


def test_one_that_was_removed_can_be_asked_for_again() -> None:
    async def main() -> None:
        async with setup() as it:
            it.server.create("pods", pod("a"))
            removed = it.factory.informer(PODS)
            it.factory.start()
            await it.factory.wait_synced()
            await it.factory.remove("pods")
            again = it.factory.informer(PODS)
            await again.wait_synced()
            assert again is not removed
            assert len(again.list()) == 1

    run(main)


def test_stopping_closes_the_watches_and_keeps_the_stores() -> None:
    async def main() -> None:
        async with setup() as it:
            it.server.create("pods", pod("a"))
            pods = it.factory.informer(PODS)
            it.factory.start()
            await it.factory.wait_synced()
            await it.factory.stop()
            await until(lambda: it.server.open_watches() == 0)
            assert len(pods.list()) == 1
            assert [task for task in asyncio.all_tasks() if "informer" in task.get_name()] == []

    run(main)


def test_a_stopped_factory_can_be_started_again() -> None:
    async def main() -> None:
        async with setup() as it:
            pods = it.factory.informer(PODS)
            it.factory.start()
            await it.factory.wait_synced()
            await it.factory.stop()
            it.server.create("pods", pod("a"))
            it.factory.start()
            await until(lambda: len(pods.list()) == 1)

    run(main)


def test_staleness_is_that_of_the_most_silent_watch_of_the_resource() -> None:
    async def main() -> None:
        async with setup() as it:
            it.factory.informer(PODS)
            it.factory.informer(NODES)
            assert staleness_s(it.factory.all, it.clock.now) == {
                "pods": float("inf"),
                "nodes": float("inf"),
            }
            it.factory.start()
            await it.factory.wait_synced()
            other = InformerFactory(it.transport)
            other.informer(PODS)
            it.clock.now += 30
            it.server.send_bookmarks("pods")
            every = it.factory.all
            await until(lambda: staleness_s(every, it.clock.now) == {"pods": 0, "nodes": 30})
            never = {"pods": float("inf"), "nodes": 30}
            assert staleness_s((*every, *other.all), it.clock.now) == never
            assert staleness_s((*other.all, *every), it.clock.now) == never

    run(main)


def test_only_what_somebody_asked_for_is_stale() -> None:
    async def main() -> None:
        async with setup() as it:
            assert it.factory.all == ()
            assert staleness_s(it.factory.all, it.clock.now) == {}

    run(main)


def test_lists_after_the_first_are_added_up_by_resource() -> None:
    async def main() -> None:
        async with setup() as it:
            other = InformerFactory(it.transport, ReflectorOptions(clock=it.clock, sleep=Naps()))
            pods, more_pods = it.factory.informer(PODS), other.informer(PODS)
            it.factory.informer(NODES)
            it.factory.start()
            other.start()
            await it.factory.wait_synced()
            await other.wait_synced()
            every = (*it.factory.all, *other.all)
            assert relists(every) == restores(every) == {"pods": 0, "nodes": 0}
            pods.expect_restore()
            more_pods.expect_restore()
            await until(lambda: relists(every) == {"pods": 2, "nodes": 0})
            await other.stop()

    run(main)
