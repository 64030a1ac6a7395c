from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.client.codec import ObjectIdentity
from scheduler.informers.object_reader import ObjectReader
from scheduler.informers.watch_events import (
    BookmarkEvent,
    ErrorEvent,
    EventType,
    ObjectEvent,
    UnreadableEvent,
)
from scheduler.informers.watch_stream import LineSplitter, OversizedLine, WatchDecoder
from scheduler.kinds import PODS

if TYPE_CHECKING:
    from cache.objects import Pod
    from scheduler.informers.watch_events import WatchEvent


def line(event_type: str, obj: Any) -> bytes:
    return msgspec.json.encode({"type": event_type, "object": obj}) + b"\n"


def pod(name: str = "web", uid: str = "u1", **rest: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "shop", "uid": uid, "resourceVersion": "7"},
        **rest,
    }


def decode(*chunks: bytes, **options: Any) -> list[WatchEvent[Pod]]:
    decoder = WatchDecoder(ObjectReader(PODS), **options)
    return [event for chunk in chunks for event in decoder.feed(chunk)]


# --- lines ------------------------------------------------------------------------------------


@given(
    lines=st.lists(st.binary(max_size=40).filter(lambda line: b"\n" not in line)),
    tail=st.binary(max_size=20).filter(lambda line: b"\n" not in line),
    cuts=st.lists(st.integers(min_value=1, max_value=30), min_size=1),
)
def test_lines_do_not_depend_on_where_the_stream_is_cut(
    lines: list[bytes], tail: bytes, cuts: list[int]
) -> None:
    stream = b"".join(line + b"\n" for line in lines) + tail
    splitter, found, start = LineSplitter(), [], 0
    for size in itertools.cycle(cuts):
        if start >= len(stream):
            break
        found += splitter.split(stream[start : start + size])
        start += size
    assert found == lines


@pytest.mark.parametrize("size", [pytest.param(1, id="bytes"), pytest.param(1000, id="at once")])
def test_a_line_over_the_cap_is_skipped_and_the_next_one_is_whole(size: int) -> None:
    splitter = LineSplitter(max_line_bytes=10)
    stream = b"0123456789\n" + b"x" * 500 + b"\nnext\n"
    found = [
        line
        for start in range(0, len(stream), size)
        for line in splitter.split(stream[start : start + size])
    ]
    assert found[0] == b"0123456789"
    assert isinstance(found[1], OversizedLine)
    assert found[1].size_bytes == 500
    assert found[1].prefix.startswith(b"xxxxxxxxxx")
    assert found[2] == b"next"


def test_a_line_over_the_cap_is_not_kept_in_memory() -> None:
    splitter = LineSplitter(max_line_bytes=1000)
    for _ in range(10_000):
        splitter.split(b"x" * 100)
    (skipped,) = splitter.split(b"\n")
    assert isinstance(skipped, OversizedLine)
    assert skipped.size_bytes == 1_000_000
    assert len(skipped.prefix) <= 1000


# --- events -----------------------------------------------------------------------------------


@pytest.mark.parametrize("event_type", list(EventType), ids=lambda value: value.name)
def test_an_event_about_an_object(event_type: EventType) -> None:
    (event,) = decode(line(event_type.value, pod()))
    assert isinstance(event, ObjectEvent)
    assert event.type is event_type
    assert event.object.metadata.name == "web"


def test_events_of_a_chunk_come_together_and_in_order() -> None:
    decoder = WatchDecoder(ObjectReader(PODS))
    events = decoder.feed(b"".join(line("ADDED", pod(f"web-{i}", f"u{i}")) for i in range(5)))
    assert [event.object.metadata.name for event in events if isinstance(event, ObjectEvent)] == [
        "web-0",
        "web-1",
        "web-2",
        "web-3",
        "web-4",
    ]


def test_a_null_where_go_encodes_an_empty_list_is_no_error() -> None:
    (event,) = decode(line("ADDED", pod(spec={"containers": None}, status={"conditions": None})))
    assert isinstance(event, ObjectEvent)
    assert event.object.spec.containers == ()


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        pytest.param({"resourceVersion": "9"}, BookmarkEvent("9", False), id="progress"),
        pytest.param(
            {
                "resourceVersion": "9",
                "creationTimestamp": None,
                "annotations": {"k8s.io/initial-events-end": "true"},
            },
            BookmarkEvent("9", True),
            id="end of initial events",
        ),
        pytest.param(
            {"resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "false"}},
            BookmarkEvent("9", False),
            id="not the end",
        ),
    ],
)
def test_a_bookmark(metadata: dict[str, Any], expected: BookmarkEvent) -> None:
    real = {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": {"containers": None}}
    assert decode(line("BOOKMARK", real)) == [expected]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param(
            {
                "kind": "Status",
                "status": "Failure",
                "code": 410,
                "reason": "Expired",
                "message": "m",
            },
            ErrorEvent(410, "Expired", "m", None),
            id="expired",
        ),
        pytest.param(
            {"code": 429, "reason": "TooManyRequests", "details": {"retryAfterSeconds": 3}},
            ErrorEvent(429, "TooManyRequests", "", 3.0),
            id="retry after",
        ),
        pytest.param({}, ErrorEvent(0, "", "", None), id="empty status"),
    ],
)
def test_an_error(status: dict[str, Any], expected: ErrorEvent) -> None:
    assert decode(line("ERROR", status)) == [expected]


