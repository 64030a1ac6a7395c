from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from scheduler.client.codec import NAMESPACES, NODES, PODS
from scheduler.client.transport import Transport
from scheduler.informers.informer_factory import InformerFactory
from scheduler.informers.reflector_options import ReflectorOptions
from tests.fakes.api_server import FakeApiServer
from tests.scheduler.informers.harness import Clock, Naps, PlainCredentials, pod, run, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cache.objects import Pod


class Setup:
    def __init__(self, server: FakeApiServer, transport: Transport) -> None:
        self.server = server
        self.clock = Clock()
        self.factory = InformerFactory(transport, ReflectorOptions(clock=self.clock, sleep=Naps()))


@asynccontextmanager
async def setup() -> AsyncIterator[Setup]:
    async with FakeApiServer() as server:
        transport = Transport(PlainCredentials(server.url), user_agent="test")
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


def test_another_selector_is_another_informer() -> None:
    async def main() -> None:
        async with setup() as it:
            pending = it.factory.informer(PODS, field_selector="spec.nodeName=")
            assert it.factory.informer(PODS) is not pending

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
            assert not it.factory.has_synced
            hold.release()
            await it.factory.wait_synced()
            await until(lambda: it.factory.has_synced)
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


def test_staleness_is_that_of_the_most_silent_watch_of_the_kind() -> None:
    async def main() -> None:
        async with setup() as it:
            it.factory.informer(PODS)
            it.factory.informer(NODES)
            it.factory.start()
            await it.factory.wait_synced()
            it.clock.now += 30
            it.server.send_bookmarks("pods")
            await until(lambda: it.factory.staleness_s(PODS) == 0)
            assert it.factory.staleness_s(NODES) == 30

    run(main)


def test_staleness_is_infinite_before_the_first_word() -> None:
    async def main() -> None:
        async with setup() as it:
            it.factory.informer(PODS)
            assert it.factory.staleness_s(PODS) == float("inf")

    run(main)


def test_staleness_of_a_kind_that_nobody_asked_for_is_an_error() -> None:
    async def main() -> None:
        async with setup() as it:
            with pytest.raises(KeyError, match="nodes"):
                it.factory.staleness_s(NODES)

    run(main)


def test_counts_are_told_apart_by_selector() -> None:
    async def main() -> None:
        async with setup() as it:
            it.factory.informer(PODS)
            it.factory.informer(PODS, field_selector="spec.nodeName=")
            assert set(it.factory.statistics()) == {"pods", "pods?spec.nodeName="}

    run(main)
