"""Answers that clients do not read, over real connections."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp import web

from scheduler.insight.outgoing import SMALL_BYTES, Outgoing
from scheduler.insight.refused import RefusedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

LARGE = b"x" * (32 << 20)
"""More than the kernel takes for a client that does not read."""


class Served:
    """A server whose answers have the asked size, and the statuses of its refusals."""

    def __init__(self) -> None:
        self.outgoing = Outgoing(len(LARGE))

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = LARGE[: int(request.query["bytes"])]
        try:
            async with asyncio.timeout(float(request.query.get("limit", "60"))):
                return await self.outgoing.json(request, body)
        except RefusedError as error:
            return web.Response(status=error.status)


def play(scene: Callable[[Served, aiohttp.ClientSession, str], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        served, app = Served(), web.Application()
        app.router.add_get("/", served.handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/?bytes="
        try:
            async with asyncio.timeout(60), aiohttp.ClientSession() as client:
                return await scene(served, client, url)
        finally:
            await runner.cleanup()

    return asyncio.run(main())


async def fetch(client: aiohttp.ClientSession, url: str) -> tuple[int, int]:
    async with client.get(url) as answer:
        return answer.status, len(await answer.read())


def test_answers_arrive_whole_over_one_connection():
    async def scene(served, client, url):
        sizes = (10, SMALL_BYTES, SMALL_BYTES + 1, len(LARGE))
        return [(await fetch(client, f"{url}{size}"))[1] == size for size in sizes]

    assert play(scene) == [True] * 4


def test_beyond_the_limit_large_answers_are_refused_and_small_ones_are_not():
    async def scene(served, client, url):
        async with client.get(f"{url}{len(LARGE)}"):  # its body is not read
            large = await fetch(client, f"{url}{SMALL_BYTES + 1}")
            small = await fetch(client, f"{url}{SMALL_BYTES}")
        while served.outgoing.bytes:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0)
        return large, small, await fetch(client, f"{url}{len(LARGE)}")

    assert play(scene) == ((503, 0), (200, SMALL_BYTES), (200, len(LARGE)))


def test_an_answer_that_is_not_read_in_time_is_cut():
    async def scene(served, client, url):
        async with client.get(f"{url}{len(LARGE)}&limit=0.05") as answer:
            while served.outgoing.bytes:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0)
            try:
                return len(await answer.read())
            except aiohttp.ClientError as error:
                return type(error)

    assert play(scene) is aiohttp.ClientPayloadError
