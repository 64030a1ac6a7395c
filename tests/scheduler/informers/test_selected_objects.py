"""A kind with a label selector: the API server sends what is selected, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.scheduler.informers.harness import pod, rig, run

if TYPE_CHECKING:
    from tests.fakes.api_server import FakeApiServer

NS = "default"


def in_pool(name: str, pool: str):
    return pod(name, pool=pool)


def prepare(server: FakeApiServer) -> None:
    server.create("pods", in_pool("a", "one"))
    server.create("pods", in_pool("b", "two"))


@pytest.mark.parametrize("paged", [False, True])
def test_what_enters_is_added_and_what_leaves_is_deleted(paged) -> None:
    async def main() -> None:
        def begin(server: FakeApiServer) -> None:
            prepare(server)
            if paged:
                server.faults.refuse("pods", "watchlist", 422)

        async with rig(prepare=begin, label_selector="pool=one") as it:
            assert it.mirror.told() == [("added", "a")]
            it.server.patch("pods", "b", {"metadata": {"labels": {"pool": "one"}}}, namespace=NS)
            it.server.patch("pods", "a", {"metadata": {"labels": {"pool": "two"}}}, namespace=NS)
            await it.caught_up()
            assert it.mirror.told() == [("added", "b"), ("deleted", "a")]
            assert {record.query["labelSelector"] for record in it.server.requests} == {"pool=one"}

    run(main)


def test_a_search_for_lost_events_does_not_miss_what_is_not_selected() -> None:
    async def main() -> None:
        async with rig(prepare=prepare, label_selector="pool=one") as it:
            listed = [each.name async for p in it.informer.metadata_pages() for each in p.objects]
            assert listed == ["a"]
            assert await it.informer.reread("default", "b", "uid-b") == []

    run(main)
