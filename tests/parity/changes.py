"""Changes of one object, and the pending pods that may care about them."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from tests.parity.node_terms import node_affinities
from tests.parity.nodes import nodes
from tests.parity.pod_terms import pod_affinities, spread_constraints
from tests.parity.pods import pending_pods, placed_pods, plain_pods
from tests.parity.vocabulary import EFFECTS, EVEN, LIKELY, RARE, SELDOM, TAINT_KEYS, Json, chance

if TYPE_CHECKING:
    from collections.abc import Sequence

_DRIVERS = ["disk.csi.example.com", "pd.csi.storage.gke.io"]
_CLAIMS = ["claim-0", "claim-0", "claim-1", "asked-scratch"]
_CLASSES = ["fast", "slow"]
_NAMESPACES = ["default", "default", "default", "team-a"]
_ZONE_LABELS = ["topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"]
_MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
_MODES = ["WaitForFirstConsumer", "Immediate"]

POD_CHANGES = 4
"""Pending pods that are asked about one change."""

# --- pods -------------------------------------------------------------------------------------

_TOLERATIONS = st.lists(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(["", *TAINT_KEYS]),
            "operator": st.just("Exists"),
            "effect": st.sampled_from(["", *EFFECTS]),
        }
    ),
    max_size=2,
)
_GATES = st.lists(st.sampled_from(["a", "b"]).map(lambda name: {"name": name}), max_size=2)
_VOLUMES = st.lists(
    st.one_of(
        st.sampled_from(_CLAIMS[:3]).map(
            lambda name: {"persistentVolumeClaim": {"claimName": name}}
        ),
        st.just({"ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": []}}}}),
        st.sampled_from(_DRIVERS).map(lambda driver: {"csi": {"driver": driver}}),
        st.builds(
            lambda disk, read_only: {"gcePersistentDisk": {"pdName": disk, "readOnly": read_only}},
            st.sampled_from(["disk-0", "disk-1"]),
            st.booleans(),
        ),
        st.sampled_from(["vol-0", "vol-1"]).map(
            lambda volume: {"awsElasticBlockStore": {"volumeID": volume}}
        ),
        st.builds(
            lambda iqn, read_only: {
                "iscsi": {
                    "targetPortal": "10.0.0.1:3260",
                    "iqn": iqn,
                    "lun": 0,
                    "readOnly": read_only,
                }
            },
            st.sampled_from(["iqn.2001-04.com.example:a", "iqn.2001-04.com.example:b"]),
            st.booleans(),
        ),
        st.builds(
            lambda image, read_only: {
                "rbd": {
                    "monitors": ["m1", "m2"],
                    "image": image,
                    "pool": "p",
                    "readOnly": read_only,
                }
            },
            st.sampled_from(["image-0", "image-1"]),
            st.booleans(),
        ),
        st.just({"emptyDir": {}}),
    ),
    min_size=1,
    max_size=2,
)


def _named(volumes: Sequence[Json]) -> list[Json]:
    names = ["scratch", "data"]
    return [{"name": name, **volume} for name, volume in zip(names, volumes, strict=False)]


@st.composite
def _waiting(draw: st.DrawFn) -> Json:
    """A pending pod; with gates, tolerations and volumes more often than in life."""
    pod = draw(pending_pods())
    pod["spec"].pop("nodeName", None)
    if draw(EVEN):
        pod["spec"]["affinity"] = draw(pod_affinities(pod["metadata"]["labels"]))
        if draw(EVEN):
            pod["spec"]["affinity"]["nodeAffinity"] = draw(node_affinities())
    if draw(SELDOM):
        pod["spec"]["schedulingGates"] = draw(_GATES)
    if draw(SELDOM):
        pod["spec"]["tolerations"] = draw(_TOLERATIONS)
    if draw(EVEN):
        pod["spec"]["volumes"] = _named(draw(_VOLUMES))
    return pod


@st.composite
def _claimants(draw: st.DrawFn) -> Json:
    """A pending pod of a namespace where there are claims."""
    pod = draw(plain_pods("asked"))
    pod["metadata"]["namespace"] = draw(st.sampled_from(_NAMESPACES))
    pod["spec"]["volumes"] = _named(draw(_VOLUMES))
    return pod


@st.composite
def _other(draw: st.DrawFn, *, plain: bool) -> Json:
    """A pod that has a node, or is nominated for one, or is nowhere."""
    pod = draw(placed_pods("other", "node-0", plain=plain))
    pod["status"]["phase"] = "Running"
    if draw(EVEN):
        pod["spec"]["affinity"] = draw(pod_affinities(pod["metadata"]["labels"]))
    if draw(EVEN):
        pod["spec"]["volumes"] = _named(draw(_VOLUMES))
    if draw(RARE):
        pod["spec"].pop("nodeName")
        if draw(EVEN):
            pod["status"]["nominatedNodeName"] = "node-0"
    return pod


def _like(pod: Json, other: Json, parts: Sequence[str]) -> Json:
    """Return a version of ``pod`` in which some parts are as in ``other``."""
    result = deepcopy(pod)
    for part in parts:
        if part == "labels":
            result["metadata"]["labels"] = other["metadata"]["labels"]
        elif part == "status":
            result["status"] = other["status"]
        elif part == "requests":
            for mine, his in zip(
                result["spec"]["containers"], other["spec"]["containers"], strict=False
            ):
                mine["resources"] = his["resources"]
        elif part == "all":
            result["spec"] = other["spec"]
        elif part in other["spec"]:
            result["spec"][part] = other["spec"][part]
        else:
            result["spec"].pop(part, None)
    return result


_OTHER_PARTS = st.lists(
    st.sampled_from(["labels", "labels", "requests", "requests", "tolerations", "status"]),
    max_size=3,
    unique=True,
)
_OWN_PARTS = st.lists(
    st.sampled_from(["labels", "requests", "tolerations", "schedulingGates", "status", "all"]),
    max_size=3,
    unique=True,
)


@st.composite
def _other_changes(draw: st.DrawFn) -> Json:
    plain = draw(EVEN)
    one, another = draw(_other(plain=plain)), draw(_other(plain=plain))
    how = draw(st.sampled_from(["add", "delete", "delete", "update", "update", "update"]))
    if how == "add":
        return {"old": None, "new": one}
    if how == "delete":
        return {"old": one, "new": None}
    one["spec"]["nodeName"] = another["spec"]["nodeName"] = "node-0"
    return {"old": one, "new": _like(one, another, draw(_OTHER_PARTS))}


@st.composite
def _own_changes(draw: st.DrawFn) -> Json:
    """A row by itself: what a pod's own update means to the pod."""
    one, another = draw(_waiting()), draw(_waiting())
    if draw(EVEN):
        spread = draw(spread_constraints(one["metadata"]["labels"]))
        one["spec"]["topologySpreadConstraints"] = [
            {**each, "nodeTaintsPolicy": "Honor"} for each in spread
        ]
        another["spec"]["tolerations"] = draw(_TOLERATIONS)
    new = _like(one, another, draw(_OWN_PARTS))
    return {"pod": new, "old": one, "new": new}


