"""Names of storage objects, so that they meet."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.parity.vocabulary import NODE_NAMES, Json, chance

BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
EBS_ZONE = "topology.ebs.csi.aws.com/zone"
ZONES = ["zone-a", "zone-b", "zone-c"]

CSI_DRIVERS = ["csi.example.com", "csi.vendor.example", "ebs.csi.aws.com", "pd.csi.storage.gke.io"]
IN_TREE_PLUGINS = [
    "kubernetes.io/aws-ebs",
    "kubernetes.io/gce-pd",
    "kubernetes.io/azure-disk",
    "kubernetes.io/azure-file",
    "kubernetes.io/cinder",
    "kubernetes.io/portworx-volume",
    "kubernetes.io/vsphere-volume",
]
PROVISIONERS = {
    "manual": ["kubernetes.io/no-provisioner"],
    "fast": ["csi.example.com"],
    "slow": ["csi.vendor.example", "csi.example.com"],
    "cloud": ["kubernetes.io/aws-ebs", "kubernetes.io/gce-pd", "kubernetes.io/vsphere-volume"],
}
CLASSES = sorted(PROVISIONERS)

CLAIM_NAMES = [f"claim-{index}" for index in range(5)]
VOLUME_NAMES = [f"pv-{index}" for index in range(7)]
VOLUME_LABELS = {"tier": ["gold", "silver"], "disk": ["ssd", "hdd"]}
DELETED = "2026-01-01T00:00:00Z"

ONE_CLASS = st.sampled_from(CLASSES)
ANY_CLASS = st.sampled_from([*["manual"] * 4, *["fast"] * 4, "slow", "cloud", "gone", ""])
BLOCK = chance(8)
ATTRIBUTES_CLASS = chance(6)
ONE_VOLUME = st.sampled_from(VOLUME_NAMES)
SOME_ZONES = st.lists(st.sampled_from(ZONES), min_size=1, max_size=2, unique=True)
SOME_NODES = st.lists(st.sampled_from(NODE_NAMES[:6]), min_size=1, max_size=3, unique=True)


def api_object(version: str, kind: str, name: str, **fields: object) -> Json:
    """An object that belongs to no namespace."""
    metadata = {"name": name, "uid": f"uid-{kind}-{name}"}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}
