"""Informers against a real API server, as berth's own service account."""

from __future__ import annotations

import asyncio
import random
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
import yaml

from scheduler.client.credential_search import load_credentials
from scheduler.client.transport import Transport
from scheduler.informers.informer_factory import InformerFactory
from scheduler.informers.reflector_options import ReflectorOptions
from scheduler.kinds import NODES, PODS
from tests.controlplane.api import ApiClient
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.objects import make_namespace, make_node, make_pod
from tests.scheduler.informers.harness import Mirror, run, until, versions
from tests.scheduler.informers.tcp_proxy import TcpProxy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

pytestmark = pytest.mark.controlplane


class Live:
    """A pod informer with a mirror, and an admin who makes things happen."""

    def __init__(self, factory: InformerFactory, admin: ApiClient, namespace: str) -> None:
        self.factory = factory
        self.admin = admin
        self.namespace = namespace
        self.pods = factory.informer(PODS)
        self.mirror = Mirror()
        self.pods.add_handler(self.mirror)

    async def create(self, *names: str) -> None:
        await self.admin.create_many(make_pod(name, namespace=self.namespace) for name in names)

    async def delete(self, name: str) -> None:
        await self.admin.delete(f"/api/v1/namespaces/{self.namespace}/pods/{name}")

    async def catches_up(self) -> None:
        """Return when the informer has what the API server has."""

        async def equal() -> bool:
            truth = {
                pod["metadata"]["uid"]: pod["metadata"]["resourceVersion"]
                for pod in await self.admin.pods()
            }
            assert versions(list(self.mirror.objects.values())) == versions(list(self.pods.list()))
            return truth == versions(list(self.pods.list()))

        for _ in range(2400):
            if await equal():
                return
            await asyncio.sleep(0.05)
        raise AssertionError("the informer does not get to the truth")

    def told_here(self) -> list[tuple[str, str]]:
        """Return kind and name of each delta about this test's pods; forget all deltas."""
        deltas, self.mirror.deltas = self.mirror.deltas, []
        objects = [delta.new if delta.new is not None else delta.old for delta in deltas]
        return [
            (delta.kind.value, obj.metadata.name)
            for delta, obj in zip(deltas, objects, strict=True)
            if obj is not None and obj.metadata.namespace == self.namespace
        ]


@asynccontextmanager
async def live(
    control_plane: ControlPlane, kubeconfig: Path, namespace: str, **options: float
) -> AsyncIterator[Live]:
    credentials = await load_credentials(str(kubeconfig))
    transport = Transport(credentials, user_agent="berth-test")
    factory = InformerFactory(
        transport,
        ReflectorOptions(rng=random.Random(7), **options),  # type: ignore[arg-type]
    )
    async with ApiClient(control_plane.admin_kubeconfig) as admin:
        await admin.post("/api/v1/namespaces", make_namespace(namespace))
        made = Live(factory, admin, namespace)
        try:
            yield made
        finally:
            await factory.stop()
            await transport.close()
            for pod in await admin.pods(namespace):
                await made.delete(pod["metadata"]["name"])


def test_a_list_and_a_watch(control_plane: ControlPlane) -> None:
    async def main() -> None:
        kubeconfig = control_plane.berth_kubeconfig()
        async with live(control_plane, kubeconfig, "informers-watch") as it:
            nodes = it.factory.informer(NODES)
            await it.admin.create_many([make_node("live-n1")])
            await it.create("live-a", "live-b")
            it.factory.start()
            await it.factory.wait_synced()
            assert sorted(it.told_here()) == [("added", "live-a"), ("added", "live-b")]
            assert nodes.get("", "live-n1") is not None
            await it.delete("live-a")
            await it.create("live-a")
            await it.catches_up()
            assert ("deleted", "live-a") in it.told_here()
            counts = it.pods.statistics()
            assert (counts.lists, counts.paged_lists, counts.unreadable) == (1, 0, 0)
            await it.admin.delete("/api/v1/nodes/live-n1")

    run(main)


