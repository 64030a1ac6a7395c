"""The volumes of pods: claims, ephemeral ones, and disks named in the pod itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from tests.parity.storage_words import CLAIM_NAMES

if TYPE_CHECKING:
    from tests.parity.vocabulary import Json

_DISKS = st.builds(
    lambda name, read_only: {"gcePersistentDisk": {"pdName": name, "readOnly": read_only}},
    st.sampled_from(["disk-1", "disk-2"]),
    st.booleans(),
)
_BLOCK_STORES = st.sampled_from(["vol-1", "vol-2", "aws://zone-a/vol-1"]).map(
    lambda volume: {"awsElasticBlockStore": {"volumeID": volume}}
)
_TARGETS = st.builds(
    lambda name, read_only: {
        "iscsi": {"targetPortal": "10.0.0.1", "iqn": name, "lun": 0, "readOnly": read_only}
    },
    st.sampled_from(["iqn.2026-01.example:a", "iqn.2026-01.example:b"]),
    st.booleans(),
)
_CEPH = st.builds(
    lambda monitors, image, pool, read_only: {
        "rbd": {"monitors": monitors, "image": image, "pool": pool, "readOnly": read_only}
    },
    st.lists(st.sampled_from(["10.0.0.1", "10.0.0.2"]), min_size=1, max_size=2, unique=True),
    st.sampled_from(["image-1", "image-2"]),
    st.sampled_from(["rbd", "rbd", "other"]),
    st.booleans(),
)
_OTHERS = st.sampled_from(
    [
        {"azureDisk": {"diskName": "d", "diskURI": "/subscriptions/s/disks/d", "kind": "Managed"}},
        {"azureFile": {"secretName": "s", "shareName": "share"}},
        {"cinder": {"volumeID": "cinder-1"}},
        {"portworxVolume": {"volumeID": "px-1"}},
        {"vsphereVolume": {"volumePath": "[store] volume.vmdk"}},
        {"emptyDir": {}},
        {"hostPath": {"path": "/data"}},
        {"csi": {"driver": "csi.example.com"}},
    ]
)
_CLAIM = st.sampled_from(CLAIM_NAMES).map(
    lambda name: {"persistentVolumeClaim": {"claimName": name}}
)
_EPHEMERAL: Json = {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
_KINDS = st.sampled_from([*["claim"] * 7, "ephemeral", "disk", "disk", "other"])
_DISK = st.one_of(_DISKS, _BLOCK_STORES, _TARGETS, _CEPH)
_COUNTS = st.sampled_from([1, 1, 1, 2, 2, 3])


@st.composite
def pod_volumes(draw: st.DrawFn) -> list[Json]:
    """One to three volumes; an ephemeral one is called ``scratch``."""
    found: list[Json] = []
    for index in range(draw(_COUNTS)):
        kind = draw(_KINDS)
        name = f"volume-{index}"
        if kind == "claim":
            source = draw(_CLAIM)
        elif kind == "ephemeral":
            name, source = "scratch", _EPHEMERAL
        else:
            source = draw(_DISK if kind == "disk" else _OTHERS)
        if all(each["name"] != name for each in found):
            found.append({"name": name, **source})
    return found
