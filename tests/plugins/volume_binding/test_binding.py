"""From a reserved node to bound volumes, against an API that only answers and a late watch."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from cache.columns import NodesView
from cache.storage import Storage
from plugins.framework.cycle_state import CycleState
from plugins.framework.status import Code
from plugins.volume_binding import VolumeBinding, VolumeBindingArgs
from scheduler.api_writes.volume_writer import StorageWriter
from scheduler.client.errors import ApiError
from scheduler.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES
from tests.builders import node, pod
from tests.fakes.object_api import FakeObjectApi
from tests.fakes.ports import FakeExecutor, fake_ports
from tests.plugins.conformance import RecordingHandle

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from cache.objects import Node, Pod

WEB = pod("web").claim("data")
HERE = node("node-a").label("zone", "a")
SELECTED = "volume.kubernetes.io/selected-node"
BOUND = "pv.kubernetes.io/bind-completed"

CLAIM: dict[str, Any] = {
    "metadata": {"annotations": {"kept": "as it is"}},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "late",
        "resources": {"requests": {"storage": "1Gi"}},
        "unknownField": 1,
    },
    "status": {"phase": "Pending"},
}
VOLUME: dict[str, Any] = {
    "spec": {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "late",
        "hostPath": {"path": "/data"},
    },
    "status": {"phase": "Available"},
}


class LiveHandle(RecordingHandle):
    """What is lent to the plugin, with a pod and a node that may go."""

    def __init__(self, storage: Storage, writer: StorageWriter) -> None:
        super().__init__(storage=storage)
        self.storage_writer = writer
        self.pod: Pod | None = WEB.build()
        self.node: Node | None = HERE.build()

    def live_pod(self, namespace: str, name: str) -> Pod | None:
        return self.pod

    def live_node(self, name: str) -> Node | None:
        return self.node


async def no_wait(seconds: float) -> None:
    await asyncio.sleep(0)


class Stage:
    """One pod that wants one claim on one node, and the API behind it."""

    def __init__(self, *, static: bool, timeout_s: int = 600) -> None:
        self.api, self.storage, self.state = FakeObjectApi(), Storage(), CycleState()
        self.api.watch(PERSISTENT_VOLUMES, self.storage.volumes.changed)
        self.api.watch(PERSISTENT_VOLUME_CLAIMS, self.storage.claims.changed)
        self.api.watch(STORAGE_CLASSES, self.storage.classes.changed)
        mode = {"volumeBindingMode": "WaitForFirstConsumer", "provisioner": "csi.example.com"}
        self.api.put(STORAGE_CLASSES, "", "late", mode)
        self.api.put(PERSISTENT_VOLUME_CLAIMS, "default", "data", CLAIM)
        if static:
            self.api.put(PERSISTENT_VOLUMES, "", "pv", VOLUME)
        writer = StorageWriter(fake_ports(self.api, executor=FakeExecutor(no_wait)))
        self.handle = LiveHandle(self.storage, writer)
        self.plugin = VolumeBinding(VolumeBindingArgs(bind_timeout_seconds=timeout_s), self.handle)
        view = NodesView.of([HERE.info()])
        assert self.plugin.pre_filter(self.state, WEB.info(), view).status.is_success
        assert self.plugin.filter(self.state, WEB.info(), view).passed is None
        assert self.plugin.reserve(self.state, WEB.info(), "node-a").is_success

    def bind(self, world: Coroutine[Any, Any, None] | None = None) -> str:
        """Run PreBind while ``world`` goes on; return what it raised, or nothing."""
        return asyncio.run(self._bind(world))

    async def _bind(self, world: Coroutine[Any, Any, None] | None) -> str:
        meanwhile = None if world is None else asyncio.create_task(world)
        try:
            status = await self.plugin.pre_bind(self.state, WEB.info(), "node-a")
        except Exception as error:  # noqa: BLE001 - the text is what is promised
            return str(error)
        finally:
            if meanwhile is not None:
                await meanwhile
        assert status.is_success
        return ""

    def claim_is_bound(self, volume_name: str) -> None:
        """Do what the PV controller does last."""
        self.change_claim(
            {
                "metadata": {"annotations": {BOUND: "yes"}},
                "spec": {"volumeName": volume_name},
                "status": {"phase": "Bound"},
            }
        )

    def change_claim(self, patch: Any) -> None:
        self.api.change(PERSISTENT_VOLUME_CLAIMS, "default", "data", patch)

    def change_volume(self, patch: Any) -> None:
        self.api.change(PERSISTENT_VOLUMES, "", "pv", patch)


def test_a_static_volume_is_written_and_waited_for() -> None:
    stage = Stage(static=True)

    async def world() -> None:
        await stage.api.patched.wait()
        stage.claim_is_bound("pv")

    assert stage.bind(world()) == ""
    written = stage.api.raw(PERSISTENT_VOLUMES, "", "pv")
    assert written["spec"]["claimRef"]["uid"] == "uid-data"
    assert written["spec"]["hostPath"] == {"path": "/data"}
    assert written["metadata"]["annotations"] == {"pv.kubernetes.io/bound-by-controller": "yes"}
    assert not stage.storage.volumes._assumed


def test_a_volume_is_made_for_the_node_and_waited_for() -> None:
    stage = Stage(static=False)

    async def world() -> None:
        await stage.api.patched.wait()
        stage.api.put(PERSISTENT_VOLUMES, "", "pv", VOLUME)
        stage.claim_is_bound("pv")

    assert stage.bind(world()) == ""
    written = stage.api.raw(PERSISTENT_VOLUME_CLAIMS, "default", "data")
    assert written["metadata"]["annotations"][SELECTED] == "node-a"
    assert written["metadata"]["annotations"]["kept"] == "as it is"
    assert written["spec"]["unknownField"] == 1
    assert not stage.storage.claims._assumed


def test_a_claim_whose_volume_the_watch_has_not_brought_yet_is_waited_for() -> None:
    stage = Stage(static=False)

    async def world() -> None:
        await stage.api.patched.wait()
        stage.claim_is_bound("pv")
        for _ in range(5):
            await asyncio.sleep(0)
        stage.api.put(PERSISTENT_VOLUMES, "", "pv", VOLUME)

    assert stage.bind(world()) == ""


def test_a_watch_that_is_behind_our_write_is_waited_for() -> None:
    stage = Stage(static=False)
    stage.api.hold_watches()

    async def world() -> None:
        await stage.api.patched.wait()
        for _ in range(5):
            await asyncio.sleep(0)
        stage.api.put(PERSISTENT_VOLUMES, "", "pv", VOLUME)
        stage.claim_is_bound("pv")
        stage.api.release_watches()

    assert stage.bind(world()) == ""


def test_a_provisioner_that_gives_up_sends_the_pod_back() -> None:
    stage = Stage(static=False)

    async def world() -> None:
        await stage.api.patched.wait()
        stage.change_claim({"metadata": {"annotations": {SELECTED: None}}})

    why = 'binding volumes: provisioning failed for PVC "data"'
    assert stage.bind(world()) == why


def test_a_claim_that_is_deleted_sends_the_pod_back() -> None:
    stage = Stage(static=False)

    async def world() -> None:
        await stage.api.patched.wait()
        stage.api.delete(PERSISTENT_VOLUME_CLAIMS, "default", "data")

    why = (
        "binding volumes: failed to check provisioning pvc: "
        'persistentvolumeclaims "default/data" not found'
    )
    assert stage.bind(world()) == why


@pytest.mark.parametrize(
    ("static", "doing"),
    [
        pytest.param(True, "failed to check binding", id="a volume was claimed for it"),
        pytest.param(False, "failed to check provisioning pvc", id="it was to be provisioned"),
    ],
)
def test_a_claim_that_is_made_again_sends_the_pod_back(*, static: bool, doing: str) -> None:
    stage = Stage(static=static)

    async def world() -> None:
        await stage.api.patched.wait()
        stage.api.delete(PERSISTENT_VOLUME_CLAIMS, "default", "data")
        again = CLAIM | {"metadata": {"uid": "another"}}
        stage.api.put(PERSISTENT_VOLUME_CLAIMS, "default", "data", again)

    why = f'binding volumes: {doing}: persistentvolumeclaims "default/data" not found'
    assert stage.bind(world()) == why


def test_a_volume_that_is_deleted_sends_the_pod_back() -> None:
    stage = Stage(static=True)

    async def world() -> None:
        await stage.api.patched.wait()
        stage.api.delete(PERSISTENT_VOLUMES, "", "pv")

    why = 'binding volumes: failed to check binding: persistentvolumes "pv" not found'
    assert stage.bind(world()) == why


def test_a_volume_that_is_given_free_again_sends_the_pod_back() -> None:
    stage = Stage(static=True)

    async def world() -> None:
        await stage.api.patched.wait()
        stage.change_volume({"spec": {"claimRef": None}})

    assert stage.bind(world()) == 'binding volumes: ClaimRef got reset for pv "pv"'


def test_a_volume_that_was_made_elsewhere_sends_the_pod_back() -> None:
    stage = Stage(static=False)
    wanted = {"key": "zone", "operator": "In", "values": ["b"]}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}}

    async def world() -> None:
        await stage.api.patched.wait()
        made = {**VOLUME, "spec": {**VOLUME["spec"], "nodeAffinity": affinity}}
        stage.api.put(PERSISTENT_VOLUMES, "", "pv", made)
        stage.change_claim({"spec": {"volumeName": "pv"}})

    why = (
        'binding volumes: pv "pv" node affinity doesn\'t match node "node-a": '
        "no matching NodeSelectorTerms"
    )
    assert stage.bind(world()) == why


def test_a_pod_that_is_gone_is_not_waited_for() -> None:
    stage = Stage(static=False)
    stage.handle.pod = None
    why = 'binding volumes: pod does not exist any more: pod "web" not found'
    assert stage.bind() == why


def test_a_pod_made_again_under_its_name_is_another_one() -> None:
    stage = Stage(static=False)
    stage.handle.pod = WEB.uid("another").build()
    assert "pod does not exist any more" in stage.bind()


def test_a_node_that_is_gone_is_not_waited_for() -> None:
    stage = Stage(static=False)
    stage.handle.node = None
    why = 'binding volumes: failed to get node "node-a": node not found'
    assert stage.bind() == why


def test_who_waits_too_long_gives_up() -> None:
    stage = Stage(static=False, timeout_s=0)
    assert stage.bind() == "binding volumes: context deadline exceeded"


def test_a_write_that_fails_leaves_nothing_assumed() -> None:
    stage = Stage(static=True)
    stage.api.faults.append(ApiError(422, "Invalid", "no"))
    assert "422" in stage.bind()
    assert not stage.storage.volumes._assumed


def test_a_volume_that_somebody_else_took_meanwhile_sends_the_pod_back() -> None:
    stage = Stage(static=True)
    stage.api.hold_watches()
    stage.change_volume({"spec": {"claimRef": {"namespace": "x", "name": "y", "uid": "z"}}})
    assert "409" in stage.bind()
    assert not stage.storage.volumes._assumed


def test_unreserving_takes_back_what_was_assumed() -> None:
    stage = Stage(static=True)
    assert len(stage.storage.volumes._assumed) == 1
    stage.plugin.unreserve(stage.state, WEB.info(), "node-a")
    stage.plugin.unreserve(stage.state, WEB.info(), "node-a")
    assert not stage.storage.volumes._assumed


def test_a_pod_without_claims_to_bind_skips_the_pre_bind() -> None:
    stage = Stage(static=True)
    without = CycleState()
    assert stage.plugin.reserve(without, pod("plain").info(), "node-a").is_success
    flight = stage.plugin.pre_bind_pre_flight(without, pod("plain").info(), "node-a")
    assert flight.status.code is Code.SKIP


def test_a_pod_with_a_claim_to_bind_lets_others_bind_beside_it() -> None:
    stage = Stage(static=True)
    flight = stage.plugin.pre_bind_pre_flight(stage.state, WEB.info(), "node-a")
    assert (flight.status.is_success, flight.allow_parallel) == (True, True)


@pytest.mark.parametrize("static", [pytest.param(True, id="static"), pytest.param(False, id="new")])
def test_nobody_listens_once_the_wait_is_over(static: bool) -> None:
    stage = Stage(static=static, timeout_s=0)
    stage.bind()
    assert stage.storage.claims._listeners == {}
    assert stage.storage.volumes._listeners == {}