def test_f1_a_connection_that_breaks_is_resumed_without_a_list(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    async def main() -> None:
        async with TcpProxy(int(control_plane.url.rpartition(":")[2])) as proxy:
            kubeconfig = through(proxy, control_plane, tmp_path)
            async with live(control_plane, kubeconfig, "informers-cut") as it:
                it.factory.start()
                await it.factory.wait_synced()
                for number in range(5):
                    await it.create(f"live-{number}")
                    proxy.cut()
                await it.catches_up()
                assert it.told_here() == [("added", f"live-{number}") for number in range(5)]
                assert it.pods.statistics().lists == 1

    run(main)


def test_f2_a_connection_that_falls_silent_is_given_up(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    async def main() -> None:
        async with TcpProxy(int(control_plane.url.rpartition(":")[2])) as proxy:
            kubeconfig = through(proxy, control_plane, tmp_path)
            async with live(
                control_plane, kubeconfig, "informers-silent", read_timeout_s=1.0
            ) as it:
                it.factory.start()
                await it.factory.wait_synced()
                proxy.freeze()
                await it.create("live-a")
                before = it.pods.statistics().failures
                await until(lambda: it.pods.statistics().failures > before)
                proxy.thaw()
                proxy.cut()
                await it.catches_up()
                assert it.told_here() == [("added", "live-a")]

    run(main)


def test_f3_a_forced_410_ends_in_a_list_that_tells_what_was_missed(
    fresh_control_plane: ControlPlane,
) -> None:
    async def main() -> None:
        kubeconfig = fresh_control_plane.berth_kubeconfig()
        async with live(fresh_control_plane, kubeconfig, "informers-gone") as it:
            await it.create("live-a", "live-b", "live-c")
            it.factory.start()
            await it.factory.wait_synced()
            await it.catches_up()
            it.told_here()
            await it.factory.stop()
            await it.delete("live-a")
            await it.delete("live-b")
            await it.create("live-b", "live-d")
            await asyncio.to_thread(fresh_control_plane.force_gone)
            it.factory.start()
            await until(lambda: it.pods.statistics().lists == 2)
            assert sorted(it.told_here()) == [
                ("added", "live-b"),
                ("added", "live-d"),
                ("deleted", "live-a"),
                ("deleted", "live-b"),
            ]
            assert it.pods.statistics().expired >= 1
            await it.create("live-e")
            await it.catches_up()

    run(main)


def test_f5_a_server_that_is_killed_and_comes_back(fresh_control_plane: ControlPlane) -> None:
    async def main() -> None:
        kubeconfig = fresh_control_plane.berth_kubeconfig()
        async with live(fresh_control_plane, kubeconfig, "informers-killed") as it:
            await it.create("live-a", "live-b")
            it.factory.start()
            await it.factory.wait_synced()
            await asyncio.to_thread(fresh_control_plane.kill_apiserver)
            await until(lambda: it.pods.statistics().failures >= 2)
            assert len(it.pods.list(it.namespace)) == 2
            await asyncio.to_thread(fresh_control_plane.start_apiserver)
            await it.delete("live-a")
            await it.catches_up()
            assert ("deleted", "live-a") in it.told_here()

    run(main)


@pytest.fixture
def old_control_plane(controlplane_binaries: None) -> Iterator[ControlPlane]:
    """An API server that knows no streaming lists."""
    with ControlPlane(extra_apiserver_args=["--feature-gates=WatchList=false"]) as started:
        yield started


def test_a_server_without_streaming_lists_is_listed_in_pages(
    old_control_plane: ControlPlane,
) -> None:
    async def main() -> None:
        kubeconfig = old_control_plane.berth_kubeconfig()
        async with live(old_control_plane, kubeconfig, "informers-old", page_size=3) as it:
            await it.create(*(f"live-{number}" for number in range(8)))
            it.factory.start()
            await it.factory.wait_synced()
            await it.create("live-late")
            await it.catches_up()
            counts = it.pods.statistics()
            assert (counts.lists, counts.paged_lists) == (1, 1)

    run(main)


def through(proxy: TcpProxy, control_plane: ControlPlane, folder: Path) -> Path:
    """Return berth's kubeconfig with the proxy's address."""
    config = yaml.safe_load(control_plane.berth_kubeconfig().read_text())
    config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{proxy.port}"
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path