# --- nodes ------------------------------------------------------------------------------------

_CONDITIONS = st.lists(
    st.builds(
        lambda kind, status: {"type": kind, "status": status},
        st.sampled_from(["Ready", "MemoryPressure"]),
        st.sampled_from(["True", "False", "Unknown"]),
    ),
    max_size=2,
    unique_by=lambda condition: condition["type"],
)
_NODE_PARTS = st.lists(
    st.sampled_from(
        [
            "labels",
            "labels",
            "taints",
            "unschedulable",
            "allocatable",
            "declaredFeatures",
            "conditions",
        ]
    ),
    min_size=1,
    max_size=3,
    unique=True,
)
_OFTEN_CORDONED = chance(30)


@st.composite
def _a_node(draw: st.DrawFn) -> Json:
    node = draw(nodes("node-0", sound=draw(SELDOM)))
    if draw(_OFTEN_CORDONED):
        node["spec"]["unschedulable"] = True
    if draw(EVEN):
        node["status"]["conditions"] = draw(_CONDITIONS)
    return node


@st.composite
def _node_changes(draw: st.DrawFn) -> Json:
    one, another = draw(_a_node()), draw(_a_node())
    how = draw(st.sampled_from(["add", "delete", "update", "update", "update", "update"]))
    if how == "add":
        return {"old": None, "new": one}
    if how == "delete":
        return {"old": one, "new": None}
    new = deepcopy(one)
    for part in draw(_NODE_PARTS):
        holder = "metadata" if part == "labels" else "spec"
        if part in ("allocatable", "declaredFeatures", "conditions"):
            holder = "status"
        new[holder].pop(part, None)
        if part in another[holder]:
            new[holder][part] = another[holder][part]
    return {"old": one, "new": new}


# --- storage ----------------------------------------------------------------------------------


def _object(kind: str, name: str, version: str, *, namespace: str = "", **fields: object) -> Json:
    metadata: Json = {"name": name, "uid": f"uid-{kind}-{name}"}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


@st.composite
def _volumes(draw: st.DrawFn) -> Json:
    volume = _object(
        "PersistentVolume",
        "volume-0",
        "v1",
        spec={
            "capacity": {"storage": draw(st.sampled_from(["1Gi", "2Gi"]))},
            "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": draw(st.sampled_from(_DRIVERS)), "volumeHandle": "handle"},
        },
    )
    if draw(LIKELY):
        volume["metadata"]["labels"] = {
            key: draw(st.sampled_from(["a", "b", "a__b"])) for key in _ZONE_LABELS if draw(EVEN)
        }
    if draw(SELDOM):
        disk = {"pdName": "disk-0"}
        del volume["spec"]["csi"]
        volume["spec"]["gcePersistentDisk"] = disk
    return volume


