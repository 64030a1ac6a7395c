from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from scheduler.client.errors import ApiError
from tests.bench.load_client import BoundWatch, LoadClient
from tests.bench.pod_templates import MEASURED, PLAIN
from tests.fakes.api_server import FakeApiServer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

DEADLINE_S = 30.0


def play(
    tmp_path: Path, scene: Callable[[FakeApiServer, LoadClient, BoundWatch], Awaitable[None]]
) -> None:
    """Let a scene go on with a watch that runs beside it."""

    async def run() -> None:
        async with FakeApiServer() as server:
            kubeconfig = tmp_path / "kubeconfig"
            kubeconfig.write_text(yaml.safe_dump(server.kubeconfig))
            server.create("nodes", {"metadata": {"name": "node-1"}})
            async with LoadClient(kubeconfig) as client:
                watch = BoundWatch(client, MEASURED)
                await watch.open()
                following = asyncio.ensure_future(watch.run())
                try:
                    async with asyncio.timeout(DEADLINE_S):
                        await scene(server, client, watch)
                finally:
                    following.cancel()
                    await asyncio.gather(following, return_exceptions=True)

    asyncio.run(run())


def pods(count: int) -> list[dict[str, Any]]:
    return [PLAIN.pod(f"pod-{index}", MEASURED) for index in range(count)]


def bind(server: FakeApiServer, name: str) -> None:
    server.patch("pods", name, {"spec": {"nodeName": "node-1"}}, namespace=MEASURED)


def test_all_objects_are_created(tmp_path: Path) -> None:
    async def scene(server: FakeApiServer, client: LoadClient, watch: BoundWatch) -> None:
        await client.create_many(pods(200))
        assert len(server.objects("pods")) == 200

    play(tmp_path, scene)


def test_one_that_is_refused_is_told(tmp_path: Path) -> None:
    async def scene(server: FakeApiServer, client: LoadClient, watch: BoundWatch) -> None:
        with pytest.raises(ApiError) as refused:
            await client.create_many([*pods(3), *pods(1)])
        assert refused.value.status == 409

    play(tmp_path, scene)


def test_what_is_gone_already_may_be_deleted(tmp_path: Path) -> None:
    async def scene(server: FakeApiServer, client: LoadClient, watch: BoundWatch) -> None:
        await client.create_many(pods(1))
        await client.delete(pods(1)[0])
        await client.delete(pods(1)[0])
        assert server.objects("pods") == []

    play(tmp_path, scene)


def test_the_watch_sees_each_pod_that_comes_to_a_node(tmp_path: Path) -> None:
    async def scene(server: FakeApiServer, client: LoadClient, watch: BoundWatch) -> None:
        await client.create_many(pods(3))
        bind(server, "pod-0")
        bind(server, "pod-2")
        assert await watch.wait(2, DEADLINE_S)
        assert set(watch.bound_s) == {"pod-0", "pod-2"}

    play(tmp_path, scene)


def test_what_happens_to_a_bound_pod_later_does_not_move_its_time(tmp_path: Path) -> None:
    async def scene(server: FakeApiServer, client: LoadClient, watch: BoundWatch) -> None:
        await client.create_many(pods(2))
        bind(server, "pod-0")
        assert await watch.wait(1, DEADLINE_S)
        bound_s = watch.bound_s["pod-0"]
        server.patch("pods", "pod-0", {"status": {"phase": "Running"}}, namespace=MEASURED)
        bind(server, "pod-1")
        assert await watch.wait(2, DEADLINE_S)
        assert watch.bound_s["pod-0"] == bound_s

    play(tmp_path, scene)


def test_a_watch_that_the_server_ends_goes_on(tmp_path: Path) -> None:
    async def scene(server: FakeApiServer, client: LoadClient, watch: BoundWatch) -> None:
        await client.create_many(pods(2))
        bind(server, "pod-0")
        assert await watch.wait(1, DEADLINE_S)
        server.end_watches()
        bind(server, "pod-1")
        assert await watch.wait(2, DEADLINE_S)
        assert watch.restarts == 1

    play(tmp_path, scene)


def test_a_watch_that_fails_is_raised_or_goes_on_with_a_list(tmp_path: Path) -> None:
    async def scene(server: FakeApiServer, client: LoadClient, watch: BoundWatch) -> None:
        again = BoundWatch(client, MEASURED, lists_again=True)
        await again.open()
        await client.create_many(pods(2))
        bind(server, "pod-0")
        server.compact()
        following = asyncio.ensure_future(again.run())
        bind(server, "pod-1")
        assert await again.wait(2, DEADLINE_S)
        following.cancel()
        assert set(again.bound_s) == {"pod-0", "pod-1"}

    play(tmp_path, scene)


def test_a_wait_ends_in_time(tmp_path: Path) -> None:
    async def scene(server: FakeApiServer, client: LoadClient, watch: BoundWatch) -> None:
        assert not await watch.wait(1, 0.01)

    play(tmp_path, scene)


def test_a_cluster_with_bound_pods_is_no_place_to_begin(tmp_path: Path) -> None:
    async def scene(server: FakeApiServer, client: LoadClient, watch: BoundWatch) -> None:
        await client.create_many(pods(1))
        bind(server, "pod-0")
        with pytest.raises(RuntimeError, match="bound pods already"):
            await BoundWatch(client, MEASURED).open()

    play(tmp_path, scene)
