from __future__ import annotations

import itertools
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.client.http1 import (
    MAX_HEAD_BYTES,
    BadResponseError,
    BodyTooLargeError,
    RawResponse,
    ResponseParser,
)

SIZED = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"5\r\nhello\r\n6;name=value\r\n, worl\r\n001\r\nd\r\n0\r\n\r\n"
)
TRAILERS = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\nC: d\r\n\r\n"
)
NO_CONTENT = b"HTTP/1.1 204 No Content\r\nDate: today\r\n\r\n"
PROVISIONAL = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + SIZED
NO_REASON = b"HTTP/1.1 200 \r\ncontent-length:0\r\n\r\n"

ANSWERS = [
    pytest.param(SIZED, 201, b"hello", id="sized"),
    pytest.param(CHUNKED, 200, b"hello, world", id="chunked"),
    pytest.param(TRAILERS, 200, b"hello", id="chunked-with-trailers"),
    pytest.param(NO_CONTENT, 204, b"", id="no-content"),
    pytest.param(PROVISIONAL, 201, b"hello", id="after-provisional-answers"),
    pytest.param(NO_REASON, 200, b"", id="empty-body-and-reason"),
]


def feed_all(parser: ResponseParser, parts: list[bytes]) -> RawResponse | None:
    answers = [parser.feed(part) for part in parts if part]
    assert all(answer is None for answer in answers[:-1])
    return answers[-1]


def cut(data: bytes, at: list[int]) -> list[bytes]:
    places = [0, *sorted(place % (len(data) + 1) for place in at), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(places)]


@given(data=st.sampled_from([SIZED, CHUNKED, TRAILERS]), at=st.lists(st.integers(0, 500)))
def test_a_body_that_is_taken_as_it_comes_is_the_same(data: bytes, at: list[int]) -> None:
    parser = ResponseParser(100)
    parts, answer = [], None
    for part in cut(data, at):
        if part:
            answer = parser.feed(part)
            parts.append(parser.drain() if answer is None else answer.body)
    assert b"".join(parts) in (b"hello", b"hello, world")
    assert answer is not None


@pytest.mark.parametrize(("data", "status", "body"), ANSWERS)
def test_an_answer_is_read(data: bytes, status: int, body: bytes) -> None:
    answer = ResponseParser(100).feed(data)
    assert answer is not None
    assert (answer.status, answer.body, answer.reusable) == (status, body, True)


@pytest.mark.parametrize(("data", "status", "body"), ANSWERS)
@given(at=st.lists(st.integers(0, 10_000), max_size=8))
def test_it_does_not_matter_how_an_answer_is_cut(
    data: bytes, status: int, body: bytes, at: list[int]
) -> None:
    answer = feed_all(ResponseParser(100), cut(data, at))
    assert answer is not None
    assert (answer.status, answer.body) == (status, body)


@given(chunks=st.lists(st.binary(min_size=1, max_size=50), max_size=20), at=st.lists(st.integers()))
def test_chunks_are_put_together(chunks: list[bytes], at: list[int]) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    data = head + b"".join(b"%x\r\n%b\r\n" % (len(c), c) for c in chunks) + b"0\r\n\r\n"
    answer = feed_all(ResponseParser(1000), cut(data, at))
    assert answer is not None
    assert answer.body == b"".join(chunks)


@given(data=st.binary(max_size=300))
def test_nonsense_is_refused_and_nothing_worse(data: bytes) -> None:
    parser = ResponseParser(100)
    try:
        answer = parser.feed(data)
    except BadResponseError:
        return
    assert answer is None


