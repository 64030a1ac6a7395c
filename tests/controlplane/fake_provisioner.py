"""A CSI driver's provisioner without a driver: volumes are objects of the API and nothing else.

It does what the external-provisioner does of a claim that waits for its pod: it makes a volume that
only the selected node reaches, or, where the node has no room, takes the selected node off the
claim again and publishes that there is no room.
"""

from __future__ import annotations

import asyncio
import contextlib
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, Final, Self

from tests.controlplane.api import ApiError, collection_path
from tests.controlplane.objects import HOSTNAME_LABEL

if TYPE_CHECKING:
    from collections.abc import Iterable
    from concurrent.futures import Future
    from types import TracebackType

    from tests.controlplane.api import ApiClient
    from tests.controlplane.blocking_api import BlockingApi

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
PROVISIONER: Final = "volume.kubernetes.io/storage-provisioner"
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"

_CLAIMS: Final = "/api/v1/persistentvolumeclaims"


class FakeProvisioner:
    """Provisions from ``with`` to its end.

    Parameters
    ----------
    api
        What it acts through; it works on the loop of this client.
    driver
        The provisioner that classes name.
    without_room
        Nodes on which no volume can be made.
    """

    def __init__(self, api: BlockingApi, driver: str, without_room: Iterable[str] = ()) -> None:
        self.driver = driver
        self.refused: list[tuple[str, str]] = []
        """Claim and node of every refusal, in order."""
        self._api = api
        self._without_room = frozenset(without_room)
        self._seen: dict[str, str] = {}
        self._work: Future[None] | None = None

    def __enter__(self) -> Self:
        self._work = self._api.start(self._run(self._api.client))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._work is not None
        self._work.cancel()
        with contextlib.suppress(CancelledError):
            self._work.result()

    async def _run(self, api: ApiClient) -> None:
        claims, version = await api.list_with_version(_CLAIMS)
        async with asyncio.TaskGroup() as group:
            for claim in claims:
                self._look(api, group, claim)
            while True:
                watch = api.watch(_CLAIMS, resource_version=version)
                async with contextlib.aclosing(watch) as events:
                    async for event in events:
                        version = event["object"]["metadata"]["resourceVersion"]
                        if event["type"] != "DELETED":
                            self._look(api, group, event["object"])

    def _look(self, api: ApiClient, group: asyncio.TaskGroup, claim: dict[str, Any]) -> None:
        """Take up a claim that has got a node, once for each time that it gets one."""
        metadata = claim["metadata"]
        annotations = metadata.get("annotations", {})
        node = annotations.get(SELECTED_NODE)
        if node is None:
            self._seen.pop(metadata["uid"], None)
        elif (
            annotations.get(PROVISIONER) == self.driver
            and not claim["spec"].get("volumeName")
            and self._seen.get(metadata["uid"]) != node
        ):
            self._seen[metadata["uid"]] = node
            group.create_task(self._provision(api, claim, node))

    async def _provision(self, api: ApiClient, claim: dict[str, Any], node: str) -> None:
        if node not in self._without_room:
            manifest = self._volume(claim, node)
            with contextlib.suppress(ApiError):  # there is one already
                await api.post(collection_path(manifest), manifest)
            return
        metadata = claim["metadata"]
        self.refused.append((metadata["name"], node))
        for capacity in await api.list_all("/apis/storage.k8s.io/v1/csistoragecapacities"):
            if capacity["nodeTopology"]["matchLabels"] == {HOSTNAME_LABEL: node}:
                await api.patch(_path("CSIStorageCapacity", capacity), {"capacity": "0"})
        without_node = {"metadata": {"annotations": {SELECTED_NODE: None}}}
        await api.patch(_path("PersistentVolumeClaim", claim), without_node)

    def _volume(self, claim: dict[str, Any], node: str) -> dict[str, Any]:
        metadata, spec = claim["metadata"], claim["spec"]
        name = f"pvc-{metadata['uid']}"
        return {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name, "annotations": {PROVISIONED_BY: self.driver}},
            "spec": {
                "capacity": spec["resources"]["requests"],
                "accessModes": spec["accessModes"],
                "storageClassName": spec["storageClassName"],
                "persistentVolumeReclaimPolicy": "Delete",
                "volumeMode": "Filesystem",
                "csi": {"driver": self.driver, "volumeHandle": name},
                "claimRef": {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "namespace": metadata["namespace"],
                    "name": metadata["name"],
                    "uid": metadata["uid"],
                    "resourceVersion": metadata["resourceVersion"],
                },
                "nodeAffinity": on_node(node),
            },
        }


def _path(kind: str, manifest: dict[str, Any]) -> str:
    return f"{collection_path(manifest | {'kind': kind})}/{manifest['metadata']['name']}"


def on_node(name: str) -> dict[str, Any]:
    """Return the node affinity of a volume that one node reaches."""
    term = {"matchExpressions": [{"key": HOSTNAME_LABEL, "operator": "In", "values": [name]}]}
    return {"required": {"nodeSelectorTerms": [term]}}
