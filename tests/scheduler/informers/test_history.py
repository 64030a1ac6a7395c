"""Whatever happens on the server and on the way, the informer ends with the server's truth."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeAlias

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.fakes.api_objects import ApiProblemError
from tests.scheduler.informers.harness import pod, rig, run, truth, until, versions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.fakes.api_server import FakeApiServer
    from tests.scheduler.informers.harness import Rig

Operation: TypeAlias = tuple[str, int, bool]
"""What is done, to which pod (or how often), and whether the informer is given time for it."""

CHANGES = ("create", "relabel", "delete", "recreate", "break", "repair", "other")
FAULTS = (
    "cut",
    "cut after two",
    "reset",
    "gone event",
    "gone status",
    "compact",
    "bookmark",
    "old bookmark",
    "garbage",
    "repeat",
    "lose",
    "stale list",
    "too large",
    "throttled",
    "internal error",
    "forbidden",
    "no streaming",
    "expire page",
)
OPERATIONS = st.lists(
    st.tuples(st.sampled_from(CHANGES) | st.sampled_from(FAULTS), st.integers(0, 3), st.booleans()),
    min_size=10,
    max_size=40,
)


def operate(server: FakeApiServer, operation: str, number: int) -> None:
    name, faults = f"web-{number}", server.faults
    match operation:
        case "create":
            server.create("pods", pod(name))
        case "relabel":
            labels = {"metadata": {"labels": {"at": str(server.version)}}}
            server.patch("pods", name, labels)
        case "delete":
            server.delete("pods", name)
        case "recreate":
            server.delete("pods", name)
            server.create("pods", pod(name))
        case "break":
            server.patch("pods", name, {"spec": {"containers": "none"}})
        case "repair":
            server.patch("pods", name, pod(name))
        case "other":
            server.create("nodes", {"metadata": {"generateName": "n-"}})
        case "cut":
            server.end_watches("pods")
        case "cut after two":
            faults.cut_watch("pods", after_events=2)
        case "reset":
            faults.cut_watch("pods", after_events=1, reset=True)
        case "gone event":
            faults.error_event("pods", 410, after_events=number)
        case "gone status":
            faults.refuse("pods", "watch", 410)
        case "compact":
            server.compact()
        case "bookmark":
            server.send_bookmarks()
        case "old bookmark":
            line = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"1"}}}'
            server.send_line("pods", line)
        case "garbage":
            server.send_line("pods", b'{"type":"DELETED","object":{"metadata":{"na')
        case "repeat":
            server.repeat_events("pods", 1 + number)
        case "lose":
            faults.drop_event("pods")
        case "stale list":
            faults.stale_list("pods", behind=1 + number)
        case "too large":
            message = "Too large resource version: 9, current: 8"
            faults.refuse("pods", "watchlist", 504, message=message, times=number)
        case "throttled":
            faults.refuse("pods", None, 429, retry_after_s=1)
        case "internal error":
            faults.refuse("pods", None, 500, times=2)
        case "forbidden":
            faults.refuse("pods", None, 403)
        case "no streaming":
            faults.refuse("pods", "watchlist", 422)
        case "expire page":
            faults.refuse("pods", "continue", 410)


def make_whole(server: FakeApiServer) -> None:
    """End all faults, repair what is broken and make sure that what was lost is listed."""
    server.faults.clear()
    for obj in server.objects("pods"):
        name = obj["metadata"]["name"]
        server.patch("pods", name, pod(name))
    server.faults.error_event("pods", 410)


async def give_time(rig: Rig) -> None:
    """Let the informer catch up if it can: what it missed it may never hear of by itself."""
    for _ in range(10):
        if rig.informer.resource_version == str(rig.server.version):
            return
        await asyncio.sleep(0.001)


AS_OLD_AS_CAN_BE = [
    *[("create", 0, False)] * 4,
    ("create", 1, False),
    ("cut", 0, False),
    ("gone event", 0, False),
    ("reset", 0, False),
    ("stale list", 3, False),
    ("other", 0, True),
]


@example(before=0, synced=True, operations=AS_OLD_AS_CAN_BE)
@given(before=st.integers(0, 4), synced=st.booleans(), operations=OPERATIONS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_history_ends_with_the_truth(
    before: int, synced: bool, operations: Sequence[Operation]
) -> None:
    async def main() -> None:
        def prepare(server: FakeApiServer) -> None:
            for number in range(before):
                server.create("pods", pod(f"web-{number}"))

        # A small page, so that even these few pods come in several.
        async with rig(prepare=prepare, synced=synced, page_size=2) as it:
            seen: list[int] = [0]
            it.informer.add_handler(
                lambda _: seen.append(int(it.informer.resource_version or seen[-1]))
            )
            for operation, number, wait in operations:
                try:
                    operate(it.server, operation, number)
                except ApiProblemError:
                    continue  # no such pod, or one too many: the server refuses, nothing happens
                if wait:
                    await give_time(it)

            lists = it.counts.lists
            make_whole(it.server)
            await until(lambda: it.counts.lists > lists)
            await until(lambda: versions(list(it.informer.list())) == truth(it.server))

            assert it.informer.has_synced
            # The mirror has checked each delta on its way.
            assert {
                uid: obj.metadata.resource_version for uid, obj in it.mirror.objects.items()
            } == (truth(it.server))
            assert it.counts.rewinds == 0
            assert seen == sorted(seen)  # I10

    run(main)
