from __future__ import annotations

import asyncio
import datetime as dt
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

from scheduler.client.errors import ApiError
from tests.scheduler.client.loopback import (
    Loopback,
    RawServer,
    json_answer,
    ok,
    status_answer,
    transport_to,
)

if TYPE_CHECKING:
    from scheduler.client.http1 import RawResponse
    from tests.scheduler.client.conftest import Run
    from tests.scheduler.client.loopback import Handler

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


def exchange(run: Run, handler: Handler, *args: Any, **kwargs: Any) -> tuple[RawResponse, Loopback]:
    """Send one request to a server that answers with `handler`."""

    async def main() -> tuple[RawResponse, Loopback]:
        async with Loopback(handler) as server, transport_to(server.url) as transport:
            return await transport.request(*args, **kwargs), server

    answer: tuple[RawResponse, Loopback] = run(main())
    return answer


def refusal(run: Run, handler: Handler, method: str = "GET", **kwargs: Any) -> ApiError:
    with pytest.raises(ApiError) as caught:
        exchange(run, handler, method, "/api/v1/pods", **kwargs)
    return caught.value


# --- requests ---------------------------------------------------------------------------------


def test_an_answer_has_status_headers_and_body(run: Run) -> None:
    async def handler(request: web.Request) -> web.Response:
        return json_answer({"a": 1}, 201, Warning="careful")

    answer, _ = exchange(run, handler, "POST", "/x", body=b"{}")
    assert (answer.status, answer.headers["warning"], answer.body) == (201, "careful", b'{"a":1}')


def test_a_request_arrives_as_it_was_meant(run: Run) -> None:
    _, server = exchange(
        run,
        ok,
        "PATCH",
        "/api/v1/namespaces/a%20b/pods/c",
        query=[("fieldSelector", "spec.nodeName="), ("x", "ü&")],
        body=b'{"status":{}}',
        content_type="application/merge-patch+json",
    )
    (received,) = server.received
    assert received.method == "PATCH"
    assert (
        received.path
        == "/api/v1/namespaces/a%20b/pods/c?fieldSelector=spec.nodeName%3D&x=%C3%BC%26"
    )
    assert received.body == b'{"status":{}}'
    assert received.headers["Content-Type"] == "application/merge-patch+json"
    assert received.headers["Authorization"] == "Bearer token"
    assert received.headers["User-Agent"] == "berth/test"
    assert received.headers["Accept"] == "application/json"
    assert received.headers["Host"] == server.url.removeprefix("http://")


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
def test_a_request_may_have_no_body(run: Run, method: str) -> None:
    _, server = exchange(run, ok, method, "/api/v1/pods")
    assert server.received[0].body == b""
    assert "Content-Type" not in server.received[0].headers


def test_a_server_may_stand_behind_a_path(run: Run) -> None:
    async def main() -> str:
        async with (
            Loopback(ok) as server,
            transport_to(f"{server.url}/k8s/clusters/c-1/") as transport,
        ):
            await transport.request("GET", "/version")
            return server.received[0].path

    assert run(main()) == "/k8s/clusters/c-1/version"


@pytest.mark.parametrize("path", ["/a b", "/a\r\nX: y", "a", "/ü", "/a\x00"])
def test_a_path_that_is_not_encoded_is_never_sent(run: Run, path: str) -> None:
    with pytest.raises(ValueError, match="not an encoded path"):
        exchange(run, ok, "GET", path)


