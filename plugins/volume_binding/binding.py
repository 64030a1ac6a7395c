"""Binds the volumes of a decided pod: assumes, writes, waits, or reverts.

Differs: kube-scheduler checks once a second, and first after a second; it looks up the pod by
name. Here the watch wakes the binding that waits for a claim or a volume, the first check comes at
once, and a pod that was created again with the same name is another pod. Only the pod and the
node, whose changes do not wake the binding, are checked once a second.

*Source*: pkg/scheduler/framework/plugins/volumebinding/binder.go, AssumePodVolumes, BindPodVolumes
and checkBindings (1.36); k8s.io/component-helpers storage/volume/pv_helpers.go,
GetBindVolumeToClaim (0.36).
"""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import TYPE_CHECKING, Final

import msgspec

from cache.resource_versions import parse_resource_version
from cache.storage import namespaced_name
from cache.storage_objects import ObjectReference
from plugins.volume_binding import reachability
from plugins.volume_binding.pod_binding_cache import SELECTED_NODE
from plugins.volume_binding.pod_claims import is_fully_bound

if TYPE_CHECKING:
    from cache.objects import Node
    from cache.pod_info import PodInfo
    from cache.storage import ClaimKey, Storage
    from cache.storage_objects import PersistentVolume, PersistentVolumeClaim
    from plugins.framework.handle import Handle
    from plugins.volume_binding.pod_binding_cache import VolumeDecision

BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
"""The annotation of a volume whose claim was chosen by a controller or scheduler."""

LOOK_AGAIN_S: Final = 1.0
"""The interval between two checks of a waiting pod and its node."""


class VolumeBindingError(Exception):
    """The volumes of a pod cannot be bound on the node that was chosen; the message says why."""


def volume_for(
    volume: PersistentVolume, claim: PersistentVolumeClaim
) -> tuple[PersistentVolume, bool]:
    """Return a volume with its reference to a claim, and whether the volume had to change."""
    reference = volume.spec.claim_ref
    of_claim = claim.metadata
    same_name = reference is not None and (
        (reference.namespace, reference.name) == (of_claim.namespace, of_claim.name)
    )
    same_uid = reference is not None and reference.uid == of_claim.uid
    was_kept = same_name and (same_uid or (reference is not None and not reference.uid))
    spec, metadata = volume.spec, volume.metadata
    if not (same_name and same_uid):
        spec = msgspec.structs.replace(
            spec,
            claim_ref=ObjectReference(
                kind="PersistentVolumeClaim",
                namespace=of_claim.namespace,
                name=of_claim.name,
                uid=of_claim.uid,
                api_version="v1",
                resource_version=of_claim.resource_version,
            ),
        )
    if not was_kept and BOUND_BY_CONTROLLER not in metadata.annotations:
        annotations = {**metadata.annotations, BOUND_BY_CONTROLLER: "yes"}
        metadata = msgspec.structs.replace(metadata, annotations=annotations)
    if spec is volume.spec and metadata is volume.metadata:
        return volume, False
    return msgspec.structs.replace(volume, spec=spec, metadata=metadata), True


def claim_for(claim: PersistentVolumeClaim, node_name: str) -> PersistentVolumeClaim:
    """Return a claim with the request to provision a volume on a node."""
    annotations = {**claim.metadata.annotations, SELECTED_NODE: node_name}
    metadata = msgspec.structs.replace(claim.metadata, annotations=annotations)
    return msgspec.structs.replace(claim, metadata=metadata)


