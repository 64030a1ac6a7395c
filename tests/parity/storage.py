"""Storage as an API server has it: classes, volumes, claims, drivers, capacities, attachments.

No two volumes have the same size and none are kept for the same claim: kube-scheduler takes the
first of such equals in the order of a map. What can be used by one pod alone is used by one, as
berth counts its users and kube-scheduler counts it once.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hypothesis import strategies as st

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
    selectors,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
EBS_ZONE = "topology.ebs.csi.aws.com/zone"
ZONES = ["zone-a", "zone-b", "zone-c"]

CSI_DRIVERS = ["csi.example.com", "csi.vendor.example", "ebs.csi.aws.com", "pd.csi.storage.gke.io"]
_IN_TREE_PLUGINS = [
    "kubernetes.io/aws-ebs",
    "kubernetes.io/gce-pd",
    "kubernetes.io/azure-disk",
    "kubernetes.io/azure-file",
    "kubernetes.io/cinder",
    "kubernetes.io/portworx-volume",
    "kubernetes.io/vsphere-volume",
]
_PROVISIONERS = {
    "manual": ["kubernetes.io/no-provisioner"],
    "fast": ["csi.example.com"],
    "slow": ["csi.vendor.example", "csi.example.com"],
    "cloud": ["kubernetes.io/aws-ebs", "kubernetes.io/gce-pd", "kubernetes.io/vsphere-volume"],
}
CLASSES = sorted(_PROVISIONERS)

CLAIM_NAMES = [f"claim-{index}" for index in range(5)]
_VOLUME_NAMES = [f"pv-{index}" for index in range(7)]
_SIZES = ["1Gi", "2Gi", "3Gi", "5Gi", "8Gi", "20Gi", "100Gi"]
_VOLUME_LABELS = {"tier": ["gold", "silver"], "disk": ["ssd", "hdd"]}
DELETED = "2026-01-01T00:00:00Z"

_ONE_CLASS = st.sampled_from(CLASSES)
_A_CLASS = st.sampled_from([*["manual"] * 4, *["fast"] * 4, "slow", "cloud", "gone", ""])
_MODES = st.sampled_from(
    [
        *[["ReadWriteOnce"]] * 6,
        ["ReadOnlyMany"],
        ["ReadWriteMany"],
        ["ReadWriteOnce", "ReadOnlyMany"],
    ]
)
_MANY_MODES = st.sampled_from(
    [["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"]] * 4
    + [["ReadWriteOnce"], ["ReadOnlyMany"], ["ReadWriteOncePod"]]
)
_SOME_ZONES = st.lists(st.sampled_from(ZONES), min_size=1, max_size=2, unique=True)
_SOME_NODES = st.lists(st.sampled_from(NODE_NAMES[:6]), min_size=1, max_size=3, unique=True)


def _object(version: str, kind: str, name: str, **fields: object) -> Json:
    metadata = {"name": name, "uid": f"uid-{kind}-{name}"}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


# --- classes, drivers, capacities ---------------------------------------------------------------

_ALLOWED = st.lists(
    st.one_of(
        _SOME_ZONES.map(lambda values: {"key": ZONE, "values": values}),
        _SOME_NODES.map(lambda values: {"key": HOSTNAME, "values": values}),
    ),
    min_size=1,
    max_size=2,
).map(lambda expressions: {"matchLabelExpressions": expressions})
_SOME_ALLOWED = st.lists(_ALLOWED, min_size=1, max_size=2)
_MODE = st.sampled_from(["WaitForFirstConsumer"] * 14 + ["Immediate"])


@st.composite
def _classes(draw: st.DrawFn, name: str) -> Json:
    made = _object(
        "storage.k8s.io/v1",
        "StorageClass",
        name,
        provisioner=draw(st.sampled_from(_PROVISIONERS[name])),
        reclaimPolicy="Delete",
        volumeBindingMode=draw(_MODE),
    )
    if draw(SELDOM):
        made["allowedTopologies"] = draw(_SOME_ALLOWED)
    return made


_DRIVER_SPECS = st.fixed_dictionaries(
    {}, optional={"storageCapacity": st.sampled_from([True, True, True, False])}
)
_TOPOLOGIES = st.one_of(
    _SOME_ZONES.map(
        lambda values: {"matchExpressions": [{"key": ZONE, "operator": "In", "values": values}]}
    ),
    st.sampled_from(NODE_NAMES[:6]).map(lambda name: {"matchLabels": {HOSTNAME: name}}),
    st.just({}),
)
_SPACES = st.sampled_from(["0", "1Gi", "4Gi", "10Gi", "1Ti"])


@st.composite
def _capacities(draw: st.DrawFn, name: str) -> Json:
    made = _object(
        "storage.k8s.io/v1", "CSIStorageCapacity", name, storageClassName=draw(_ONE_CLASS)
    )
    made["metadata"]["namespace"] = "default"
    if not draw(RARE):
        made["nodeTopology"] = draw(_TOPOLOGIES)
    if draw(LIKELY):
        made["capacity"] = draw(_SPACES)
    if draw(SELDOM):
        made["maximumVolumeSize"] = draw(_SPACES)
    return made


_LIMITS = st.sampled_from([0, 1, 1, 2, 2, 3])
_SOME_DRIVERS = st.lists(st.sampled_from(CSI_DRIVERS), min_size=1, max_size=3, unique=True)
_MIGRATED = st.one_of(
    st.just(_IN_TREE_PLUGINS), st.lists(st.sampled_from(_IN_TREE_PLUGINS), unique=True)
)


@st.composite
def _csi_nodes(draw: st.DrawFn, name: str) -> Json:
    drivers = []
    for driver in draw(_SOME_DRIVERS):
        entry: Json = {"name": driver, "nodeID": name, "topologyKeys": None}
        if draw(LIKELY):
            entry["allocatable"] = {"count": draw(_LIMITS)} if draw(LIKELY) else {}
        drivers.append(entry)
    made = _object("storage.k8s.io/v1", "CSINode", name, spec={"drivers": drivers})
    if draw(EVEN):
        key = "storage.alpha.kubernetes.io/migrated-plugins"
        made["metadata"]["annotations"] = {key: ",".join(draw(_MIGRATED))}
    return made


@st.composite
def _attachments(draw: st.DrawFn, name: str) -> Json:
    source = {"persistentVolumeName": draw(_VOLUME)} if not draw(RARE) else {}
    return _object(
        "storage.k8s.io/v1",
        "VolumeAttachment",
        name,
        spec={
            "attacher": draw(st.sampled_from(CSI_DRIVERS)),
            "nodeName": draw(st.sampled_from(NODE_NAMES[:6])),
            "source": source,
        },
        status={"attached": True},
    )


# --- volumes ------------------------------------------------------------------------------------

_VOLUME = st.sampled_from(_VOLUME_NAMES)
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
    _SOME_NODES.map(lambda values: {"key": HOSTNAME, "operator": "In", "values": values}),
    _SOME_ZONES.map(lambda values: {"key": ZONE, "operator": "In", "values": values}),
    _SOME_ZONES.map(lambda values: {"key": ZONE, "operator": "NotIn", "values": values}),
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
_BLOCK = chance(8)
_ATTRIBUTES_CLASS = chance(6)
_OFTEN_AFFINITY = chance(60)


@st.composite
def _volumes(draw: st.DrawFn, name: str, size: str, kept_for: str | None) -> Json:
    spec: Json = {
        "capacity": {"storage": size},
        "accessModes": draw(_MANY_MODES),
        "volumeMode": "Block" if draw(_BLOCK) else "Filesystem",
        "persistentVolumeReclaimPolicy": "Delete",
    }
    class_name = draw(_A_CLASS)
    if class_name:
        spec["storageClassName"] = class_name
    if draw(EVEN):
        source = {"driver": draw(st.sampled_from(CSI_DRIVERS)), "volumeHandle": draw(_HANDLES)}
        spec["csi"] = source
    else:
        spec |= draw(_IN_TREE)
    if draw(_OFTEN_AFFINITY):
        spec["nodeAffinity"] = draw(_AFFINITIES)
    if draw(_ATTRIBUTES_CLASS):
        spec["volumeAttributesClassName"] = "gold"
    phase = draw(_PHASES)
    if kept_for is not None:
        reference = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": kept_for}
        if draw(EVEN):
            reference["uid"] = f"uid-{kept_for}" if draw(LIKELY) else "uid-of-another"
        spec["claimRef"] = reference
    made = _object("v1", "PersistentVolume", name, spec=spec, status={"phase": phase})
    made["metadata"]["labels"] = draw(labels(_VOLUME_LABELS))
    if draw(SELDOM):
        made["metadata"]["labels"] |= draw(_ZONE_LABELS)
    if draw(RARE):
        made["metadata"]["deletionTimestamp"] = DELETED
    if draw(RARE):
        annotation = {"volume.beta.kubernetes.io/storage-class": draw(_ONE_CLASS)}
        made["metadata"]["annotations"] = annotation
    return made


# --- claims -------------------------------------------------------------------------------------

_STATES = st.sampled_from(
    [
        *["waiting"] * 14,
        *["bound"] * 14,
        *["selected"] * 3,
        "bound to nothing",
        "lost",
        "kept for a volume",
    ]
)
_REQUESTS = st.sampled_from(["1", "500Mi", "1Gi", "2Gi", "4Gi", "10Gi", "50Gi"])
_SELECTORS = selectors(_VOLUME_LABELS)
_CLAIM_CLASS = st.sampled_from([*["manual"] * 3, *["fast"] * 4, "slow", "cloud", "cloud"])
_ONLY_POD = chance(15)
_POD_ALONE = ["ReadWriteOncePod"]
_CLAIM_CLASS_IS_SOUND = chance(93)


@st.composite
def claims(
    draw: st.DrawFn, name: str, volume: st.SearchStrategy[str], owner_uid: str | None = None
) -> Json:
    """A claim, bound to one of these volumes; with an owner, the one of an ephemeral volume."""
    metadata: Json = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    annotations: dict[str, str] = {}
    if owner_uid is not None:
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "owner", "uid": owner_uid}
        metadata["ownerReferences"] = [{**owner, "controller": True}]
    spec: Json = {
        "accessModes": _POD_ALONE if draw(_ONLY_POD) else draw(_MODES),
        "volumeMode": "Block" if draw(_BLOCK) else "Filesystem",
        "resources": {"requests": {"storage": draw(_REQUESTS)}},
    }
    class_name = draw(_CLAIM_CLASS) if draw(_CLAIM_CLASS_IS_SOUND) else draw(_A_CLASS)
    if class_name or draw(EVEN):
        spec["storageClassName"] = class_name
    if draw(RARE):
        annotations["volume.beta.kubernetes.io/storage-class"] = draw(_ONE_CLASS)
    phase = "Pending"
    state = draw(_STATES)
    if state == "waiting" and draw(SELDOM):
        spec["selector"] = draw(_SELECTORS)
    elif state == "selected":
        selected = draw(st.sampled_from(NODE_NAMES[:6]))
        annotations["volume.kubernetes.io/selected-node"] = selected
    elif state in {"bound", "lost"}:
        spec["volumeName"] = draw(volume)
        annotations["pv.kubernetes.io/bind-completed"] = "yes"
        phase = "Bound" if state == "bound" else "Lost"
    elif state == "bound to nothing":
        spec["volumeName"] = "pv-gone"
        annotations["pv.kubernetes.io/bind-completed"] = "yes"
        phase = "Bound"
    elif state == "kept for a volume":
        spec["volumeName"] = draw(volume)
    if draw(_ATTRIBUTES_CLASS):
        spec["volumeAttributesClassName"] = "gold"
    if annotations:
        metadata["annotations"] = annotations
    if draw(_DYING):
        metadata["deletionTimestamp"] = DELETED
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": spec,
        "status": {"phase": phase},
    }


_DYING = chance(3)

# --- all of it ----------------------------------------------------------------------------------

_NUMBERS_OF_VOLUMES = st.sampled_from([3, 4, 5, 6, 7, 0, 1, 2])
_OFFSETS = st.integers(0, len(_SIZES) - 1)
_STEPS = st.integers(1, len(_SIZES) - 1)
_KEPT_FOR = st.sampled_from(CLAIM_NAMES)
_FEW = st.sampled_from([0, 1, 2, 3])
_EPHEMERAL = "scratch"


def _shared(pods: Iterable[Json]) -> set[str]:
    """Return the claims that more than one volume of the pods is about."""
    used = Counter(
        volume["persistentVolumeClaim"]["claimName"]
        for pod in pods
        for volume in pod["spec"].get("volumes", ())
        if "persistentVolumeClaim" in volume
    )
    return {name for name, count in used.items() if count > 1}


@st.composite
def storage(draw: st.DrawFn, node_names: list[str], pods: list[Json]) -> list[Json]:
    """Everything that these nodes and placed pods, and the one that is asked about, may use."""
    objects = [draw(_classes(name)) for name in CLASSES if not draw(RARE)]
    for driver in CSI_DRIVERS[:2]:
        if draw(LIKELY):
            spec = draw(_DRIVER_SPECS)
            objects.append(_object("storage.k8s.io/v1", "CSIDriver", driver, spec=spec))
    objects += [draw(_capacities(f"capacity-{index}")) for index in range(draw(_FEW))]
    objects += [draw(_csi_nodes(name)) for name in node_names if draw(LIKELY)]
    objects += [draw(_attachments(f"attachment-{index}")) for index in range(draw(_FEW))]
    offset, step = draw(_OFFSETS), draw(_STEPS)
    kept_for: set[str] = set()
    volume_names = _VOLUME_NAMES[: draw(_NUMBERS_OF_VOLUMES)]
    for index, name in enumerate(volume_names):
        reserved = draw(_KEPT_FOR) if draw(SELDOM) else None
        if reserved in kept_for:
            reserved = None
        elif reserved is not None:
            kept_for.add(reserved)
        size = _SIZES[(offset + step * index) % len(_SIZES)]
        objects.append(draw(_volumes(name, size, reserved)))
    volume = st.sampled_from([*volume_names * 5, "pv-gone"])
    shared = _shared(pods)
    for name in CLAIM_NAMES:
        if not draw(_DYING):
            claim = draw(claims(name, volume))
            if name in shared and claim["spec"]["accessModes"] == _POD_ALONE:
                claim["spec"]["accessModes"] = ["ReadWriteOnce"]
            objects.append(claim)
    for name in ("asked", *(pod["metadata"]["name"] for pod in pods)):
        if draw(LIKELY):
            foreign = name == "asked" and draw(RARE)
            owner = "uid-of-another" if foreign else f"uid-{name}"
            objects.append(draw(claims(f"{name}-{_EPHEMERAL}", volume, owner)))
    return objects
