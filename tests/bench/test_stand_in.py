"""The stand-in for an API server, by Berth's own client and informers."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from scheduler.client.api import Api
from scheduler.client.credentials import Credentials
from scheduler.client.errors import ApiError
from scheduler.client.leases import LeaseRecord, Leases
from scheduler.client.transport import Transport
from scheduler.informers import InformerFactory
from scheduler.kinds import NODES, PODS
from scheduler.pools.ownership import POOL as OWNER
from tests.bench.large import quantile
from tests.bench.stand_in import POOL, Connection, StandIn

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@asynccontextmanager
async def served(server: StandIn) -> AsyncIterator[Transport]:
    listening = await asyncio.start_server(
        lambda reader, writer: Connection(server, reader, writer).serve(), "127.0.0.1", 0
    )
    port = listening.sockets[0].getsockname()[1]
    transport = Transport(Credentials(f"http://127.0.0.1:{port}"), user_agent="test")
    try:
        yield transport
    finally:
        await transport.close()
        listening.close()
        await listening.wait_closed()


async def until(done) -> None:
    async with asyncio.timeout(10):
        while not done():  # noqa: ASYNC110 - a watch tells nobody
            await asyncio.sleep(0.001)


def refusal(status: int):
    return pytest.raises(ApiError, check=lambda error: error.status == status)


def test_lists_in_pages_have_what_a_stream_has() -> None:
    async def main() -> None:
        server = StandIn(7, 20, 2)
        server.create(3, 0, 10, "")
        async with served(server) as transport:
            informers = InformerFactory(transport)
            pods = informers.informer(PODS)
            nodes = informers.informer(replace(NODES, label_selector=f"{POOL}=p1"))
            informers.start()
            await informers.wait_synced()
            listed = [o.uid async for page in pods.metadata_pages() for o in page.objects]
            assert sorted(listed) == sorted(pod.metadata.uid for pod in pods.list())
            assert len(listed) == 23
            assert {node.metadata.labels[POOL] for node in nodes.list()} == {"p1"}
            assert len(nodes.list()) == 3
            server.create(1, 0, 10, "")
            await until(lambda: len(pods.list()) == 24)
            await informers.stop()

    asyncio.run(main())


def test_a_pod_is_bound_once_and_as_the_version_says() -> None:
    async def main() -> None:
        server = StandIn(2, 0, 1)
        server.create(1, -1, 10, "")
        (pod,) = server.pods.values()
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        version = pod["metadata"]["resourceVersion"]
        async with served(server) as transport:
            api = Api(transport)
            written = await api.annotate_pending_pod("default", name, uid, {OWNER: "b"}, version)
            with refusal(409):
                await api.bind_pod("default", name, uid, "node-000001", resource_version=version)
            with refusal(409):
                await api.bind_pod("default", name, "another", "node-000001")
            await api.bind_pod("default", name, uid, "node-000001", resource_version=written)
            with refusal(409):
                await api.bind_pod("default", name, uid, "node-000000")
            stored = await api.get_pod("default", name)
            assert stored is not None
            assert stored.spec.node_name == "node-000001"
            assert stored.metadata.annotations == {OWNER: "b"}
        assert server.problems == []

    asyncio.run(main())


def test_a_node_that_has_too_much_is_a_problem() -> None:
    server = StandIn(1, 399, 1)
    server.create(3, -1, 10, "")
    for name, pod in list(server.pods.items()):
        binding = {"metadata": {"uid": pod["metadata"]["uid"]}, "target": {"name": "node-000000"}}
        server.bind(name, binding)
        assert bool(server.problems) == (name != "waits-0000000")


def test_a_lease_is_written_by_its_version() -> None:
    async def main() -> None:
        async with served(StandIn(1, 0, 1)) as transport:
            leases = Leases(transport, "default", "berth")
            assert await leases.get(timeout_s=1) is None
            first = await leases.create(LeaseRecord("one"), timeout_s=1)
            with refusal(409):
                await leases.create(LeaseRecord("two"), timeout_s=1)
            await leases.update(first, LeaseRecord("one", transitions=1), timeout_s=1)
            with refusal(409):
                await leases.update(first, LeaseRecord("two"), timeout_s=1)

    asyncio.run(main())


def test_quantiles_of_a_histogram() -> None:
    name = "scheduler_scheduling_algorithm_duration_seconds_bucket"

    def text(*counts: int) -> str:
        bounds = ("0.001", "0.002", "+Inf")
        return "".join(f'{name}{{le="{b}"}} {c}\n' for b, c in zip(bounds, counts, strict=True))

    assert quantile(text(10, 10, 10), text(20, 30, 30), 0.5) == pytest.approx(1.0)
    assert quantile(text(10, 10, 10), text(20, 30, 30), 0.75) == pytest.approx(1.5)
    assert quantile(text(0, 0, 0), text(1, 1, 2), 0.99) == pytest.approx(2.0)
    assert quantile("", "", 0.5) == 0
