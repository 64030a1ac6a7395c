"""Writes of volumes and claims on a real API server, with berth's own rights."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from plugins.volume_binding.binding import claim_for, volume_for
from scheduler.api_writes.volume_writer import StorageWriter
from scheduler.client.api import Api
from scheduler.client.credential_search import load_credentials
from scheduler.client.errors import ApiError
from scheduler.client.transport import Transport
from scheduler.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from tests.fakes.ports import fake_ports

pytestmark = pytest.mark.controlplane

CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"


@pytest.fixture
def name(control_plane):
    """Return the name of a volume and of a claim of the test's own."""
    name = f"storage-{uuid.uuid4().hex[:8]}"
    size = {"storage": "1Gi"}
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "late",
        "resources": {"requests": size},
    }
    volume = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "late",
        "capacity": size,
        "hostPath": {"path": "/data"},
    }
    metadata = {"name": name, "annotations": {"kept": "as it is"}}
    control_plane.call("POST", CLAIMS, {"metadata": metadata, "spec": claim})
    control_plane.call("POST", VOLUMES, {"metadata": metadata, "spec": volume})
    return name


def play(control_plane, scene):
    """Run a scene with an API of berth's; a minute is for ever."""

    async def main():
        credentials = await load_credentials(str(control_plane.berth_kubeconfig()))
        transport = Transport(credentials, user_agent="berth-test")
        try:
            async with asyncio.timeout(60):
                api = Api(transport)
                return await scene(api, StorageWriter(fake_ports(api)))
        finally:
            await transport.close()

    return asyncio.run(main())


def test_a_volume_is_kept_for_a_claim_and_keeps_what_it_had(control_plane, name):
    async def scene(api: Api, writer: StorageWriter):
        volume = await api.get_object(PERSISTENT_VOLUMES, "", name)
        claim = await api.get_object(PERSISTENT_VOLUME_CLAIMS, "default", name)
        kept, _ = volume_for(volume, claim)
        return await writer.claim_volume(kept), claim

    written, claim = play(control_plane, scene)
    stored = control_plane.call("GET", f"{VOLUMES}/{name}")
    assert stored["spec"]["claimRef"]["uid"] == claim.metadata.uid
    assert stored["spec"]["claimRef"]["apiVersion"] == "v1"
    assert stored["spec"]["hostPath"]["path"] == "/data"
    assert stored["metadata"]["annotations"] == {
        "kept": "as it is",
        "pv.kubernetes.io/bound-by-controller": "yes",
    }
    assert stored["metadata"]["resourceVersion"] == written.metadata.resource_version


def test_a_claim_is_told_its_node(control_plane, name):
    async def scene(api: Api, writer: StorageWriter):
        claim = await api.get_object(PERSISTENT_VOLUME_CLAIMS, "default", name)
        await writer.annotate_claim(claim_for(claim, "node-a"))

    play(control_plane, scene)
    stored = control_plane.call("GET", f"{CLAIMS}/{name}")
    assert stored["metadata"]["annotations"] == {
        "kept": "as it is",
        "volume.kubernetes.io/selected-node": "node-a",
    }


def test_a_change_that_came_between_is_not_written_over(control_plane, name):
    async def scene(api: Api, writer: StorageWriter):
        claim = await api.get_object(PERSISTENT_VOLUME_CLAIMS, "default", name)
        await writer.annotate_claim(claim_for(claim, "node-a"))
        await writer.annotate_claim(claim_for(claim, "node-b"))

    with pytest.raises(ApiError) as raised:
        play(control_plane, scene)
    assert raised.value.status == 409
    stored = control_plane.call("GET", f"{CLAIMS}/{name}")
    assert stored["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == "node-a"
