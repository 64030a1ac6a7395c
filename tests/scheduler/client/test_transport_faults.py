from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

from scheduler.client import connection_pool
from scheduler.client.errors import ApiError
from tests.scheduler.client.loopback import (
    Loopback,
    RawServer,
    free_port,
    ok,
    transport_to,
    until,
)

if TYPE_CHECKING:
    from tests.scheduler.client.conftest import Run

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


def raw_failure(
    run: Run, *answers: bytes, method: str = "GET", keep_open: bool = False, **options: Any
) -> ApiError:
    async def main() -> None:
        server = RawServer(*answers, keep_open=keep_open)
        async with server, transport_to(server.url, **options) as transport:
            await transport.request(method, "/api/v1/pods", timeout_s=0.1 if keep_open else 10.0)

    with pytest.raises(ApiError) as caught:
        run(main())
    return caught.value


def test_a_server_that_is_not_there_leaves_no_doubt(run: Run) -> None:
    async def main() -> None:
        async with transport_to(f"http://127.0.0.1:{free_port()}") as transport:
            await transport.request("POST", "/x", body=b"{}")

    with pytest.raises(ApiError) as caught:
        run(main())
    assert (caught.value.reason, caught.value.ambiguous) == ("Unreachable", False)


@pytest.mark.parametrize(("method", "ambiguous"), [("POST", True), ("GET", False)])
def test_a_dropped_connection_leaves_a_write_in_doubt(
    run: Run, method: str, ambiguous: bool
) -> None:
    error = raw_failure(run, b"", method=method)
    assert (error.status, error.reason, error.ambiguous) == (None, "Disconnected", ambiguous)


@pytest.mark.parametrize(("method", "ambiguous"), [("POST", True), ("GET", False)])
def test_a_timeout_leaves_a_write_in_doubt(run: Run, method: str, ambiguous: bool) -> None:
    error = raw_failure(run, b"", method=method, keep_open=True)
    assert (error.status, error.reason, error.ambiguous) == (None, "Timeout", ambiguous)


def test_a_connection_that_timed_out_is_not_used_again(run: Run) -> None:
    """Its late answer would be taken for the next request's."""

    async def main() -> tuple[str, int]:
        release = asyncio.Event()

        async def handler(request: web.Request) -> web.Response:
            if request.path == "/slow":
                await release.wait()
            return web.Response(text=request.path)

        async with Loopback(handler) as server, transport_to(server.url) as transport:
            with pytest.raises(ApiError):
                await transport.request("GET", "/slow", timeout_s=0.05)
            release.set()
            answer = await transport.request("GET", "/fast")
            return answer.body.decode(), len({received.peer for received in server.received})

    assert run(main()) == ("/fast", 2)


def test_a_connection_whose_caller_went_away_is_not_used_again(run: Run) -> None:
    async def main() -> str:
        arrived, release = asyncio.Event(), asyncio.Event()

        async def handler(request: web.Request) -> web.Response:
            if request.path == "/slow":
                arrived.set()
                await release.wait()
            return web.Response(text=request.path)

        async with Loopback(handler) as server, transport_to(server.url) as transport:
            caller = asyncio.ensure_future(transport.request("GET", "/slow"))
            await arrived.wait()
            caller.cancel()
            with pytest.raises(asyncio.CancelledError):
                await caller
            release.set()
            return (await transport.request("GET", "/fast")).body.decode()

    assert run(main()) == "/fast"


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Le", id="in-the-head"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", id="in-the-body"),
        pytest.param(b"", id="before-the-first-byte"),
    ],
)
def test_an_answer_that_breaks_off_is_none(run: Run, answer: bytes) -> None:
    assert raw_failure(run, answer).reason == "Disconnected"


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"SSH-2.0-OpenSSH_9.6\r\n\r\n", id="another-protocol"),
        pytest.param(OK + b"HTTP/1.1 200 OK\r\n", id="more-than-an-answer"),
    ],
)
def test_what_is_no_answer_is_not_believed(run: Run, answer: bytes) -> None:
    error = raw_failure(run, answer, method="POST")
    assert (error.reason, error.ambiguous) == ("BadResponse", True)