class PodVolumes:
    """The assumed volumes and claims of one pod, and their binding.

    Notes
    -----
    *Concurrency*: as the cycle state that contains it; the assume caches are thread-safe.
    """

    def __init__(self, storage: Storage, node_name: str) -> None:
        self._storage = storage
        self._node_name = node_name
        self._bindings: list[tuple[PersistentVolume, PersistentVolumeClaim]] = []
        self._provisions: list[PersistentVolumeClaim] = []

    # --- assuming -----------------------------------------------------------------------------

    def assume(self, decision: VolumeDecision) -> None:
        """Put the expected volumes and claims into the assume caches.

        Raises
        ------
        AssumeError
            When one of them has changed since the decision; then none of them is assumed.
        """
        storage = self._storage
        try:
            for volume, claim in decision.bindings:
                kept, differs = volume_for(volume, claim)
                if differs:
                    storage.volumes.assume(kept)
                self._bindings.append((kept, claim))
            for claim in decision.provisions:
                selected = claim_for(claim, self._node_name)
                storage.claims.assume(selected)
                self._provisions.append(selected)
        except Exception:
            self.revert()
            self._bindings.clear()
            self._provisions.clear()
            raise

    def revert(self) -> None:
        """Revert all remaining assumptions; a second call has no effect."""
        for volume, _ in self._bindings:
            self._storage.volumes.restore(volume)
        for claim in self._provisions:
            self._storage.claims.restore(claim)

    # --- binding ------------------------------------------------------------------------------

    async def bind(self, handle: Handle, info: PodInfo, timeout_s: float) -> None:
        """Write the assumed changes, and return once every claim is bound.

        Raises
        ------
        VolumeBindingError
            When the volumes can no longer be bound to this node, or not in time.
        Exception
            Any error that the client raises when a write fails.
        """
        await self._write(handle)
        with closing(_Wakeup(self._storage)) as wakeup:
            for volume, claim in self._bindings:
                wakeup.on_volume(volume.metadata.name)
                wakeup.on_claim(namespaced_name(claim))
            for claim in self._provisions:
                wakeup.on_claim(namespaced_name(claim))
            loop = asyncio.get_running_loop()
            deadline = loop.time() + timeout_s
            while True:
                wakeup.clear()
                if self._is_bound(handle, info, wakeup):
                    return
                left = deadline - loop.time()
                if left <= 0:
                    raise VolumeBindingError("binding volumes: context deadline exceeded")
                await wakeup.wait(min(left, LOOK_AGAIN_S))

    async def _write(self, handle: Handle) -> None:
        """Write volumes, then claims; a failed write ends its assumption.

        Completed writes are kept, whatever happens later: the next attempt uses them.
        """
        writer = handle.storage_writer
        written_volumes = written_claims = 0
        try:
            for index, (volume, claim) in enumerate(self._bindings):
                self._bindings[index] = (await writer.claim_volume(volume), claim)
                written_volumes += 1
            for index, claim in enumerate(self._provisions):
                self._provisions[index] = await writer.annotate_claim(claim)
                written_claims += 1
        finally:
            for volume, _ in self._bindings[written_volumes:]:
                self._storage.volumes.restore(volume)
            for claim in self._provisions[written_claims:]:
                self._storage.claims.restore(claim)

    def _is_bound(self, handle: Handle, info: PodInfo, wakeup: _Wakeup) -> bool:
        """Return whether all claims are bound, by the API's objects, not by assumed ones."""
        node = handle.live_node(self._node_name)
        if node is None:
            raise _failed(f'failed to get node "{self._node_name}": node not found')
        of_pod = info.pod.metadata
        pod = handle.live_pod(of_pod.namespace, of_pod.name)
        if pod is None or pod.metadata.uid != of_pod.uid:
            raise _failed(f'pod does not exist any more: pod "{of_pod.name}" not found')
        for volume, claim in self._bindings:
            if not self._is_volume_bound(volume, claim, node):
                return False
        return all(self._is_provisioned(claim, node, wakeup) for claim in self._provisions)

    def _is_volume_bound(
        self, written: PersistentVolume, claim: PersistentVolumeClaim, node: Node
    ) -> bool:
        name = written.metadata.name
        volume = self._storage.volume(name)
        if volume is None:
            raise _failed(f'failed to check binding: persistentvolumes "{name}" not found')
        live_claim = self._live_claim(claim, "failed to check binding")
        if _is_older(volume, written):
            return False
        self._check_node(volume, node)
        if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
            raise _failed(f'ClaimRef got reset for pv "{name}"')
        return is_fully_bound(live_claim)

    def _is_provisioned(self, written: PersistentVolumeClaim, node: Node, wakeup: _Wakeup) -> bool:
        claim = self._live_claim(written, "failed to check provisioning pvc")
        if _is_older(claim, written):
            return False
        name = claim.metadata.name
        if not claim.metadata.annotations:
            raise _failed(f'selectedNode annotation reset for PVC "{name}"')
        if claim.metadata.annotations.get(SELECTED_NODE) != self._node_name:
            # A provisioner removes the annotation to report that it failed on the node.
            raise _failed(f'provisioning failed for PVC "{name}"')
        if claim.spec.volume_name:
            wakeup.on_volume(claim.spec.volume_name)
            volume = self._storage.volume(claim.spec.volume_name)
            if volume is None:
                # The claim's watch may be ahead of the volume's. If the volume is gone, the
                # claim will say so in time.
                return False
            self._check_node(volume, node)
        return is_fully_bound(claim)

    def _live_claim(self, claim: PersistentVolumeClaim, doing: str) -> PersistentVolumeClaim:
        namespace, name = namespaced_name(claim)
        found = self._storage.claim(namespace, name)
        if found is None or found.metadata.uid != claim.metadata.uid:
            # Nobody binds the claim that the volume was written for; the new one may get another.
            why = f'persistentvolumeclaims "{namespace}/{name}" not found'
            raise _failed(f"{doing}: {why}")
        return found

    def _check_node(self, volume: PersistentVolume, node: Node) -> None:
        name = node.metadata.name
        if not reachability.reachable(volume, node.metadata.labels, name, self._storage):
            raise _failed(
                f'pv "{volume.metadata.name}" node affinity doesn\'t match node "{name}": '
                "no matching NodeSelectorTerms"
            )


class _Wakeup:
    """Wakes a waiting binding when one of its claims or volumes has changed."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._event = asyncio.Event()
        self._claims: set[ClaimKey] = set()
        self._volumes: set[str] = set()

    def on_claim(self, key: ClaimKey) -> None:
        if key not in self._claims:
            self._claims.add(key)
            self._storage.claims.listen(key, self._event.set)

    def on_volume(self, name: str) -> None:
        if name not in self._volumes:
            self._volumes.add(name)
            self._storage.volumes.listen(name, self._event.set)

    def clear(self) -> None:
        self._event.clear()

    async def wait(self, timeout_s: float) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                await self._event.wait()
        except TimeoutError:
            return

    def close(self) -> None:
        for key in self._claims:
            self._storage.claims.unlisten(key, self._event.set)
        for name in self._volumes:
            self._storage.volumes.unlisten(name, self._event.set)


def _failed(why: str) -> VolumeBindingError:
    return VolumeBindingError(f"binding volumes: {why}")


def _is_older(
    seen: PersistentVolume | PersistentVolumeClaim,
    written: PersistentVolume | PersistentVolumeClaim,
) -> bool:
    """Return whether the watch has not delivered our write yet."""
    return parse_resource_version(seen.metadata.resource_version) < parse_resource_version(
        written.metadata.resource_version
    )
