from __future__ import annotations

import pytest

from scheduler.event_handlers import catching_up
from scheduler.event_handlers.catching_up import catch_up
from tests.scheduler.informers.harness import Naps, pod, rig, run

ON_NODE = {"spec": {"nodeName": "n1"}}


def bound(it):
    return {each.metadata.name for each in it.informer.list() if each.spec.node_name}


def test_what_the_leader_before_has_bound_is_read_where_the_watch_has_not_told_it():
    async def main():
        async with rig(prepare=lambda server: server.create("pods", pod("a"))) as it:
            it.server.faults.hold_watch("pods")
            it.server.patch("pods", "a", ON_NODE, namespace="default")
            it.server.create("pods", pod("b"))
            it.server.patch("pods", "b", ON_NODE, namespace="default")

            assert await catch_up([it.informer], str(it.server.version), Naps())

            assert bound(it) == {"a", "b"}

    run(main)


def test_what_the_watch_tells_afterwards_is_no_news():
    async def main():
        async with rig(prepare=lambda server: server.create("pods", pod("a"))) as it:
            it.mirror.told()
            it.server.faults.hold_watch("pods")
            it.server.patch("pods", "a", ON_NODE, namespace="default")
            await catch_up([it.informer], str(it.server.version), Naps())
            it.server.faults.release_watch("pods")
            await it.caught_up()

            assert it.mirror.told() == [("updated", "a")]

    run(main)


def test_where_the_watch_has_passed_the_lease_nothing_is_read():
    async def main():
        async with rig(prepare=lambda server: server.create("pods", pod("a"))) as it:
            it.server.patch("pods", "a", ON_NODE, namespace="default")
            await it.caught_up()
            before = len(it.server.requests)

            assert await catch_up([it.informer], it.informer.resource_version, Naps())

            assert it.server.requests[before:] == []

    run(main)


def test_a_list_that_is_refused_is_asked_for_again():
    async def main():
        async with rig(prepare=lambda server: server.create("pods", pod("a"))) as it:
            it.server.faults.hold_watch("pods")
            it.server.patch("pods", "a", ON_NODE, namespace="default")
            it.server.faults.refuse("pods", "list", 503)

            assert await catch_up([it.informer], str(it.server.version), Naps())

            assert bound(it) == {"a"}

    run(main)


def test_nobody_waits_for_ever(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(catching_up, "LONGEST_S", 0.0)

    async def main():
        async with rig(prepare=lambda server: server.create("pods", pod("a"))) as it:
            it.server.faults.hold_watch("pods")
            it.server.patch("pods", "a", ON_NODE, namespace="default")

            assert not await catch_up([it.informer], str(it.server.version), Naps())

    run(main)


@pytest.mark.parametrize("version", ["", "v7"], ids=["none", "no-number"])
def test_a_version_that_cannot_be_compared_is_not_waited_for(version):
    async def main():
        async with rig() as it:
            assert await catch_up([it.informer], version, Naps())

    run(main)
