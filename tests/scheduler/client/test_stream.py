from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

from scheduler.client.errors import ApiError
from tests.scheduler.client.loopback import (
    Loopback,
    free_port,
    json_answer,
    status_answer,
    transport_to,
)

if TYPE_CHECKING:
    from tests.scheduler.client.conftest import Run
    from tests.scheduler.client.loopback import Handler


def streamed(run: Run, handler: Handler, **options: Any) -> list[bytes]:
    async def main() -> list[bytes]:
        async with (
            Loopback(handler) as server,
            transport_to(server.url) as transport,
            transport.stream("/api/v1/pods", **options) as stream,
        ):
            return [chunk async for chunk in stream.chunks()]

    chunks: list[bytes] = run(main())
    return chunks


async def two_lines(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse()
    await answer.prepare(request)
    for line in (b"one\n", b"two\n"):
        await answer.write(line)
    return answer


def test_a_stream_brings_what_was_sent_and_ends(run: Run) -> None:
    assert b"".join(streamed(run, two_lines)) == b"one\ntwo\n"


def test_a_streams_query_arrives(run: Run) -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(text=request.query_string)

    chunks = streamed(run, handler, query=[("watch", "true"), ("resourceVersion", "7")])
    assert b"".join(chunks) == b"watch=true&resourceVersion=7"


def test_a_stream_brings_each_part_as_it_comes(run: Run) -> None:
    """The second line is sent only after the first one was read."""

    async def main() -> list[bytes]:
        read_first = asyncio.Event()

        async def handler(request: web.Request) -> web.StreamResponse:
            answer = web.StreamResponse()
            await answer.prepare(request)
            await answer.write(b"one\n")
            await read_first.wait()
            await answer.write(b"two\n")
            return answer

        seen = []
        async with (
            Loopback(handler) as server,
            transport_to(server.url) as transport,
            transport.stream("/x") as stream,
        ):
            async for chunk in stream.chunks():
                seen.append(chunk)
                read_first.set()
        return seen

    assert run(main()) == [b"one\n", b"two\n"]


def test_a_refused_stream_says_why(run: Run) -> None:
    async def handler(request: web.Request) -> web.Response:
        return status_answer(410, "Expired", "too old resource version: 5 (9)")

    with pytest.raises(ApiError) as caught:
        streamed(run, handler)
    assert (caught.value.status, caught.value.reason) == (410, "Expired")
    assert caught.value.message == "too old resource version: 5 (9)"


def test_of_a_refused_streams_body_only_the_start_is_read(run: Run) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(status=500)
        await answer.prepare(request)
        with contextlib.suppress(ConnectionError):
            while True:
                await answer.write(b"x" * 65536)
        return answer

    with pytest.raises(ApiError) as caught:
        streamed(run, handler)
    assert caught.value.status == 500


def test_silence_ends_a_stream(run: Run) -> None:
    async def main() -> list[bytes]:
        async def handler(request: web.Request) -> web.StreamResponse:
            answer = web.StreamResponse()
            await answer.prepare(request)
            await answer.write(b"one\n")
            await server.hang()
            return answer

        seen: list[bytes] = []
        server = Loopback(handler)
        async with (
            server,
            transport_to(server.url) as transport,
            transport.stream("/x", read_timeout_s=0.1) as stream,
        ):
            chunks = stream.chunks()
            seen.append(await anext(chunks))
            with pytest.raises(ApiError, match="Timeout"):
                await anext(chunks)
        return seen

    assert run(main()) == [b"one\n"]


def test_silence_before_the_head_ends_a_stream(run: Run) -> None:
    async def main() -> None:
        async def handler(request: web.Request) -> web.Response:
            await server.hang()
            return json_answer({})

        server = Loopback(handler)
        async with (
            server,
            transport_to(server.url) as transport,
            transport.stream("/x", read_timeout_s=0.1),
        ):
            pass

    with pytest.raises(ApiError, match="Timeout"):
        run(main())


def test_a_stream_that_is_cut_is_not_a_stream_that_ends(run: Run) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        await answer.write(b"one\n")
        assert request.transport is not None
        request.transport.abort()
        return answer

    with pytest.raises(ApiError) as caught:
        streamed(run, handler)
    assert (caught.value.reason, caught.value.ambiguous) == ("Disconnected", False)


def test_a_stream_to_nobody_is_unreachable(run: Run) -> None:
    async def main() -> None:
        async with (
            transport_to(f"http://127.0.0.1:{free_port()}") as transport,
            transport.stream("/x"),
        ):
            pass

    with pytest.raises(ApiError, match="Unreachable"):
        run(main())


def test_a_reader_that_falls_behind_stops_the_sender(run: Run) -> None:
    """The server sends as fast as it can; what it has sent stays bounded until somebody reads."""

    async def main() -> None:
        sent = 0
        stuck = asyncio.Event()

        async def handler(request: web.Request) -> web.StreamResponse:
            nonlocal sent
            answer = web.StreamResponse()
            await answer.prepare(request)
            while True:
                waiting = asyncio.ensure_future(answer.write(b"x" * 65_536))
                done, _ = await asyncio.wait({waiting}, timeout=0.5)
                if not done:
                    stuck.set()
                await waiting
                sent += 65_536

        async with (
            Loopback(handler) as server,
            transport_to(server.url, max_connections=1) as transport,
            transport.stream("/x") as stream,
        ):
            await stuck.wait()
            before = sent
            read = 0
            async for chunk in stream.chunks():
                read += len(chunk)
                if read > 2 * before:
                    break

    run(main())


def test_leaving_a_stream_in_the_middle_closes_its_connection(run: Run) -> None:
    async def main() -> None:
        gone = asyncio.Event()

        async def handler(request: web.Request) -> web.StreamResponse:
            answer = web.StreamResponse()
            await answer.prepare(request)
            try:
                while True:
                    await answer.write(b"line\n")
                    await asyncio.sleep(0)
            finally:
                gone.set()

        async with Loopback(handler) as server, transport_to(server.url) as transport:
            async with transport.stream("/x") as stream:
                async for _ in stream.chunks():
                    break
            await gone.wait()

    run(main())


def test_streams_take_no_connection_from_requests(run: Run) -> None:
    async def main() -> int:
        async def handler(request: web.Request) -> web.StreamResponse:
            if request.path != "/watch":
                return json_answer({})
            answer = web.StreamResponse()
            await answer.prepare(request)
            await server.hang()
            return answer

        server = Loopback(handler)
        async with (
            server,
            transport_to(server.url, max_connections=1) as transport,
            contextlib.AsyncExitStack() as streams,
        ):
            for _ in range(5):
                await streams.enter_async_context(transport.stream("/watch"))
            return (await transport.request("POST", "/x")).status

    assert run(main()) == 200
