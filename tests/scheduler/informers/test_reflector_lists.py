"""What the API server may do to a list, and what must come of it (F3, F4, F6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import structlog

from tests.scheduler.informers.harness import (
    fill,
    gone_event,
    gone_status,
    holds_the_truth,
    pod,
    rig,
    run,
    until,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from cache.objects import Pod
    from tests.fakes.api_faults import Hold
    from tests.fakes.api_server import FakeApiServer


# --- the first list ---------------------------------------------------------------------------


def test_a_streaming_list_goes_on_as_a_watch() -> None:
    async def main() -> None:
        async with rig(prepare=fill(3)) as it:
            it.server.create("pods", pod("late"))
            await it.caught_up()
            assert holds_the_truth(it)
            assert [record.verb for record in it.server.requests] == ["watchlist"]

    run(main)


def test_a_streaming_list_asks_for_the_most_recent_state() -> None:
    async def main() -> None:
        async with rig() as it:
            query = it.server.requests[0].query
            assert query["sendInitialEvents"] == "true"
            assert query["resourceVersionMatch"] == "NotOlderThan"
            assert query["allowWatchBookmarks"] == "true"
            assert "resourceVersion" not in query

    run(main)


def test_nothing_is_told_before_the_list_is_complete() -> None:
    async def main() -> None:
        def prepare(server: FakeApiServer) -> None:
            fill(5)(server)
            server.faults.half_open("pods", after_events=3)

        async with rig(prepare=prepare, synced=False) as it:
            await until(lambda: it.informer.staleness_s(0.0) < float("inf"))
            assert not it.informer.has_synced
            assert it.mirror.deltas == []

    run(main)


def test_a_large_list_comes_in_batches() -> None:
    async def main() -> None:
        async with rig(prepare=fill(1300)) as it:
            assert it.mirror.batches == [500, 500, 300]

    run(main)


@pytest.mark.parametrize(
    "status", [pytest.param(422, id="Invalid"), pytest.param(400, id="BadRequest")]
)
def test_a_server_without_streaming_lists_is_listed_in_pages(status: int) -> None:
    async def main() -> None:
        def prepare(server: FakeApiServer) -> None:
            fill(7)(server)
            server.faults.refuse("pods", "watchlist", status, times=None)

        async with rig(prepare=prepare) as it:
            it.server.create("pods", pod("late"))
            await it.caught_up()
            assert holds_the_truth(it)
            assert [record.verb for record in it.server.requests] == ["watchlist", "list", "watch"]
            assert it.naps.asked_s == []

    run(main)


def test_pages_follow_each_other_until_the_last() -> None:
    async def main() -> None:
        def prepare(server: FakeApiServer) -> None:
            fill(1200)(server)
            server.faults.refuse("pods", "watchlist", 422)

        async with rig(prepare=prepare) as it:
            assert holds_the_truth(it)
            pages = it.server.requests_of("list") + it.server.requests_of("continue")
            assert [record.query.get("limit") for record in pages] == ["500", "500", "500"]

    run(main)


def test_where_pages_are_cheap_lists_come_in_pages_and_the_next_is_made_meanwhile() -> None:
    async def main() -> None:
        servers: list[FakeApiServer] = []
        asked: list[int] = []  # requests by then, for each decoded pod

        def prepare(server: FakeApiServer) -> None:
            fill(1200)(server)
            servers.append(server)

        def note(read: Pod) -> Pod:
            asked.append(len(servers[0].requests))
            return read

        async with rig(prepare=prepare, paged={"pods"}, transform=note) as it:
            assert holds_the_truth(it)
            gone_event(it.server)
            await until(lambda: it.counts.lists == 2)
            assert holds_the_truth(it)
            verbs = [record.verb for record in it.server.requests]
            first = ["list", "continue", "continue"]
            assert verbs[:7] == [*first, "watch", *first]
            # When the last object of the first page was decoded, the second page was asked for.
            assert asked[499] >= 2

    run(main)


def test_a_first_list_is_told_page_by_page() -> None:
    async def main() -> None:
        holds = []

        def prepare(server: FakeApiServer) -> None:
            fill(600)(server)
            holds.append(server.faults.hold("pods", "continue"))

        async with rig(prepare=prepare, paged={"pods"}, synced=False) as it:
            await until(lambda: len(it.mirror.objects) == 500)
            assert not it.informer.has_synced
            holds[0].release()
            await until(lambda: it.informer.has_synced)
            assert holds_the_truth(it)
            assert len(it.mirror.told()) == 600

    run(main)


def test_a_first_list_that_breaks_off_is_made_good_by_the_next() -> None:
    async def main() -> None:
        servers: list[FakeApiServer] = []
        holds: list[Hold] = []

        def prepare(server: FakeApiServer) -> None:
            fill(600)(server)
            server.faults.refuse("pods", "continue", 410)
            servers.append(server)

        def note(read: Pod) -> Pod:
            if not holds:
                holds.append(servers[0].faults.hold("pods", "list"))
            return read

        async with rig(prepare=prepare, paged={"pods"}, synced=False, transform=note) as it:
            await until(lambda: holds and holds[0].waiting)
            assert len(it.mirror.told()) == 500
            it.server.delete("pods", "web-0007")
            holds[0].release()
            await until(lambda: it.informer.has_synced)
            assert holds_the_truth(it)
            assert ("deleted", "web-0007") in it.mirror.told()

    run(main)


def test_a_later_list_is_told_when_it_is_complete() -> None:
    async def main() -> None:
        async with rig(prepare=fill(600), paged={"pods"}) as it:
            held = it.server.faults.hold("pods", "continue")
            it.server.faults.hold_watch("pods")
            it.server.create("pods", pod("aaa"))
            gone_event(it.server)
            it.server.faults.release_watch("pods")
            it.mirror.told()
            await until(lambda: len(it.server.requests_of("continue")) == 2)
            assert it.mirror.told() == []
            held.release()
            await it.caught_up()
            await until(lambda: holds_the_truth(it))
            assert it.mirror.told() == [("added", "aaa")]

    run(main)


def test_a_next_page_that_is_refused_costs_nobody_else() -> None:
    async def main() -> None:
        def prepare(server: FakeApiServer) -> None:
            fill(600)(server)
            server.faults.refuse("pods", "continue", 500)

        async with rig(prepare=prepare, paged={"pods"}) as it:
            assert holds_the_truth(it)
            verbs = [record.verb for record in it.server.requests]
            assert verbs[:4] == ["list", "continue", "list", "continue"]

    run(main)


def test_a_page_that_has_expired_begins_the_list_again() -> None:
    async def main() -> None:
        def prepare(server: FakeApiServer) -> None:
            fill(1200)(server)
            server.faults.refuse("pods", "watchlist", 422)
            server.faults.refuse("pods", "continue", 410)

        async with rig(prepare=prepare) as it:
            assert holds_the_truth(it)
            verbs = [record.verb for record in it.server.requests]
            assert verbs[:6] == ["watchlist", "list", "continue", "list", "continue", "continue"]

    run(main)


def test_pages_that_are_too_large_become_smaller() -> None:
    async def main() -> None:
        def prepare(server: FakeApiServer) -> None:
            fill(40)(server)
            server.faults.refuse("pods", "watchlist", 422)

        async with rig(prepare=prepare, page_size=32, max_body_bytes=4000) as it:
            assert holds_the_truth(it)
            limits = [record.query["limit"] for record in it.server.requests_of("list")]
            assert limits == ["32", "4"]

    run(main)


def test_an_empty_list_is_a_list() -> None:
    async def main() -> None:
        async with rig() as it:
            assert it.informer.list() == []
            assert it.informer.has_synced

    run(main)


@pytest.mark.parametrize(
    "message",
    [
        pytest.param("ended by a fault", id="an error of the server's storage"),
        pytest.param("", id="without a word"),
    ],
)
def test_a_streaming_list_that_always_breaks_off_becomes_pages(message: str) -> None:
    async def main() -> None:
        def prepare(server: FakeApiServer) -> None:
            fill(5)(server)
            for _ in range(2):
                if message:
                    server.faults.error_event("pods", 500, message=message, after_events=2)
                else:
                    server.faults.cut_watch("pods", after_events=2)

        async with rig(prepare=prepare) as it:
            assert holds_the_truth(it)
            verbs = [record.verb for record in it.server.requests]
            assert verbs[:3] == ["watchlist", "watchlist", "list"]

    run(main)


def test_a_streaming_list_that_never_ends_becomes_pages() -> None:
    async def main() -> None:
        def prepare(server: FakeApiServer) -> None:
            fill(2)(server)
            server.faults.endless_list("pods")

        async with rig(prepare=prepare, synced=False) as it:
            await until(lambda: it.server.open_watches() == 1)
            it.clock.now += 301
            it.server.create("pods", pod("late"))
            await it.informer.wait_synced()
            assert holds_the_truth(it)
            assert [record.verb for record in it.server.requests][:2] == ["watchlist", "list"]

    run(main)


# --- F3: 410 ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "gone",
    [
        pytest.param(gone_event, id="as an ERROR event"),
        pytest.param(gone_status, id="as an HTTP status"),
    ],
)
def test_f3_an_expired_version_is_listed_anew_after_a_delay(
    gone: Callable[[FakeApiServer], None],
) -> None:
    async def main() -> None:
        async with rig(prepare=fill(3)) as it:
            it.clock.now += 60  # the watch has had its time
            gone(it.server)
            await until(lambda: it.counts.lists == 2)
            relist = it.server.requests_of("watchlist")[1]
            assert relist.query["resourceVersion"] == it.informer.resource_version
            assert relist.query["resourceVersionMatch"] == "NotOlderThan"
            assert len(it.naps.asked_s) == 1
            assert len(it.mirror.deltas) == 3

    run(main)


def test_f3_what_was_missed_before_a_compaction_is_told() -> None:
    async def main() -> None:
        async with rig(prepare=fill(2)) as it:
            it.server.faults.hold_watch("pods")
            it.server.create("pods", pod("unheard"))
            it.server.delete("pods", "web-0000")
            it.server.compact()
            it.server.end_watches("pods")
            await until(lambda: it.counts.expired == 1)
            it.server.faults.release_watch("pods")
            await it.caught_up()
            assert holds_the_truth(it)
            assert (it.counts.expired, it.counts.lists) == (1, 2)

    run(main)


def test_f3_a_recreation_that_was_missed_is_a_deletion_and_an_addition() -> None:
    async def main() -> None:
        async with rig(prepare=fill(2)) as it:
            it.mirror.told()
            it.server.faults.drop_event("pods", times=2)
            it.server.delete("pods", "web-0001")
            it.server.create("pods", pod("web-0001"))
            gone_event(it.server)
            await until(lambda: it.counts.lists == 2)
            assert it.mirror.told() == [("deleted", "web-0001"), ("added", "web-0001")]
            assert holds_the_truth(it)

    run(main)


def test_f3_an_expired_version_in_a_relist_asks_for_the_most_recent_state() -> None:
    async def main() -> None:
        async with rig(prepare=fill(2)) as it:
            it.server.faults.refuse("pods", "watchlist", 410)
            gone_event(it.server)
            await until(lambda: it.counts.lists == 2)
            queries = [record.query for record in it.server.requests_of("watchlist")]
            assert ["resourceVersion" in query for query in queries] == [False, True, False]

    run(main)


# --- F4: everything at once -------------------------------------------------------------------


def test_f4_lists_that_are_refused_back_off_and_keep_what_is_known() -> None:
    async def main() -> None:
        async with rig(prepare=fill(3)) as it:
            it.server.faults.refuse("pods", "watchlist", 429, retry_after_s=4, times=5)
            gone_event(it.server)
            await until(lambda: it.counts.lists == 2)
            assert all(delay_s >= 4 for delay_s in it.naps.asked_s[1:6])
            assert it.mirror.told() == [("added", f"web-{n:04}") for n in range(3)]
            assert it.informer.has_synced

    run(main)


def test_f4_delays_between_lists_grow() -> None:
    async def main() -> None:
        async with rig() as it:
            it.server.faults.refuse("pods", "watchlist", 500, times=8)
            gone_event(it.server)
            await until(lambda: it.counts.lists == 2)
            delays = it.naps.asked_s
            assert delays[0] < 1
            assert max(delays) > 7.5
            assert max(delays) <= 15

    run(main)


def test_f4_there_is_never_more_than_one_list_at_a_time() -> None:
    async def main() -> None:
        async with rig() as it:
            hold = it.server.faults.hold("pods", "watchlist")
            gone_event(it.server)
            await until(lambda: hold.waiting == 1)
            it.server.end_watches()
            assert len(it.server.requests_of("watchlist")) == 2
            assert it.server.requests_of("watch") == []
            hold.release()
            await until(lambda: it.counts.lists == 2)

    run(main)


def test_a_loop_of_events_and_410_slows_down() -> None:
    async def main() -> None:
        async with rig() as it:
            it.server.faults.error_event("pods", 410, times=6)
            await until(lambda: it.counts.expired == 6)
            assert it.naps.asked_s[5] > 4 * it.naps.asked_s[0]

    run(main)


# --- F6: a server that is behind --------------------------------------------------------------


def test_f6_a_list_from_the_past_is_refused_and_asked_for_again() -> None:
    async def main() -> None:
        async with rig(prepare=fill(3)) as it:
            it.mirror.told()
            it.server.delete("pods", "web-0001")
            await it.caught_up()
            it.server.faults.stale_list("pods", behind=2, times=2)
            gone_event(it.server)
            await until(lambda: it.counts.lists == 2)
            assert it.counts.rejected_lists == 2
            assert it.mirror.told() == [("deleted", "web-0001")]
            assert holds_the_truth(it)

    run(main)


def test_f6_a_paged_list_from_the_past_is_refused_too() -> None:
    async def main() -> None:
        async with rig(prepare=fill(3)) as it:
            it.server.faults.refuse("pods", "watchlist", 422, times=None)
            it.server.delete("pods", "web-0001")
            await it.caught_up()
            it.server.faults.stale_list("pods", behind=2)
            gone_event(it.server)
            await until(lambda: it.counts.lists == 2)
            assert it.counts.rejected_lists == 1
            assert holds_the_truth(it)

    run(main)


def test_f6_a_server_that_has_not_got_there_yet_is_asked_for_its_most_recent_state() -> None:
    async def main() -> None:
        async with rig(prepare=fill(3)) as it:
            it.server.faults.refuse(
                "pods",
                "watchlist",
                504,
                message="Too large resource version: 900, current: 800",
                retry_after_s=1,
                times=3,
            )
            gone_event(it.server)
            await until(lambda: it.counts.lists == 2)
            queries = [record.query for record in it.server.requests_of("watchlist")[1:]]
            assert ["resourceVersion" in query for query in queries] == [True, True, True, False]

    run(main)


def test_f6_an_event_from_the_past_is_dropped() -> None:
    async def main() -> None:
        async with rig(prepare=fill(2)) as it:
            it.server.patch("pods", "web-0000", {"spec": {"nodeName": "n1"}}, namespace="default")
            it.server.delete("pods", "web-0001", namespace="default")
            await it.caught_up()
            it.mirror.told()
            it.server.repeat_events("pods", 4)
            await until(lambda: it.counts.stale_events == 4)
            assert it.mirror.told() == []
            assert holds_the_truth(it)

    run(main)


def test_f6_history_that_went_back_is_believed_after_five_consistent_reads() -> None:
    async def main() -> None:
        async with rig(prepare=fill(3)) as it:
            before = it.server.version
            it.server.patch("pods", "web-0000", {"spec": {"nodeName": "n1"}}, namespace="default")
            it.server.delete("pods", "web-0001", namespace="default")
            it.server.create("pods", pod("never-was"))
            await it.caught_up()
            it.server.faults.error_event("pods", 410)
            with structlog.testing.capture_logs() as logs:
                it.server.rewind(before)
                await until(lambda: it.counts.rewinds == 1)
                await it.caught_up()
            assert holds_the_truth(it)
            assert it.counts.rejected_lists == 4
            assert [log["log_level"] for log in logs if log["event"] == "history went back"] == [
                "error"
            ]

    run(main)


def test_f6_a_watch_follows_the_server_after_a_rewind() -> None:
    async def main() -> None:
        async with rig(prepare=fill(3)) as it:
            before = it.server.version
            for number in range(5):
                it.server.create("pods", pod(f"never-was-{number}"))
            await it.caught_up()
            it.server.faults.error_event("pods", 410)
            it.server.rewind(before)
            await until(lambda: it.counts.rewinds == 1)
            it.server.create("pods", pod("real"))
            await it.caught_up()
            assert holds_the_truth(it)

    run(main)


def test_f6_a_watch_on_a_server_that_stays_behind_ends_in_a_list() -> None:
    async def main() -> None:
        async with rig(prepare=fill(3)) as it:
            before = it.server.version
            it.server.create("pods", pod("never-was"))
            await it.caught_up()
            it.server.rewind(before)
            await it.resumed()
            await until(lambda: it.server.open_watches() == 1)
            it.server.send_bookmarks()
            await until(lambda: it.counts.bookmarks == 2)
            assert it.informer.resource_version == str(before + 1)
            it.server.send_bookmarks()
            await until(lambda: it.counts.rewinds == 1)
            assert holds_the_truth(it)

    run(main)
