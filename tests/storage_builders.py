"""Builders of storage objects, in the manner of :mod:`tests.builders`.

    claim("data").of_class("fast").bound_to("pv-1").build()
    volume("pv-1").csi("ebs.csi.aws.com", "vol-1").zone("a").build()
    csi_node("n1").driver("ebs.csi.aws.com", limit=39).build()

``storage_of(...)`` gives the Storage that has been told of such objects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from msgspec.structs import replace

from cache.objects import (
    NodeSelector,
    ObjectMeta,
    OwnerReference,
    PersistentVolumeClaimSpec,
    Quantity,
    ResourceRequirements,
)
from cache.storage import Storage
from cache.storage_objects import (
    CSIDriver,
    CSIDriverSpec,
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    CSIPersistentVolumeSource,
    CSIStorageCapacity,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    StorageClass,
    TopologySelectorTerm,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
    VolumeNodeAffinity,
    VolumeNodeResources,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from cache.objects import NodeSelectorTerm, Pod

StorageObject: TypeAlias = (
    PersistentVolume
    | PersistentVolumeClaim
    | StorageClass
    | CSINode
    | CSIDriver
    | CSIStorageCapacity
    | VolumeAttachment
)


def claim(name: str, *, namespace: str = "default") -> ClaimBuilder:
    """Return a builder of a claim for 1 GiB that one node at a time may write."""
    return ClaimBuilder(
        PersistentVolumeClaim(
            metadata=ObjectMeta(
                name=name,
                namespace=namespace,
                uid=f"uid-claim-{namespace}-{name}",
                resource_version="1",
            ),
            spec=PersistentVolumeClaimSpec(
                access_modes=("ReadWriteOnce",),
                resources=ResourceRequirements(requests={"storage": "1Gi"}),
            ),
            status=PersistentVolumeClaimStatus(phase="Pending"),
        )
    )


def volume(name: str) -> VolumeBuilder:
    """Return a builder of a volume of 1 GiB that one node at a time may write."""
    return VolumeBuilder(
        PersistentVolume(
            metadata=ObjectMeta(name=name, uid=f"uid-volume-{name}", resource_version="1"),
            spec=PersistentVolumeSpec(capacity={"storage": "1Gi"}, access_modes=("ReadWriteOnce",)),
            status=PersistentVolumeStatus(phase="Available"),
        )
    )


def storage_class(
    name: str,
    provisioner: str = "csi.example.com",
    *,
    mode: str | None = "WaitForFirstConsumer",
    topologies: tuple[TopologySelectorTerm, ...] = (),
) -> StorageClass:
    """Return a class."""
    return StorageClass(ObjectMeta(name=name), provisioner, mode, topologies)


def csi_node(name: str) -> CSINodeBuilder:
    """Return a builder of what the drivers say of a node, so far without any."""
    return CSINodeBuilder(CSINode(ObjectMeta(name=name)))


def csi_driver(name: str, *, storage_capacity: bool | None = None) -> CSIDriver:
    """Return a driver."""
    return CSIDriver(ObjectMeta(name=name), CSIDriverSpec(storage_capacity=storage_capacity))


def attachment(volume_name: str, node_name: str, attacher: str) -> VolumeAttachment:
    """Return an attachment of a volume to a node."""
    return VolumeAttachment(
        ObjectMeta(name=f"{attacher}-{volume_name}-{node_name}"),
        VolumeAttachmentSpec(attacher, node_name, VolumeAttachmentSource(volume_name)),
    )


def storage_of(*objects: StorageObject) -> Storage:
    """Return a Storage that has been told of these objects."""
    storage = Storage()
    for each in objects:
        tell(storage, None, each)
    return storage


def version_of(storage: Storage) -> int:
    """Return a number that grows with every change of a Storage, assumptions included."""
    kinds = (storage.classes, storage.csi_nodes, storage.csi_drivers, storage.capacities)
    versions = sum(kind.version for kind in (storage.claims, storage.volumes, *kinds))
    return versions + storage.attachments_version


def tell(storage: Storage, old: Any, new: Any) -> None:
    """Tell a Storage of a change: no ``old`` for an object that is new, no ``new`` for one gone."""
    kind = type(old if new is None else new)
    changed: dict[type[Any], Callable[[Any, Any], object]] = {
        PersistentVolume: storage.volumes.changed,
        PersistentVolumeClaim: storage.claims.changed,
        StorageClass: storage.classes.changed,
        CSINode: storage.csi_nodes.changed,
        CSIDriver: storage.csi_drivers.changed,
        CSIStorageCapacity: storage.capacities.changed,
        VolumeAttachment: storage.attachment_changed,
    }
    changed[kind](old, new)


@dataclass(frozen=True)
class ClaimBuilder:
    """A claim in the making."""

    _claim: PersistentVolumeClaim

    def build(self) -> PersistentVolumeClaim:
        """Return the claim."""
        return self._claim

    def version(self, resource_version: int) -> Self:
        """Give it a resourceVersion."""
        return self._meta(resource_version=str(resource_version))

    def annotation(self, key: str, value: str) -> Self:
        """Add an annotation."""
        return self._meta(annotations={**self._claim.metadata.annotations, key: value})

    def owned_by(self, pod: Pod) -> Self:
        """Let a pod own it, as the claim of an ephemeral volume."""
        owner = OwnerReference("v1", "Pod", pod.metadata.name, pod.metadata.uid, controller=True)
        return self._meta(owner_references=(owner,))

    def terminating(self, since: str = "2025-01-01T00:00:00Z") -> Self:
        """Let somebody have asked for its deletion."""
        return self._meta(deletion_timestamp=since)

    def of_class(self, name: str) -> Self:
        """Give it a class; an empty one is none at all."""
        return self._spec(storage_class_name=name)

    def access(self, *modes: str) -> Self:
        """Give it access modes."""
        return self._spec(access_modes=modes)

    def size(self, amount: Quantity) -> Self:
        """Let it ask for so much room."""
        return self._spec(resources=ResourceRequirements(requests={"storage": amount}))

    def bound_to(self, volume_name: str, *, completely: bool = True) -> Self:
        """Bind it to a volume; what is not complete has yet to be seen by the PV controller."""
        named = self._spec(volume_name=volume_name)
        if not completely:
            return named
        bound = named.annotation("pv.kubernetes.io/bind-completed", "yes")
        return bound.phase("Bound")

    def phase(self, phase: str) -> Self:
        """Give it a phase."""
        status = PersistentVolumeClaimStatus(phase=phase)
        return type(self)(replace(self._claim, status=status))

    def _meta(self, **changes: Any) -> Self:
        return type(self)(replace(self._claim, metadata=replace(self._claim.metadata, **changes)))

    def _spec(self, **changes: Any) -> Self:
        return type(self)(replace(self._claim, spec=replace(self._claim.spec, **changes)))


@dataclass(frozen=True)
class VolumeBuilder:
    """A volume in the making."""

    _volume: PersistentVolume

    def build(self) -> PersistentVolume:
        """Return the volume."""
        return self._volume

    def version(self, resource_version: int) -> Self:
        """Give it a resourceVersion."""
        return self._meta(resource_version=str(resource_version))

    def label(self, key: str, value: str = "") -> Self:
        """Add a label."""
        return self._meta(labels={**self._volume.metadata.labels, key: value})

    def zone(self, zone: str) -> Self:
        """Label it with a zone, or with several that are joined by two underscores."""
        return self.label("topology.kubernetes.io/zone", zone)

    def csi(self, driver: str, handle: str = "") -> Self:
        """Let a CSI driver serve it."""
        named = handle or f"handle-{self._volume.metadata.name}"
        return self._spec(csi=CSIPersistentVolumeSource(driver, named))

    def source(self, **source: Any) -> Self:
        """Give it an in-tree source."""
        return self._spec(**source)

    def of_class(self, name: str) -> Self:
        """Give it a class."""
        return self._spec(storage_class_name=name)

    def access(self, *modes: str) -> Self:
        """Give it access modes."""
        return self._spec(access_modes=modes)

    def size(self, amount: Quantity) -> Self:
        """Give it so much room."""
        return self._spec(capacity={"storage": amount})

    def node_affinity(self, *terms: NodeSelectorTerm) -> Self:
        """Let only nodes reach it that satisfy one of the terms."""
        return self._spec(node_affinity=VolumeNodeAffinity(NodeSelector(terms)))

    def bound_to(self, claim_name: str, *, namespace: str = "default", uid: str = "") -> Self:
        """Bind it to a claim."""
        reference = ObjectReference(
            kind="PersistentVolumeClaim",
            namespace=namespace,
            name=claim_name,
            uid=uid or f"uid-claim-{namespace}-{claim_name}",
        )
        bound = self._spec(claim_ref=reference)
        return type(self)(replace(bound.build(), status=PersistentVolumeStatus(phase="Bound")))

    def _meta(self, **changes: Any) -> Self:
        return type(self)(replace(self._volume, metadata=replace(self._volume.metadata, **changes)))

    def _spec(self, **changes: Any) -> Self:
        return type(self)(replace(self._volume, spec=replace(self._volume.spec, **changes)))


@dataclass(frozen=True)
class CSINodeBuilder:
    """What drivers say of a node, in the making."""

    _csi_node: CSINode

    def build(self) -> CSINode:
        """Return the CSINode."""
        return self._csi_node

    def driver(self, name: str, *, limit: int | None = None) -> Self:
        """Add a driver, which can hold so many volumes."""
        room = None if limit is None else VolumeNodeResources(limit)
        more = CSINodeDriver(name, self._csi_node.metadata.name, allocatable=room)
        drivers = (*self._csi_node.spec.drivers, more)
        return type(self)(replace(self._csi_node, spec=CSINodeSpec(drivers)))

    def annotation(self, key: str, value: str) -> Self:
        """Add an annotation."""
        metadata = self._csi_node.metadata
        annotations = {**metadata.annotations, key: value}
        return type(self)(
            replace(self._csi_node, metadata=replace(metadata, annotations=annotations))
        )