@st.composite
def _claims(draw: st.DrawFn) -> Json:
    name, namespace = draw(st.sampled_from(_CLAIMS)), draw(st.sampled_from(_NAMESPACES))
    spec: Json = {"accessModes": ["ReadWriteOnce"]}
    if draw(EVEN):
        spec["volumeName"] = "volume-0"
    return _object("PersistentVolumeClaim", name, "v1", namespace=namespace, spec=spec)


@st.composite
def _classes(draw: st.DrawFn) -> Json:
    made = _object(
        "StorageClass", "fast", "storage.k8s.io/v1", provisioner=draw(st.sampled_from(_DRIVERS))
    )
    if draw(LIKELY):
        made["volumeBindingMode"] = draw(st.sampled_from(_MODES))
    if draw(EVEN):
        values = draw(st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=2, unique=True))
        term = {"matchLabelExpressions": [{"key": _ZONE_LABELS[0], "values": values}]}
        made["allowedTopologies"] = [term]
    return made


@st.composite
def _csi_nodes(draw: st.DrawFn) -> Json:
    drivers = []
    for name in draw(st.lists(st.sampled_from(_DRIVERS), max_size=2, unique=True)):
        driver: Json = {"name": name, "nodeID": "node-0"}
        if draw(LIKELY):
            driver["allocatable"] = draw(st.sampled_from([{}, {"count": 1}, {"count": 2}]))
        drivers.append(driver)
    made = _object("CSINode", "node-0", "storage.k8s.io/v1", spec={"drivers": drivers})
    if draw(EVEN):
        migrated = draw(st.sampled_from(["kubernetes.io/gce-pd", "kubernetes.io/aws-ebs"]))
        made["metadata"]["annotations"] = {_MIGRATED: migrated}
    return made


@st.composite
def _csi_drivers(draw: st.DrawFn) -> Json:
    spec = {"storageCapacity": draw(EVEN)} if draw(LIKELY) else {}
    return _object("CSIDriver", draw(st.sampled_from(_DRIVERS)), "storage.k8s.io/v1", spec=spec)


_AMOUNTS = st.sampled_from(["1Gi", "2Gi", "1024Mi", "1500M"])


@st.composite
def _capacities(draw: st.DrawFn) -> Json:
    made = _object(
        "CSIStorageCapacity",
        "capacity-0",
        "storage.k8s.io/v1",
        namespace="kube-system",
        storageClassName=draw(st.sampled_from(_CLASSES)),
    )
    for field in ("capacity", "maximumVolumeSize"):
        if draw(EVEN):
            made[field] = draw(_AMOUNTS)
    return made


@st.composite
def _attachments(draw: st.DrawFn) -> Json:
    spec = {
        "attacher": draw(st.sampled_from(_DRIVERS)),
        "nodeName": "node-0",
        "source": {"persistentVolumeName": "volume-0"},
    }
    return _object("VolumeAttachment", "attachment-0", "storage.k8s.io/v1", spec=spec)


@st.composite
def _storage_changes(draw: st.DrawFn) -> Json:
    kind = draw(st.sampled_from(_STORAGE_KINDS))
    one, another = draw(kind), draw(kind)
    another["metadata"] |= {key: one["metadata"][key] for key in ("name", "uid")}
    if "namespace" in one["metadata"]:
        another["metadata"]["namespace"] = one["metadata"]["namespace"]
    how = draw(st.sampled_from(["add", "delete", "update", "update"]))
    return {"old": None if how == "add" else one, "new": None if how == "delete" else another}


_STORAGE_KINDS = [
    _volumes(),
    _claims(),
    _classes(),
    _csi_nodes(),
    _csi_drivers(),
    _capacities(),
    _attachments(),
]

# --- rows -------------------------------------------------------------------------------------

_CHANGES = st.one_of(_node_changes(), _node_changes(), _other_changes(), _other_changes())


@st.composite
def rows(draw: st.DrawFn) -> list[Json]:
    """Some rows ``{"pod", "old", "new"}``: a few changes, each asked about by several pods."""
    pods = draw(st.lists(_waiting(), min_size=1, max_size=POD_CHANGES))
    changes = draw(st.lists(_CHANGES, min_size=1, max_size=POD_CHANGES))
    made = [{"pod": pod, **change} for change in changes for pod in pods]
    claimants = draw(st.lists(_claimants(), min_size=1, max_size=POD_CHANGES))
    changes = draw(st.lists(_storage_changes(), max_size=3))
    made += [{"pod": pod, **change} for change in changes for pod in claimants]
    return made + draw(st.lists(_own_changes(), max_size=3))
