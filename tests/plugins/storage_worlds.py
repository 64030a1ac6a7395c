"""Strategies for small clusters whose pods have much to do with volumes.

Vocabularies are tiny, so that claims are shared, limits are reached, zones do not match and
objects are missing often enough to say something.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from cache.objects import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    ClaimVolumeSource,
    EphemeralVolumeSource,
    GCEPersistentDiskVolumeSource,
    ISCSIVolumeSource,
    MigratedVolumeSource,
    Node,
    Pod,
    RBDVolumeSource,
    Volume,
)
from tests.builders import node, pod
from tests.plugins.conformance import Cluster
from tests.storage_builders import (
    StorageObject,
    attachment,
    claim,
    csi_node,
    storage_class,
    storage_of,
    volume,
)

if TYPE_CHECKING:
    from cache.storage import Storage
    from cache.storage_objects import (
        CSINode,
        PersistentVolume,
        PersistentVolumeClaim,
        VolumeAttachment,
    )

NODE_NAMES = [f"node-{index}" for index in range(5)]
NAMESPACES = ["default", "other"]
CLAIM_NAMES = ["data", "logs", "shared"]
VOLUME_NAMES = ["pv-0", "pv-1", "pv-2", "pv-3"]
DRIVERS = ["csi.example.com", "ebs.csi.aws.com", "disk.csi.azure.com"]
ZONE_LABELS = [
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
]
CLASSES = (
    storage_class("fast"),
    storage_class("old", "kubernetes.io/aws-ebs"),
    storage_class("files", "kubernetes.io/azure-file"),
    storage_class("eager", mode="Immediate"),
    storage_class("unset", mode=None),
)
_POD_NAMES = ["pod", "newcomer", "placed-0", "placed-1", "placed-2", "placed-3"]


@dataclass(frozen=True)
class World:
    """A cluster and the storage objects in it."""

    cluster: Cluster
    objects: tuple[StorageObject, ...]

    def storage(self) -> Storage:
        """Return a Storage that has been told of them."""
        return storage_of(*self.objects)


@st.composite
def worlds(draw: st.DrawFn, *, min_nodes: int = 0) -> World:
    """Up to five nodes, up to four pods on them, and storage."""
    listed = draw(st.lists(st.sampled_from(NODE_NAMES), unique=True, min_size=min_nodes))
    hosts = draw(st.lists(st.sampled_from(listed), max_size=4)) if listed else []
    cluster = Cluster(
        tuple(draw(nodes(name)) for name in listed),
        tuple(draw(pods(f"placed-{index}", host)) for index, host in enumerate(hosts)),
    )
    return World(cluster, draw(storage_objects()))


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    """Nodes with some of the labels that say where they are."""
    made = node(name)
    for key, value in draw(places()).items():
        made = made.label(key, value)
    return made.build()


@cache
def places() -> st.SearchStrategy[dict[str, str]]:
    """Labels of nodes and volumes; a volume may be in two zones, or in one without a name."""
    values = st.sampled_from(["a", "b", "a__b", "a__"])
    return st.dictionaries(st.sampled_from(ZONE_LABELS), values, max_size=2)


@st.composite
def pods(draw: st.DrawFn, name: str = "pod", node_name: str = "") -> Pod:
    """Pods with up to three volumes."""
    made = pod(name, namespace=draw(st.sampled_from(NAMESPACES))).uid(f"uid-{name}")
    for each in draw(st.lists(_volumes(), max_size=3)):
        made = made.volume(each)
    return (made.on(node_name) if node_name else made).build()


@cache
def _volumes() -> st.SearchStrategy[Volume]:
    names, read_only = st.sampled_from(["a", "b"]), st.booleans()
    claims = st.builds(
        Volume,
        name=st.just("v"),
        persistent_volume_claim=st.builds(ClaimVolumeSource, st.sampled_from(CLAIM_NAMES)),
    )
    monitors = st.sampled_from([("m1",), ("m1", "m2"), ("m2", "m3"), ()])
    inline = st.one_of(
        st.builds(
            Volume,
            aws_elastic_block_store=st.builds(
                AWSElasticBlockStoreVolumeSource,
                st.sampled_from(["vol-a", "aws://zone/vol-a", "vol-b"]),
            ),
        ),
        st.builds(
            Volume,
            gce_persistent_disk=st.builds(GCEPersistentDiskVolumeSource, names, read_only),
        ),
        st.builds(Volume, iscsi=st.builds(ISCSIVolumeSource, names, read_only)),
        st.builds(
            Volume, rbd=st.builds(RBDVolumeSource, monitors, names, st.just("rbd"), read_only)
        ),
        st.builds(Volume, azure_disk=st.builds(AzureDiskVolumeSource, names, names)),
        st.builds(Volume, azure_file=st.builds(MigratedVolumeSource)),
        st.just(Volume("config")),
    )
    ephemeral = st.just(Volume("scratch", ephemeral=EphemeralVolumeSource()))
    return st.one_of(claims, claims, inline, ephemeral)


@st.composite
def storage_objects(draw: st.DrawFn) -> tuple[StorageObject, ...]:
    """Claims, volumes, classes, CSINodes and attachments, any of them left out."""
    found: list[StorageObject] = [each for each in CLASSES if draw(st.booleans())]
    found += [draw(volumes(name)) for name in draw(_some(VOLUME_NAMES))]
    for namespace in NAMESPACES:
        found += [draw(claims(name, namespace)) for name in draw(_some(CLAIM_NAMES))]
        found += [draw(ephemeral_claims(name, namespace)) for name in draw(_some(_POD_NAMES))]
    found += [draw(csi_nodes(name)) for name in draw(_some(NODE_NAMES))]
    found += draw(st.lists(attachments(), max_size=4, unique_by=lambda each: each.metadata.name))
    return tuple(found)


def _some(names: list[str]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(names), unique=True)


@st.composite
def claims(draw: st.DrawFn, name: str, namespace: str) -> PersistentVolumeClaim:
    """Claims that are bound, wait for their pod, should be bound, or are bound to nothing."""
    modes = [("ReadWriteOncePod",), ("ReadWriteOnce",), ("ReadWriteMany", "ReadWriteOncePod")]
    made = claim(name, namespace=namespace).access(*draw(st.sampled_from(modes)))
    class_name = draw(st.sampled_from([None, *(each.metadata.name for each in CLASSES), "gone"]))
    if class_name is not None:
        made = made.of_class(class_name)
    bound = draw(st.sampled_from([None, *VOLUME_NAMES, *VOLUME_NAMES, "gone"]))
    return (made if bound is None else made.bound_to(bound)).build()


@st.composite
def ephemeral_claims(draw: st.DrawFn, pod_name: str, namespace: str) -> PersistentVolumeClaim:
    """The claim of a pod's ephemeral volume: its own, whichever namespace the pod is in."""
    owner = pod(pod_name, namespace=namespace).uid(f"uid-{pod_name}").build()
    made = claim(f"{pod_name}-scratch", namespace=namespace).owned_by(owner).of_class("fast")
    return (made.bound_to("pv-0") if draw(st.booleans()) else made).build()


