"""Lines and objects that cannot be read cost themselves (F28)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from tests.scheduler.informers.harness import (
    fill,
    gone_event,
    holds_the_truth,
    pod,
    rig,
    run,
    until,
)

if TYPE_CHECKING:
    from tests.fakes.api_server import FakeApiServer


# --- F28: what cannot be read -----------------------------------------------------------------


def test_f28_a_garbage_line_costs_that_line() -> None:
    async def main() -> None:
        async with rig(prepare=fill(1)) as it:
            it.server.send_line("pods", b'{"type":"MODIF')
            it.server.create("pods", pod("after"))
            await it.caught_up()
            assert holds_the_truth(it)
            assert it.counts.unreadable == 1
            assert len(it.server.requests) == 1

    run(main)


def test_f28_what_a_garbage_line_may_have_deleted_is_found_when_the_watch_ends() -> None:
    async def main() -> None:
        async with rig(prepare=fill(2)) as it:
            it.server.faults.drop_event("pods", "DELETED")
            it.server.delete("pods", "web-0000")
            it.server.send_line("pods", b'{"type":"DELETED","object":{"metada')
            it.server.create("pods", pod("after"))
            await it.caught_up()
            it.server.end_watches()
            await until(lambda: it.counts.lists == 2)
            assert holds_the_truth(it)

    run(main)


def test_f28_an_object_that_becomes_unreadable_keeps_its_last_good_version() -> None:
    async def main() -> None:
        async with rig(prepare=fill(2)) as it:
            good = it.informer.get("default", "web-0000")
            it.mirror.told()
            with structlog.testing.capture_logs() as logs:
                it.server.patch(
                    "pods", "web-0000", {"spec": {"containers": "none"}}, namespace="default"
                )
                await it.caught_up()
            assert it.informer.get("default", "web-0000") is good
            assert it.mirror.told() == []
            (log,) = [log for log in logs if log["event"] == "unreadable object"]
            assert (log["namespace"], log["name"]) == ("default", "web-0000")
            assert "spec.containers" in log["problem"]

    run(main)


def test_f28_an_unreadable_object_survives_a_list() -> None:
    async def main() -> None:
        async with rig(prepare=fill(2)) as it:
            good = it.informer.get("default", "web-0000")
            it.server.patch(
                "pods", "web-0000", {"spec": {"containers": "none"}}, namespace="default"
            )
            gone_event(it.server)
            await until(lambda: it.counts.lists == 2)
            assert it.informer.get("default", "web-0000") is good

    run(main)


def test_f28_an_object_that_becomes_readable_again_is_updated() -> None:
    async def main() -> None:
        async with rig(prepare=fill(1)) as it:
            it.mirror.told()
            for containers in ("none", [{"name": "main", "image": "fixed"}]):
                it.server.patch(
                    "pods", "web-0000", {"spec": {"containers": containers}}, namespace="default"
                )
            await it.caught_up()
            assert it.mirror.told() == [("updated", "web-0000")]
            assert holds_the_truth(it)

    run(main)


def test_f28_an_unreadable_object_that_is_deleted_goes() -> None:
    async def main() -> None:
        async with rig(prepare=fill(1)) as it:
            it.mirror.told()
            it.server.patch(
                "pods", "web-0000", {"spec": {"containers": "none"}}, namespace="default"
            )
            it.server.delete("pods", "web-0000")
            await it.caught_up()
            assert it.mirror.told() == [("deleted", "web-0000")]
            assert it.counts.lists == 1

    run(main)


def test_f28_an_unreadable_newcomer_displaces_its_namesake() -> None:
    async def main() -> None:
        async with rig(prepare=fill(1)) as it:
            it.mirror.told()
            it.server.faults.drop_event("pods", "DELETED")
            it.server.delete("pods", "web-0000")
            it.server.create("pods", pod("web-0000") | {"spec": {"containers": "none"}})
            await it.caught_up()
            assert it.mirror.told() == [("deleted", "web-0000")]

    run(main)


def test_f28_unreadable_objects_in_a_list_cost_themselves() -> None:
    async def main() -> None:
        def prepare(server: FakeApiServer) -> None:
            fill(4)(server)
            server.patch("pods", "web-0002", {"spec": {"containers": "none"}})
            server.faults.refuse("pods", "watchlist", 422)

        async with rig(prepare=prepare) as it:
            names = sorted(obj.metadata.name for obj in it.informer.list())
            assert names == ["web-0000", "web-0001", "web-0003"]
            assert it.counts.unreadable == 1

    run(main)


def test_f28_a_megabyte_of_labels_is_no_problem() -> None:
    async def main() -> None:
        async with rig() as it:
            it.server.create("pods", pod("huge", **{f"l{n}": "x" * 60 for n in range(15_000)}))
            await it.caught_up()
            assert holds_the_truth(it)

    run(main)