def test_a_large_chunked_answer_comes_whole(run: Run) -> None:
    body = bytes(range(256)) * 20_000

    async def handler(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        answer.enable_chunked_encoding()
        await answer.prepare(request)
        for i in range(0, len(body), 70_000):
            await answer.write(body[i : i + 70_000])
        return answer

    answer, _ = exchange(run, handler, "GET", "/api/v1/pods")
    assert answer.body == body


def test_connections_are_used_again(run: Run) -> None:
    async def main() -> set[object]:
        async with Loopback(ok) as server, transport_to(server.url) as transport:
            for _ in range(5):
                await transport.request("POST", "/x", body=b"{}")
            return {received.peer for received in server.received}

    assert len(run(main())) == 1


def test_no_more_connections_are_opened_than_allowed(run: Run) -> None:
    async def main() -> set[object]:
        async def handler(request: web.Request) -> web.Response:
            await asyncio.sleep(0)
            return json_answer({})

        async with (
            Loopback(handler) as server,
            transport_to(server.url, max_connections=3) as transport,
        ):
            async with asyncio.TaskGroup() as group:
                for _ in range(30):
                    group.create_task(transport.request("GET", "/x"))
            return {received.peer for received in server.received}

    assert len(run(main())) <= 3


def test_a_server_that_wants_to_close_is_not_asked_again_on_that_connection(run: Run) -> None:
    async def main() -> int:
        closing = OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
        async with RawServer(closing) as server, transport_to(server.url) as transport:
            for _ in range(3):
                await transport.request("POST", "/x", body=b"{}")
            return server.connections

    assert run(main()) == 3


def test_the_body_of_a_success_may_be_discarded(run: Run) -> None:
    answer, _ = exchange(run, ok, "POST", "/x", body=b"{}", discard_body=True)
    assert (answer.status, answer.body) == (200, b"")


# --- refusals ---------------------------------------------------------------------------------


def test_a_refusal_says_what_the_server_said(run: Run) -> None:
    async def handler(request: web.Request) -> web.Response:
        return status_answer(409, "Conflict", "pod a is already assigned to node n1")

    error = refusal(run, handler, "POST", body=b"{}", discard_body=True)
    assert (error.status, error.reason) == (409, "Conflict")
    assert error.message == "pod a is already assigned to node n1"
    assert (error.method, error.path, error.ambiguous) == ("POST", "/api/v1/pods", False)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"<html>Bad Gateway</html>", id="html"),
        pytest.param(b'{"message":5}', id="another-json"),
        pytest.param(b"\xff\xfe" * 100_000, id="large-and-no-text"),
        pytest.param(b"[" * 50_000, id="nested-without-end"),
        pytest.param(b"", id="empty"),
        pytest.param(b"null", id="null"),
    ],
)
def test_a_refusal_without_a_status_object_is_understood(run: Run, body: bytes) -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(status=503, body=body)

    error = refusal(run, handler)
    assert (error.status, error.reason) == (503, "ServiceUnavailable")
    assert error.message


@pytest.mark.parametrize(
    ("method", "status", "ambiguous"),
    [
        pytest.param("POST", 500, True, id="write-500"),
        pytest.param("PATCH", 504, True, id="write-504"),
        pytest.param("GET", 504, False, id="read-504"),
        pytest.param("POST", 429, False, id="write-429"),
        pytest.param("POST", 403, False, id="write-403"),
    ],
)
def test_a_write_is_in_doubt_after_a_server_error(
    run: Run, method: str, status: int, ambiguous: bool
) -> None:
    async def handler(request: web.Request) -> web.Response:
        return status_answer(status, "Reason", "message")

    assert refusal(run, handler, method).ambiguous is ambiguous


@pytest.mark.parametrize(
    ("headers", "details", "seconds"),
    [
        pytest.param({"Retry-After": "7"}, None, 7.0, id="header"),
        pytest.param({}, {"retryAfterSeconds": 3}, 3.0, id="in-the-status"),
        pytest.param({"Retry-After": "soon"}, None, None, id="nonsense"),
        pytest.param({"Retry-After": "-1"}, None, None, id="negative"),
        pytest.param({}, None, None, id="none"),
        pytest.param(
            {"Retry-After": format_datetime(dt.datetime(2001, 1, 1, tzinfo=dt.UTC), usegmt=True)},
            None,
            0.0,
            id="date-in-the-past",
        ),
    ],
)
def test_retry_after_is_read(
    run: Run, headers: dict[str, str], details: Any, seconds: float | None
) -> None:
    async def handler(request: web.Request) -> web.Response:
        return status_answer(429, "TooManyRequests", "slow down", details=details, **headers)

    assert refusal(run, handler).retry_after_s == seconds


def test_a_redirect_is_not_followed(run: Run) -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(status=307, headers={"Location": "http://elsewhere.example/"})

    assert refusal(run, handler).status == 307