def test_an_error_that_cannot_be_read_is_still_an_error() -> None:
    (event,) = decode(line("ERROR", {"code": "four hundred"}))
    assert isinstance(event, ErrorEvent)
    assert event.code == 0


# --- lines that cost themselves (F28) ---------------------------------------------------------

GOOD = line("ADDED", pod("good", "u-good"))


@pytest.mark.parametrize(
    ("bad", "event_type", "uid"),
    [
        pytest.param(b"no json at all\n", None, None, id="garbage"),
        pytest.param(
            b'{"type":"DELETED","object":{"metadata":\n', EventType.DELETED, None, id="cut"
        ),
        pytest.param(b'{"type":"ADDED"}\n', EventType.ADDED, None, id="no object"),
        pytest.param(line("FROBBED", pod()), None, None, id="unknown type"),
        pytest.param(
            line("MODIFIED", pod(spec={"nodeName": 7})), EventType.MODIFIED, "u1", id="wrong type"
        ),
        pytest.param(
            line("DELETED", pod(spec={"containers": "none"})),
            EventType.DELETED,
            "u1",
            id="deletion",
        ),
        pytest.param(
            line("ADDED", {"metadata": {"name": "x"}}), EventType.ADDED, None, id="no uid"
        ),
        pytest.param(
            line("ADDED", {"metadata": {"uid": "u1"}}), EventType.ADDED, "u1", id="no name"
        ),
        pytest.param(
            b'{"type":"ADDED","object":' + b"[" * 50_000 + b"]" * 50_000 + b"}\n",
            EventType.ADDED,
            None,
            id="nested without end",
        ),
        pytest.param(
            b'{"type":"ADDED","object":{"metadata":{"name":"\xff"}}}\n',
            EventType.ADDED,
            None,
            id="not UTF-8",
        ),
        pytest.param(line("BOOKMARK", {"metadata": {}}), None, None, id="bookmark without version"),
    ],
)
def test_a_bad_line_costs_that_line(
    bad: bytes, event_type: EventType | None, uid: str | None
) -> None:
    before, event, after = decode(GOOD + bad + GOOD)
    assert isinstance(before, ObjectEvent)
    assert isinstance(after, ObjectEvent)
    assert isinstance(event, UnreadableEvent)
    assert event.type is event_type
    assert (event.identity.uid if event.identity is not None else None) == uid


def test_a_bad_value_is_named_by_its_path() -> None:
    (event,) = decode(line("MODIFIED", pod(spec={"containers": [{"name": "a"}, {"name": 7}]})))
    assert isinstance(event, UnreadableEvent)
    assert event.identity == ObjectIdentity("shop", "web", "u1", "7")
    assert "spec.containers" in event.problem


def test_an_oversized_line_costs_that_line() -> None:
    huge = line("DELETED", pod(spec={"schedulerName": "x" * 10_000}))
    before, event, after = decode(GOOD + huge + GOOD, max_line_bytes=2000)
    assert isinstance(before, ObjectEvent)
    assert event == UnreadableEvent(
        EventType.DELETED, None, f"a line of {len(huge) - 1} bytes was skipped"
    )
    assert isinstance(after, ObjectEvent)


def test_a_problem_does_not_quote_without_end() -> None:
    (event,) = decode(b'{"type":"' + b"A" * 100_000 + b'","object":{}}\n')
    assert isinstance(event, UnreadableEvent)
    assert len(event.problem) < 1000


@given(st.lists(st.binary(max_size=60) | st.just(GOOD), max_size=8))
def test_nothing_that_is_fed_raises(chunks: list[bytes]) -> None:
    decode(*chunks)


# --- transform --------------------------------------------------------------------------------


def test_a_transform_decides_what_is_kept() -> None:
    reader = ObjectReader(
        PODS, lambda obj: msgspec.structs.replace(obj, spec=type(obj.spec)(node_name="trimmed"))
    )
    (event,) = WatchDecoder(reader).feed(GOOD)
    assert isinstance(event, ObjectEvent)
    assert event.object.spec.node_name == "trimmed"


def test_a_transform_that_fails_costs_that_object() -> None:
    def fussy(obj: Pod) -> Pod:
        if obj.metadata.name == "web":
            raise KeyError("no such label")
        return obj

    bad, good = WatchDecoder(ObjectReader(PODS, fussy)).feed(line("ADDED", pod()) + GOOD)
    assert isinstance(bad, UnreadableEvent)
    assert bad.identity == ObjectIdentity("shop", "web", "u1", "7")
    assert "no such label" in bad.problem
    assert isinstance(good, ObjectEvent)
