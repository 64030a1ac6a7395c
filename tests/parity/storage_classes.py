"""Classes, drivers and what they can hold, as an API server has them."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.parity.storage_words import (
    CSI_DRIVERS,
    IN_TREE_PLUGINS,
    ONE_CLASS,
    ONE_VOLUME,
    PROVISIONERS,
    SOME_NODES,
    SOME_ZONES,
    api_object,
)
from tests.parity.vocabulary import EVEN, HOSTNAME, LIKELY, NODE_NAMES, RARE, SELDOM, ZONE, Json

_ALLOWED = st.lists(
    st.one_of(
        SOME_ZONES.map(lambda values: {"key": ZONE, "values": values}),
        SOME_NODES.map(lambda values: {"key": HOSTNAME, "values": values}),
    ),
    min_size=1,
    max_size=2,
).map(lambda expressions: {"matchLabelExpressions": expressions})
_SOME_ALLOWED = st.lists(_ALLOWED, min_size=1, max_size=2)
_MODE = st.sampled_from(["WaitForFirstConsumer"] * 14 + ["Immediate"])


@st.composite
def storage_classes(draw: st.DrawFn, name: str) -> Json:
    """A class, mostly one whose claims wait for a pod."""
    made = api_object(
        "storage.k8s.io/v1",
        "StorageClass",
        name,
        provisioner=draw(st.sampled_from(PROVISIONERS[name])),
        reclaimPolicy="Delete",
        volumeBindingMode=draw(_MODE),
    )
    if draw(SELDOM):
        made["allowedTopologies"] = draw(_SOME_ALLOWED)
    return made


DRIVER_SPECS = st.fixed_dictionaries(
    {}, optional={"storageCapacity": st.sampled_from([True, True, True, False])}
)
_TOPOLOGIES = st.one_of(
    SOME_ZONES.map(
        lambda values: {"matchExpressions": [{"key": ZONE, "operator": "In", "values": values}]}
    ),
    st.sampled_from(NODE_NAMES[:6]).map(lambda name: {"matchLabels": {HOSTNAME: name}}),
    st.just({}),
)
_SPACES = st.sampled_from(["0", "1Gi", "4Gi", "10Gi", "1Ti"])


@st.composite
def storage_capacities(draw: st.DrawFn, name: str) -> Json:
    """How much room a class has somewhere."""
    made = api_object(
        "storage.k8s.io/v1", "CSIStorageCapacity", name, storageClassName=draw(ONE_CLASS)
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
    st.just(IN_TREE_PLUGINS), st.lists(st.sampled_from(IN_TREE_PLUGINS), unique=True)
)


@st.composite
def csi_nodes(draw: st.DrawFn, name: str) -> Json:
    """What a node's drivers can hold, and which in-tree plugins they stand in for."""
    drivers = []
    for driver in draw(_SOME_DRIVERS):
        entry: Json = {"name": driver, "nodeID": name, "topologyKeys": None}
        if draw(LIKELY):
            entry["allocatable"] = {"count": draw(_LIMITS)} if draw(LIKELY) else {}
        drivers.append(entry)
    made = api_object("storage.k8s.io/v1", "CSINode", name, spec={"drivers": drivers})
    if draw(EVEN):
        key = "storage.alpha.kubernetes.io/migrated-plugins"
        made["metadata"]["annotations"] = {key: ",".join(draw(_MIGRATED))}
    return made


@st.composite
def volume_attachments(draw: st.DrawFn, name: str) -> Json:
    """A volume that is attached to a node, whether or not either exists."""
    source = {"persistentVolumeName": draw(ONE_VOLUME)} if not draw(RARE) else {}
    return api_object(
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
