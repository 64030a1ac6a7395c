"""The storage objects that decide which nodes a pod with volumes can use, as immutable structs.

As in :mod:`cache.objects`, the structs have only the fields that scheduling reads, with quantities
in their original form.

*Source*: k8s.io/api core/v1 and storage/v1 (1.36).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from cache.objects import (
    EMPTY_QUANTITIES,
    ApiStruct,
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    CinderVolumeSource,
    GCEPersistentDiskVolumeSource,
    LabelSelector,
    NodeSelector,
    ObjectMeta,
    PersistentVolumeClaimSpec,
    PortworxVolumeSource,
    Quantity,
)

# --- claims and volumes -----------------------------------------------------------------------


class PersistentVolumeClaimStatus(ApiStruct, frozen=True):
    """The status of a claim; phases Pending, Bound, Lost."""

    phase: str = ""


class PersistentVolumeClaim(ApiStruct, frozen=True):
    """A request for a volume."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class ObjectReference(ApiStruct, frozen=True):
    """Which claim a volume is bound to, or is kept for while ``uid`` is empty."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""


class CSIPersistentVolumeSource(ApiStruct, frozen=True):
    """A volume that a CSI driver serves."""

    driver: str = ""
    volume_handle: str = ""


class AzureFilePersistentVolumeSource(ApiStruct, frozen=True):
    """An in-tree Azure file share."""

    secret_name: str = ""
    secret_namespace: str | None = None
    share_name: str = ""


class VsphereVirtualDiskVolumeSource(ApiStruct, frozen=True):
    """An in-tree vSphere disk."""

    volume_path: str = ""


class VolumeNodeAffinity(ApiStruct, frozen=True):
    """The nodes that can reach a volume."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(ApiStruct, frozen=True):
    """The specification of a volume."""

    capacity: Mapping[str, Quantity] = EMPTY_QUANTITIES
    access_modes: tuple[str, ...] = ()
    claim_ref: ObjectReference | None = None
    storage_class_name: str = ""
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    volume_attributes_class_name: str | None = None
    csi: CSIPersistentVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    azure_file: AzureFilePersistentVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None


class PersistentVolumeStatus(ApiStruct, frozen=True):
    """The status of a volume; phases Pending, Available, Bound, Released, Failed."""

    phase: str = ""


class PersistentVolume(ApiStruct, frozen=True):
    """A volume."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


# --- classes and drivers ----------------------------------------------------------------------


class TopologySelectorLabelRequirement(ApiStruct, frozen=True):
    """The label has one of the values."""

    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(ApiStruct, frozen=True):
    """All of its expressions; a term without any matches every node."""

    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ()


class StorageClass(ApiStruct, frozen=True):
    """The rules by which volumes of a class are provisioned and bound."""

    metadata: ObjectMeta = ObjectMeta()
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()


class VolumeNodeResources(ApiStruct, frozen=True):
    """How many volumes of a driver a node can hold; no count, no limit."""

    count: int | None = None


class CSINodeDriver(ApiStruct, frozen=True):
    """A driver on a node."""

    name: str = ""
    node_id: str = msgspec.field(default="", name="nodeID")
    topology_keys: tuple[str, ...] = ()
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(ApiStruct, frozen=True):
    """The drivers of a node."""

    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(ApiStruct, frozen=True):
    """The data of a node's CSI drivers; it has the name of the node."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(ApiStruct, frozen=True):
    """The capabilities of a driver."""

    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(ApiStruct, frozen=True):
    """A CSI driver."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(ApiStruct, frozen=True):
    """The capacity that a driver has for a class on the nodes of a topology segment."""

    metadata: ObjectMeta = ObjectMeta()
    node_topology: LabelSelector | None = None
    storage_class_name: str = ""
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None


class VolumeAttachmentSource(ApiStruct, frozen=True):
    """The volume that is attached."""

    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(ApiStruct, frozen=True):
    """The driver, the volume and the node of an attachment."""

    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachment(ApiStruct, frozen=True):
    """The attachment of a volume to a node, finished or under way."""

    metadata: ObjectMeta = ObjectMeta()
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
