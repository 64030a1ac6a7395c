"""Nodes as an API server has them."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.parity.vocabulary import (
    EFFECTS,
    EVEN,
    EXTENDED,
    FEATURES,
    HOSTNAME,
    HUGE_PAGES,
    IMAGE_BYTES,
    LIKELY,
    NODE_LABELS_STRATEGY,
    RARE,
    REGION,
    SELDOM,
    TAINT_KEYS,
    ZONE,
    Json,
    chance,
)

_TAINTS = st.lists(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(TAINT_KEYS),
            "value": st.sampled_from(["", "a", "b"]),
            "effect": st.sampled_from(EFFECTS),
        }
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda taint: (taint["key"], taint["effect"]),
)
_TAINTED = chance(15)
_IMAGES = st.lists(st.sampled_from(sorted(IMAGE_BYTES)), unique=True, max_size=4)
_FEATURES = st.lists(st.sampled_from(FEATURES), unique=True, max_size=3).map(sorted)
_CPU = st.sampled_from(["0", "500m", "2", "3900m", "8", "8", "16", "96"])
_MEMORY = st.sampled_from(["0", "512Mi", "4Gi", "15667Mi", "16Gi", "1Ti"])
_PODS = st.sampled_from([*["110"] * 9, "2", "1", "0"])
_STORAGE = st.sampled_from(["8Gi", "8Gi", "8Gi", "100Gi", "1Gi", "0"])
_EXTENDED = st.sampled_from(["1", "1", "1", "2", "0"])
_HUGE = st.sampled_from(["8Mi", "2Mi", "1Gi", "0"])
_ZONES = st.sampled_from(["zone-a", "zone-b", "zone-c"])
_REGIONS = st.sampled_from(["region-1", "region-2"])


_SOUND = {"cpu": "16", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}


@st.composite
def nodes(draw: st.DrawFn, name: str, *, sound: bool) -> Json:
    """A node of this name.

    A sound one has room for everything and at most a taint; any other may lack anything.
    """
    labels = {**draw(NODE_LABELS_STRATEGY)}
    if not draw(RARE):
        labels[HOSTNAME] = name
    if draw(LIKELY):
        labels[ZONE] = draw(_ZONES)
    if draw(SELDOM):
        labels[REGION] = draw(_REGIONS)
    spec: Json = {}
    if sound:
        if draw(RARE):
            spec["taints"] = draw(_TAINTS)
        return _node(name, labels, spec, {"allocatable": _SOUND, "capacity": _SOUND})
    if draw(RARE):
        spec["unschedulable"] = True
    if draw(_TAINTED):
        spec["taints"] = draw(_TAINTS)
    room: dict[str, str] = {}
    if not draw(RARE):
        room["pods"] = draw(_PODS)
    if not draw(RARE):
        room["cpu"] = draw(_CPU)
    if not draw(RARE):
        room["memory"] = draw(_MEMORY)
    if draw(EVEN):
        room["ephemeral-storage"] = draw(_STORAGE)
    for resource in EXTENDED:
        if draw(LIKELY):
            room[resource] = draw(_EXTENDED)
    if draw(EVEN):
        room[HUGE_PAGES] = draw(_HUGE)
    status: Json = {"capacity": room, "allocatable": room}
    if draw(EVEN):
        status["images"] = [
            {"names": [image], "sizeBytes": IMAGE_BYTES[image]} for image in draw(_IMAGES)
        ]
    if draw(SELDOM):
        status["declaredFeatures"] = draw(_FEATURES)
    return _node(name, labels, spec, status)


def _node(name: str, labels: dict[str, str], spec: Json, status: Json) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels},
        "spec": spec,
        "status": status,
    }