def test_an_answer_nobody_asked_for_ends_the_connection(run: Run) -> None:
    async def main() -> tuple[bytes, int]:
        closed = asyncio.Event()
        connections = 0

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal connections
            connections += 1
            await reader.readuntil(b"\r\n\r\n")
            writer.write(OK)
            if connections == 1:
                await writer.drain()
                await idle.wait()
                writer.write(OK.replace(b"{}", b"[]"))
                assert await reader.read() == b""
                closed.set()
            writer.close()
            await writer.wait_closed()

        idle = asyncio.Event()
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with transport_to(url) as transport:
            await transport.request("GET", "/x")
            idle.set()
            await closed.wait()
            answer = await transport.request("GET", "/x")
        server.close()
        await server.wait_closed()
        return answer.body, connections

    assert run(main()) == (b"{}", 2)


def test_a_body_larger_than_allowed_is_refused(run: Run) -> None:
    large = b"HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n" + b"a" * 101
    error = raw_failure(run, large, max_body_bytes=100)
    assert error.reason == "ResponseTooLarge"
    assert "100 bytes" in error.message


def test_an_accepted_write_stays_accepted_when_its_answer_breaks_off(run: Run) -> None:
    async def main() -> int:
        broken = b"HTTP/1.1 201 Created\r\nContent-Length: 9\r\n\r\n{"
        async with RawServer(broken) as server, transport_to(server.url) as transport:
            answer = await transport.request("POST", "/x", body=b"{}", discard_body=True)
            return answer.status

    assert run(main()) == 201


@pytest.mark.parametrize(("method", "sent"), [("GET", 3), ("POST", 2)])
def test_only_a_read_is_sent_again_when_a_kept_connection_is_dead(
    run: Run, method: str, sent: int
) -> None:
    async def main() -> int:
        heard = 0

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal heard
            with contextlib.suppress(asyncio.IncompleteReadError):
                await reader.readuntil(b"\r\n\r\n")
                heard += 1
                writer.write(OK)
                if heard == 1:
                    # The second request is read and the connection closed without an answer.
                    await reader.readuntil(b"\r\n\r\n")
                    heard += 1
            writer.close()
            await writer.wait_closed()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with transport_to(url) as transport:
            await transport.request(method, "/x")
            if method == "POST":
                with pytest.raises(ApiError, match="Disconnected"):
                    await transport.request(method, "/x")
            else:
                await transport.request(method, "/x")
        server.close()
        await server.wait_closed()
        return heard

    assert run(main()) == sent


def test_closing_ends_the_requests_under_way(run: Run) -> None:
    async def main() -> ApiError:
        async with RawServer(b"", keep_open=True) as server:
            async with transport_to(server.url) as transport:
                pending = asyncio.ensure_future(transport.request("POST", "/x"))
                await until(lambda: server.connections)
            with pytest.raises(ApiError) as caught:
                await pending
            return caught.value

    assert run(main()).reason == "Disconnected"


def test_after_closing_nothing_is_sent(run: Run) -> None:
    async def main() -> int:
        async with Loopback(ok) as server:
            async with transport_to(server.url) as transport:
                pass
            with pytest.raises(ApiError, match="closed"):
                await transport.request("POST", "/x")
            return len(server.received)

    assert run(main()) == 0


def test_a_connection_that_is_not_needed_is_closed(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_pool, "KEEP_ALIVE_S", 0.02)

    async def main() -> None:
        closed = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(OK)
            assert await reader.read() == b""
            closed.set()
            writer.close()
            await writer.wait_closed()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with transport_to(url) as transport:
            await transport.request("GET", "/x")
            await closed.wait()
        server.close()
        await server.wait_closed()

    run(main())
