"""Volumes as an API server has them."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.parity.storage_words import (
    ANY_CLASS,
    ATTRIBUTES_CLASS,
    BETA_ZONE,
    BLOCK,
    CSI_DRIVERS,
    DELETED,
    EBS_ZONE,
    ONE_CLASS,
    SOME_NODES,
    SOME_ZONES,
    VOLUME_LABELS,
    ZONES,
    api_object,
)
from tests.parity.vocabulary import (
    EVEN,
    HOSTNAME,
    LIKELY,
    NODE_NAMES,
    RARE,
    REGION,
    SELDOM,
    ZONE,
    Json,
    chance,
    labels,
)

_MODES = st.sampled_from(
    [["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"]] * 4
    + [["ReadWriteOnce"], ["ReadOnlyMany"], ["ReadWriteOncePod"]]
)
_HANDLES = st.sampled_from(["vol-1", "vol-2", "vol-3", "vol-4"])
_IN_TREE = st.sampled_from(
    [
        {"awsElasticBlockStore": {"volumeID": "aws://zone-a/vol-1"}},
        {"awsElasticBlockStore": {"volumeID": "vol-2"}},
        {"awsElasticBlockStore": {"volumeID": "aws://zone-a/not/a/volume"}},
        {"gcePersistentDisk": {"pdName": "disk-1"}},
        {"gcePersistentDisk": {"pdName": "disk-2"}},
        {"azureDisk": {"diskName": "d", "diskURI": "/subscriptions/s/disks/d", "kind": "Managed"}},
        {"azureDisk": {"diskName": "e", "diskURI": "/subscriptions/s/disks/e", "kind": "Shared"}},
        {"azureFile": {"secretName": "s", "shareName": "share"}},
        {"cinder": {"volumeID": "cinder-1"}},
        {"portworxVolume": {"volumeID": "px-1"}},
        {"vsphereVolume": {"volumePath": "[store] volume.vmdk"}},
        {"hostPath": {"path": "/data"}},
        {"local": {"path": "/mnt/disk"}},
        {"nfs": {"server": "nfs.example", "path": "/"}},
    ]
)
_REQUIREMENTS = st.one_of(
    SOME_NODES.map(lambda values: {"key": HOSTNAME, "operator": "In", "values": values}),
    SOME_ZONES.map(lambda values: {"key": ZONE, "operator": "In", "values": values}),
    SOME_ZONES.map(lambda values: {"key": ZONE, "operator": "NotIn", "values": values}),
    st.just({"key": EBS_ZONE, "operator": "Exists"}),
)
_TERMS = st.one_of(
    *[
        st.lists(_REQUIREMENTS, min_size=1, max_size=2).map(
            lambda expressions: {"matchExpressions": expressions}
        )
    ]
    * 9,
    st.sampled_from(NODE_NAMES).map(
        lambda name: {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
    ),
)
_AFFINITIES = st.lists(_TERMS, min_size=1, max_size=2).map(
    lambda terms: {"required": {"nodeSelectorTerms": terms}}
)
_ZONE_LABELS = st.sampled_from(
    [
        *({ZONE: zone} for zone in ZONES),
        {ZONE: "zone-a__zone-b"},
        {ZONE: "zone-a__"},
        {BETA_ZONE: "zone-a"},
        {BETA_ZONE: "zone-b"},
        {REGION: "region-1"},
        {ZONE: "zone-a", REGION: "region-1"},
    ]
)
_PHASES = st.sampled_from(["Available"] * 8 + ["Bound", "Released"])
_OFTEN_AFFINITY = chance(60)


@st.composite
def persistent_volumes(draw: st.DrawFn, name: str, size: str, kept_for: str | None) -> Json:
    """A volume, kept for a claim where one is named."""
    spec: Json = {
        "capacity": {"storage": size},
        "accessModes": draw(_MODES),
        "volumeMode": "Block" if draw(BLOCK) else "Filesystem",
        "persistentVolumeReclaimPolicy": "Delete",
    }
    class_name = draw(ANY_CLASS)
    if class_name:
        spec["storageClassName"] = class_name
    if draw(EVEN):
        source = {"driver": draw(st.sampled_from(CSI_DRIVERS)), "volumeHandle": draw(_HANDLES)}
        spec["csi"] = source
    else:
        spec |= draw(_IN_TREE)
    if draw(_OFTEN_AFFINITY):
        spec["nodeAffinity"] = draw(_AFFINITIES)
    if draw(ATTRIBUTES_CLASS):
        spec["volumeAttributesClassName"] = "gold"
    phase = draw(_PHASES)
    if kept_for is not None:
        reference = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": kept_for}
        if draw(EVEN):
            reference["uid"] = f"uid-{kept_for}" if draw(LIKELY) else "uid-of-another"
        spec["claimRef"] = reference
    made = api_object("v1", "PersistentVolume", name, spec=spec, status={"phase": phase})
    made["metadata"]["labels"] = draw(labels(VOLUME_LABELS))
    if draw(SELDOM):
        made["metadata"]["labels"] |= draw(_ZONE_LABELS)
    if draw(RARE):
        made["metadata"]["deletionTimestamp"] = DELETED
    if draw(RARE):
        annotation = {"volume.beta.kubernetes.io/storage-class": draw(ONE_CLASS)}
        made["metadata"]["annotations"] = annotation
    return made