@given(
    which=st.sampled_from([SIZED, CHUNKED, TRAILERS, PROVISIONAL]),
    at=st.integers(0, 10_000),
    byte=st.integers(0, 255),
)
def test_a_damaged_answer_is_read_or_refused_and_nothing_worse(
    which: bytes, at: int, byte: int
) -> None:
    at %= len(which)
    parser = ResponseParser(100)
    try:
        parser.feed(which[:at] + bytes([byte]) + which[at + 1 :])
    except (BadResponseError, BodyTooLargeError):
        return


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"HTTP/2 200 OK\r\n\r\n", id="another-protocol"),
        pytest.param(b"SSH-2.0-OpenSSH_9.6\r\n\r\n", id="no-http"),
        pytest.param(b"HTTP/1.1 99 Low\r\n\r\n", id="status-too-low"),
        pytest.param(b"HTTP/1.1 2000 High\r\n\r\n", id="status-with-four-digits"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nA: b\r\n c\r\n\r\n", id="folded"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", id="negative-length"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n", id="list-of-lengths"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n", id="length-with-sign"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", id="two-lengths"
        ),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            id="length-and-chunks",
        ),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", id="gzip"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", id="negative-chunk"
        ),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n",
            id="chunk-too-long",
        ),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"0" * 5000,
            id="chunk-size-without-end",
        ),
        pytest.param(b"HTTP/1.1 101 Switching Protocols\r\n\r\n", id="protocol-switched"),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n" * 10_000, id="provisional-for-ever"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nA: " + b"b" * (MAX_HEAD_BYTES + 1), id="head-without-end"
        ),
        pytest.param(SIZED + b"H", id="a-byte-behind-the-answer"),
        pytest.param(NO_CONTENT + SIZED, id="another-answer-behind-it"),
    ],
)
def test_what_is_not_an_answer_is_refused(data: bytes) -> None:
    with pytest.raises(BadResponseError):
        ResponseParser(100).feed(data)


@pytest.mark.parametrize(
    ("head", "reusable"),
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nConnection: keep-alive", True, id="keep-alive"),
        pytest.param(b"HTTP/1.1 200 OK\r\nconnection: Close", False, id="close"),
        pytest.param(b"HTTP/1.1 200 OK\r\nConnection: foo, close", False, id="close-in-a-list"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nConnection: close", False, id="twice"
        ),
        pytest.param(b"HTTP/1.0 200 OK", False, id="http-1.0"),
    ],
)
def test_a_connection_is_kept_only_if_both_sides_want_it(head: bytes, reusable: bool) -> None:
    answer = ResponseParser(100).feed(head + b"\r\nContent-Length: 0\r\n\r\n")
    assert answer is not None
    assert answer.reusable is reusable


def test_a_body_without_a_length_ends_with_the_connection() -> None:
    parser = ResponseParser(100)
    assert parser.feed(b"HTTP/1.1 200 OK\r\n\r\nhel") is None
    assert parser.feed(b"lo") is None
    answer = parser.feed_eof()
    assert (answer.body, answer.reusable) == (b"hello", False)


@pytest.mark.parametrize("length", range(1, len(CHUNKED)))
def test_the_end_of_the_data_is_no_end_of_an_answer(length: int) -> None:
    parser = ResponseParser(100)
    assert parser.feed(CHUNKED[:length]) is None
    with pytest.raises(BadResponseError):
        parser.feed_eof()


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n", id="announced"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n", id="in-one-chunk"
        ),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"2\r\nab\r\n" * 51,
            id="in-many-chunks",
        ),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\n" + b"a" * 101, id="without-length"),
    ],
)
def test_a_body_that_is_too_large_is_refused_as_soon_as_it_shows(data: bytes) -> None:
    with pytest.raises(BodyTooLargeError):
        ResponseParser(100).feed(data)


@pytest.mark.parametrize(
    "data", [pytest.param(SIZED, id="sized"), pytest.param(CHUNKED, id="chunked")]
)
def test_the_body_of_a_success_may_be_dropped(data: bytes) -> None:
    answer = ResponseParser(100, keep_body=False).feed(data)
    assert answer is not None
    assert answer.body == b""


def test_the_body_of_a_refusal_is_kept_all_the_same() -> None:
    answer = ResponseParser(100, keep_body=False).feed(SIZED.replace(b"201", b"409"))
    assert answer is not None
    assert answer.body == b"hello"


def test_headers_are_found_in_any_case_and_joined() -> None:
    answer = ResponseParser(100).feed(
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nWarning: one\r\nwarning:  two \r\n\r\n"
    )
    assert answer is not None
    assert dict(answer.headers) == {"content-length": "0", "warning": "one, two"}
    assert answer.headers["WARNING"] == "one, two"
    assert answer.headers.get("Retry-After") is None


@pytest.mark.parametrize("data", [SIZED, CHUNKED, TRAILERS, NO_CONTENT])
def test_a_parser_goes_with_its_last_user_and_waits_for_no_collector(data: bytes) -> None:
    parser = ResponseParser(100)
    users = sys.getrefcount(parser)
    parser.feed(data[:-1])
    parser.feed(data[-1:])
    assert sys.getrefcount(parser) == users
