"""What the API server may do to a list or a watch, and what must come of it (F1-F8, F28)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import structlog

from tests.scheduler.informers.harness import pod, rig, run, truth, until, versions

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fakes.api_server import FakeApiServer
    from tests.scheduler.informers.harness import Rig


def fill(count: int) -> Callable[[FakeApiServer], None]:
    def prepare(server: FakeApiServer) -> None:
        for number in range(count):
            server.create("pods", pod(f"web-{number:04}"))

    return prepare


def holds_the_truth(rig: Rig) -> bool:
    mirror = {uid: obj.metadata.resource_version for uid, obj in rig.mirror.objects.items()}
    return versions(list(rig.informer.list())) == truth(rig.server) == mirror


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
            await until(lambda: it.informer.last_event_monotonic is not None)
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


# --- F1: a watch that is ended cleanly --------------------------------------------------------


def test_f1_a_watch_that_ends_is_resumed_at_once_without_a_list() -> None:
    async def main() -> None:
        async with rig() as it:
            it.server.faults.cut_watch("pods", after_events=3, times=4)
            for number in range(14):
                it.server.create("pods", pod(f"web-{number}"))
            await it.caught_up()
            await it.resumed(4)
            assert holds_the_truth(it)
            assert it.counts.lists == 1
            assert it.naps.asked_s == []
            assert len(it.mirror.deltas) == 14

    run(main)


def test_f1_a_watch_is_resumed_from_the_last_version_seen() -> None:
    async def main() -> None:
        async with rig(prepare=fill(2)) as it:
            it.server.create("pods", pod("late"))
            await it.caught_up()
            it.server.end_watches()
            await it.resumed()
            (resumed,) = it.server.requests_of("watch")
            assert resumed.query["resourceVersion"] == str(it.server.version)
            assert "sendInitialEvents" not in resumed.query

    run(main)


def test_f1_a_bookmark_moves_the_version_without_an_event() -> None:
    async def main() -> None:
        async with rig() as it:
            it.server.create("nodes", {"metadata": {"name": "n1"}})
            it.server.send_bookmarks()
            await it.caught_up()
            assert it.mirror.deltas == []

    run(main)


def test_f1_a_watch_that_brings_nothing_is_not_reopened_at_once() -> None:
    async def main() -> None:
        async with rig() as it:
            it.server.faults.cut_watch("pods", after_events=0, times=6)
            await it.resumed(6)
            # The first one had brought the list.
            assert len(it.naps.asked_s) == 5
            assert it.naps.asked_s[4] > 4 * it.naps.asked_s[0]

    run(main)


def test_f1_a_quiet_watch_of_some_age_is_reopened_at_once() -> None:
    async def main() -> None:
        async with rig() as it:
            it.clock.now += 300
            it.server.end_watches()
            await it.resumed()
            assert it.naps.asked_s == []

    run(main)


def test_a_reset_connection_is_resumed() -> None:
    async def main() -> None:
        async with rig() as it:
            it.server.faults.cut_watch("pods", after_events=2, reset=True)
            for number in range(5):
                it.server.create("pods", pod(f"web-{number}"))
            await it.caught_up()
            assert holds_the_truth(it)
            assert it.counts.lists == 1

    run(main)


# --- F2: half open ----------------------------------------------------------------------------


def test_f2_silence_breaks_the_watch_and_it_is_resumed() -> None:
    async def main() -> None:
        async with rig(read_timeout_s=0.2) as it:
            it.server.faults.half_open("pods")
            it.server.create("pods", pod("unheard"))
            await it.caught_up()
            assert holds_the_truth(it)
            assert it.counts.lists == 1

    run(main)


def test_f2_staleness_grows_in_silence_and_ends_with_any_byte() -> None:
    async def main() -> None:
        async with rig() as it:
            it.clock.now += 42
            assert it.informer.staleness_s(it.clock()) == 42
            it.server.send_bookmarks()
            await until(lambda: it.informer.staleness_s(it.clock()) == 0)

    run(main)


# --- F3: 410 ----------------------------------------------------------------------------------


def gone_event(server: FakeApiServer) -> None:
    server.faults.error_event("pods", 410)


def gone_status(server: FakeApiServer) -> None:
    server.faults.refuse("pods", "watch", 410)
    server.end_watches("pods")


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


# --- F5: the API server goes away -------------------------------------------------------------


def test_f5_a_server_that_comes_back_is_resumed_without_a_list() -> None:
    async def main() -> None:
        async with rig(prepare=fill(3)) as it:
            await it.server.__aexit__()
            await until(lambda: len(it.naps.asked_s) >= 4)
            assert len(it.informer.list()) == 3
            it.server.create("pods", pod("while-away"))
            await it.server.__aenter__()
            await it.caught_up()
            assert holds_the_truth(it)
            assert it.counts.lists == 1

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


# --- F7, F8: events twice or never ------------------------------------------------------------


def test_f7_events_that_come_twice_are_told_once() -> None:
    async def main() -> None:
        async with rig() as it:
            it.server.create("pods", pod("web"))
            it.server.repeat_events("pods", 1)
            it.server.create("pods", pod("db"))
            await it.caught_up()
            assert it.mirror.told() == [("added", "web"), ("added", "db")]

    run(main)


def test_f8_a_lost_deletion_is_told_by_the_next_list() -> None:
    async def main() -> None:
        async with rig(prepare=fill(2)) as it:
            bound = it.server.patch(
                "pods", "web-0000", {"spec": {"nodeName": "n1"}}, namespace="default"
            )
            await it.caught_up()
            it.mirror.told()
            it.server.faults.drop_event("pods", "DELETED")
            it.server.delete("pods", "web-0000", namespace="default")
            gone_event(it.server)
            await until(lambda: it.counts.lists == 2)
            (delta,) = it.mirror.deltas
            assert delta.old is not None
            assert delta.old.spec.node_name == "n1"
            assert delta.old.metadata.uid == bound["metadata"]["uid"]

    run(main)


# --- denied -----------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [pytest.param(401, id="401"), pytest.param(403, id="403")])
def test_a_denied_watch_keeps_what_is_known_and_asks_again(status: int) -> None:
    async def main() -> None:
        async with rig(prepare=fill(3)) as it:
            # A 401 is tried once more with fresh credentials, so it takes two to be one.
            it.server.faults.refuse("pods", "watch", status, times=10)
            with structlog.testing.capture_logs() as logs:
                it.server.end_watches()
                await until(lambda: len(it.naps.asked_s) >= 5)
                assert len(it.informer.list()) == 3
                it.server.create("pods", pod("late"))
                await it.caught_up()
            assert holds_the_truth(it)
            assert it.counts.lists == 1
            loud = [log for log in logs if log["log_level"] == "error"]
            assert [log["event"] for log in loud] == ["watch denied"]
            assert [log["event"] for log in logs].count("watch recovered") == 1

    run(main)


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


# --- our own mistakes -------------------------------------------------------------------------


def test_a_mistake_of_ours_does_not_end_the_watch() -> None:
    async def main() -> None:
        mistakes: list[Exception] = []

        def clock() -> float:
            if mistakes:
                raise mistakes.pop()
            return 1000.0

        async with rig(prepare=fill(1), clock=clock) as it:
            mistakes.append(RuntimeError("a mistake"))
            with structlog.testing.capture_logs() as logs:
                it.server.create("pods", pod("late"))
                await it.caught_up()
            assert holds_the_truth(it)
            assert "mistake in a reflector" in [log["event"] for log in logs]

    run(main)
