from __future__ import annotations

from typing import Any

import pytest

from scheduler.informers.object_reader import ObjectReader
from scheduler.informers.watch_events import BookmarkEvent, ObjectEvent
from scheduler.informers.watch_stream import WatchDecoder
from scheduler.kinds import NODES, PODS
from tests.bench.deciding import Parts
from tests.bench.large_clusters import node_name
from tests.bench.object_server import end_of_list, node_line, pod_line
from tests.bench.watching import Watching, object_server


def pod_events(*lines: bytes) -> list[Any]:
    return list(WatchDecoder(ObjectReader(PODS)).feed(b"".join(lines)))


def test_a_pod_reads_as_one_that_runs() -> None:
    event = pod_events(pod_line(b"ADDED", 7, 5, 12))[0]
    assert isinstance(event, ObjectEvent)
    assert event.object.spec.node_name == node_name(2)
    assert event.object.status.phase == "Running"


def test_a_change_is_of_the_same_pod_and_later() -> None:
    was, now = pod_events(pod_line(b"ADDED", 7, 5, 12), pod_line(b"MODIFIED", 7, 5, 13, 1))
    assert was.object.metadata.uid == now.object.metadata.uid
    assert was.object.metadata.resource_version < now.object.metadata.resource_version


def test_pods_differ() -> None:
    events = pod_events(*(pod_line(b"ADDED", index, 5, index + 1) for index in range(500)))
    keys = {(e.object.metadata.namespace, e.object.metadata.name) for e in events}
    assert len(keys) == len({e.object.metadata.uid for e in events}) == 500


def test_a_node_reads_as_one_with_room() -> None:
    event = WatchDecoder(ObjectReader(NODES)).feed(node_line(3))[0]
    assert isinstance(event, ObjectEvent)
    assert event.object.status.allocatable["pods"] == "1000"


def test_the_end_of_a_list_is_told() -> None:
    event = pod_events(end_of_list(b"Pod", 99))[0]
    assert isinstance(event, BookmarkEvent)
    assert (event.initial_events_end, event.resource_version) == (True, "99")


@pytest.fixture
def parts() -> Parts:
    return Parts()


def test_all_of_it_arrives_in_the_cache(parts: Parts) -> None:
    with object_server(5, 40, 0) as port:
        watching = Watching(parts, port)
        watching.start()
        watching.stop()
    counts = parts.cache.counts()
    assert (counts.nodes, counts.pods) == (5, 40)