@st.composite
def volumes(draw: st.DrawFn, name: str) -> PersistentVolume:
    """Volumes of drivers, of plugins that drivers have replaced, and of neither."""
    made = volume(name)
    handle = draw(st.sampled_from(["vol-a", "vol-b", "b", name]))
    kind = draw(st.sampled_from(["csi", "csi", "ebs", "azure", "unmanaged", "nothing"]))
    if kind == "csi":
        made = made.csi(draw(st.sampled_from(DRIVERS)), handle)
    elif kind == "ebs":
        made = made.source(aws_elastic_block_store=AWSElasticBlockStoreVolumeSource(handle))
    elif kind != "nothing":
        disk_kind = "Dedicated" if kind == "unmanaged" else "Managed"
        made = made.source(azure_disk=AzureDiskVolumeSource(handle, handle, disk_kind))
    for key, value in draw(places()).items():
        made = made.label(key, value)
    return made.build()


@st.composite
def csi_nodes(draw: st.DrawFn, name: str) -> CSINode:
    """CSINodes with few drivers and low limits."""
    made = csi_node(name)
    for driver in draw(st.lists(st.sampled_from(DRIVERS), unique=True)):
        made = made.driver(driver, limit=draw(st.sampled_from([None, 0, 1, 1, 2, 3])))
    return made.build()


@cache
def attachments() -> st.SearchStrategy[VolumeAttachment]:
    """Volumes on nodes, whether a pod there uses them or not."""
    return st.builds(
        attachment,
        st.sampled_from([*VOLUME_NAMES, "gone"]),
        st.sampled_from(NODE_NAMES),
        st.sampled_from([*DRIVERS, ""]),
    )
