from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import structlog

from cache.objects import PodSpec
from scheduler.informers.store import DeltaKind
from tests.scheduler.informers.harness import Mirror, pod, rig, run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cache.objects import Pod
    from scheduler.informers.store import Delta
    from tests.fakes.api_server import FakeApiServer


def three(server: FakeApiServer) -> None:
    for name in ("a", "b", "c"):
        server.create("pods", pod(name))


def test_the_store_has_what_a_handler_is_told_of() -> None:
    async def main() -> None:
        async with rig() as it:
            found: list[object] = []

            def look(deltas: Sequence[Delta[Pod]]) -> None:
                for delta in deltas:
                    if delta.new is not None:
                        metadata = delta.new.metadata
                        found.append(it.informer.get(metadata.namespace, metadata.name))
                        found.append(it.informer.get_by_uid(metadata.uid))
                        assert found[-1] is found[-2] is delta.new

            it.informer.add_handler(look)
            it.server.create("pods", pod("a"))
            await it.caught_up()
            assert len(found) == 2
            assert it.informer.statistics().handler_failures == 0

    run(main)


def test_an_update_tells_the_old_object_and_the_new_one() -> None:
    async def main() -> None:
        async with rig(prepare=three) as it:
            it.mirror.told()
            it.server.patch("pods", "b", {"spec": {"nodeName": "n1"}})
            await it.caught_up()
            (delta,) = it.mirror.deltas
            assert delta.kind is DeltaKind.UPDATED
            assert delta.old is not None
            assert delta.new is not None
            assert (delta.old.spec.node_name, delta.new.spec.node_name) == ("", "n1")

    run(main)


def test_a_handler_that_comes_late_is_told_what_there_is() -> None:
    async def main() -> None:
        async with rig(prepare=three) as it:
            late = Mirror()
            it.informer.add_handler(late)
            assert late.objects == it.mirror.objects
            it.server.delete("pods", "a")
            await it.caught_up()
            assert late.objects == it.mirror.objects

    run(main)


def test_a_batch_handler_that_raises_stops_neither_the_others_nor_the_watch() -> None:
    async def main() -> None:
        async with rig() as it:

            def broken(deltas: Sequence[Delta[Pod]]) -> None:
                raise RuntimeError("broken")

            after = Mirror()
            it.informer.add_handler(broken)
            it.informer.add_handler(after)
            with structlog.testing.capture_logs() as logs:
                for name in ("a", "b"):
                    it.server.create("pods", pod(name))
                    await it.caught_up()
            assert after.told() == [("added", "a"), ("added", "b")]
            assert it.informer.statistics().handler_failures == 2
            assert [log["name"] for log in logs if log["event"] == "handler failed"] == ["a", "b"]

    run(main)


def test_a_delta_handler_that_raises_loses_that_delta_alone() -> None:
    async def main() -> None:
        async with rig() as it:
            heard: list[str] = []

            def fussy(delta: Delta[Pod]) -> None:
                assert delta.new is not None
                if delta.new.metadata.name == "b":
                    raise RuntimeError("not b")
                heard.append(delta.new.metadata.name)

            it.informer.add_delta_handler(fussy)
            three(it.server)
            await it.caught_up()
            assert heard == ["a", "c"]
            assert it.informer.statistics().handler_failures == 1

    run(main)


def test_a_transform_trims_what_is_listed_and_what_is_watched() -> None:
    async def main() -> None:
        def trim(obj: Pod) -> Pod:
            return msgspec.structs.replace(obj, spec=PodSpec(scheduler_name="trimmed"))

        async with rig(prepare=three, transform=trim) as it:
            it.server.create("pods", pod("d"))
            await it.caught_up()
            assert [obj.spec.scheduler_name for obj in it.informer.list()] == ["trimmed"] * 4

    run(main)


def test_objects_of_a_namespace() -> None:
    async def main() -> None:
        async with rig(prepare=three) as it:
            assert len(it.informer.list("default")) == 3
            assert len(it.informer.list("elsewhere")) == 0

    run(main)


def test_the_counts() -> None:
    async def main() -> None:
        async with rig(prepare=three) as it:
            it.server.delete("pods", "a")
            await it.caught_up()
            counts = it.informer.statistics()
            assert (len(it.informer.list()), counts.deltas) == (2, 4)
            assert (counts.lists, counts.events) == (1, 1)

    run(main)
