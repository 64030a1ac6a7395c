"""etcd is restored from a backup: stores, assume caches and the cache go back together."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from cache.comparer import compare
from cache.known import Known
from scheduler.client.credential_search import load_credentials
from scheduler.client.credentials import Credentials
from scheduler.client.transport import Transport
from scheduler.event_handlers.other_objects import OtherObjects
from scheduler.informers.informer_factory import InformerFactory
from scheduler.informers.reflector_options import ReflectorOptions
from scheduler.kinds import NODES, PERSISTENT_VOLUMES, PODS
from tests.controlplane.api import ApiClient
from tests.controlplane.objects import make_node, make_pod
from tests.fakes.api_server import FakeApiServer
from tests.scheduler.informers.harness import Naps, pod, rig, run, until
from tests.scheduler.parts import Parts

if TYPE_CHECKING:
    from cache.storage import Storage
    from tests.controlplane.control_plane import ControlPlane


def node(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}, "spec": {}, "status": {}}


def test_what_one_resource_shows_holds_for_the_others() -> None:
    async def main() -> None:
        async with FakeApiServer() as server:
            transport = Transport(Credentials(server.url), user_agent="test")
            factory = InformerFactory(transport, ReflectorOptions(sleep=Naps(), read_timeout_s=0.1))
            pods, nodes = factory.informer(PODS), factory.informer(NODES)
            server.create("nodes", node("n1"))
            server.create("pods", pod("a"))
            factory.start()
            try:
                await factory.wait_synced()
                before = server.version
                server.patch("nodes", "n1", {"metadata": {"labels": {"disk": "old"}}})
                for number in range(5):
                    server.create("pods", pod(f"never-was-{number}"))
                await until(lambda: pods.resource_version == str(server.version))
                await until(lambda: nodes.resource_version == str(before + 1))
                # The version that the watch of nodes has seen comes again, with another content:
                # by itself it goes on from there and never learns of the difference.
                server.rewind(before)
                server.patch("nodes", "n1", {"metadata": {"labels": {"disk": "new"}}})
                await until(lambda: pods.statistics().rewinds == 1)
                await until(lambda: nodes.statistics().rewinds == 1)
                assert [each.metadata.name for each in pods.list()] == ["a"]
                assert [each.metadata.labels for each in nodes.list()] == [{"disk": "new"}]
                server.create("nodes", node("n2"))
                await until(lambda: len(nodes.list()) == 2)
                assert pods.statistics().rewinds == 1
                assert nodes.statistics().rewinds == 1
            finally:
                await factory.stop()
                await transport.close()

    run(main)


def test_a_list_with_objects_from_before_theirs_is_a_restore() -> None:
    async def main() -> None:
        async with rig(prepare=lambda server: server.create("pods", pod("a"))) as it:
            before = it.server.version
            it.server.patch("pods", "a", {"metadata": {"labels": {"a": "b"}}}, namespace="default")
            await it.caught_up()
            it.server.faults.error_event("pods", 410)
            it.server.rewind(before)
            for number in range(3):
                it.server.create("pods", pod(f"new-{number}"))
            await until(lambda: it.counts.rewinds == 1)
            assert it.counts.rejected_lists == 0
            assert [dict(each.metadata.labels) for each in it.informer.list()] == [{}] * 4

    run(main)


AHEAD = 150
"""Changes that the old history is ahead by: more than an API server makes at its start."""


async def _at_once(delay_s: float) -> None:
    await asyncio.sleep(min(delay_s, 0.02))


def volume(name: str, size: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": "disks.example.com", "volumeHandle": name},
        },
    }


@pytest.mark.controlplane
def test_a_restored_etcd_is_believed_by_everybody(fresh_control_plane: ControlPlane) -> None:
    plane = fresh_control_plane

    async def main() -> None:
        credentials = await load_credentials(str(plane.berth_kubeconfig()))
        transport = Transport(credentials, user_agent="berth-test")
        factory = InformerFactory(transport, ReflectorOptions(sleep=_at_once, read_timeout_s=1.0))
        parts, known = Parts(), Known.nothing()
        storage, others = known.storage, OtherObjects(known, parts.queue, parts.metrics)
        pods, nodes = factory.informer(PODS), factory.informer(NODES)
        volumes = factory.informer(PERSISTENT_VOLUMES)
        nodes.add_handler(parts.handlers.on_nodes)
        pods.add_handler(parts.handlers.on_pods)
        volumes.add_delta_handler(others.handler(PERSISTENT_VOLUMES))
        every = (pods, nodes, volumes)
        try:
            async with ApiClient(plane.admin_kubeconfig) as admin:
                await admin.create_many([make_node("stays"), make_node("goes")])
                await admin.create_many([make_pod("kept", cpu="1", nodeName="stays")])
                await admin.post("/api/v1/persistentvolumes", volume("disk", "5Gi"))
                factory.start()
                await factory.wait_synced()
                await asyncio.to_thread(plane.save_etcd)
                for number in range(AHEAD):
                    label = {"metadata": {"labels": {"number": str(number)}}}
                    await admin.patch("/api/v1/nodes/stays", label)
                await admin.patch(
                    "/api/v1/persistentvolumes/disk", {"spec": {"capacity": {"storage": "9Gi"}}}
                )
                await admin.delete("/api/v1/nodes/goes")
                await admin.delete("/api/v1/namespaces/default/pods/kept")
                await admin.create_many([make_pod("never", cpu="2", nodeName="stays")])
                await until(lambda: parts.milli_cpu_on("stays") == 2000)
                await until(lambda: "9Gi" in str(storage.volume("disk")))
                storage.volumes.assume(_claimed(storage))
            await asyncio.to_thread(plane.restore_etcd)
            await until(lambda: all(each.statistics().rewinds == 1 for each in every))
            assert [each.metadata.name for each in pods.list()] == ["kept"]
            assert sorted(parts.cache.node_names()) == ["goes", "stays"]
            assert parts.milli_cpu_on("stays") == 1000
            assert compare(parts.cache.dump(), nodes.list(), pods.list()) == []
            assert storage.volume("disk") == volumes.get("", "disk")
            assert "5Gi" in str(storage.volume("disk"))
            assert not storage.volumes._assumed
            storage.volumes.assume(_claimed(storage))
        finally:
            await factory.stop()
            await transport.close()

    run(main)


def _claimed(storage: Storage) -> Any:
    known = storage.volume("disk")
    assert known is not None
    return replace(known, spec=replace(known.spec, storage_class_name="assumed"))
