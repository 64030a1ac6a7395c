"""What the API server may do to a watch, and what must come of it (F1, F2, F5, F7, F8)."""

from __future__ import annotations

import pytest
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
            assert "internal error in reflector" in [log["event"] for log in logs]

    run(main)
