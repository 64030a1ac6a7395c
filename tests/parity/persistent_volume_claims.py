"""Claims in every state."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.parity.storage_words import (
    ANY_CLASS,
    ATTRIBUTES_CLASS,
    BLOCK,
    DELETED,
    ONE_CLASS,
    VOLUME_LABELS,
)
from tests.parity.vocabulary import EVEN, NODE_NAMES, RARE, SELDOM, Json, chance, selectors

DYING = chance(3)
_MODES = st.sampled_from(
    [
        *[["ReadWriteOnce"]] * 6,
        ["ReadOnlyMany"],
        ["ReadWriteMany"],
        ["ReadWriteOnce", "ReadOnlyMany"],
    ]
)
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
_SELECTORS = selectors(VOLUME_LABELS)
_CLAIM_CLASS = st.sampled_from([*["manual"] * 3, *["fast"] * 4, "slow", "cloud", "cloud"])
_ONLY_POD = chance(15)
POD_ALONE = ["ReadWriteOncePod"]
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
        "accessModes": POD_ALONE if draw(_ONLY_POD) else draw(_MODES),
        "volumeMode": "Block" if draw(BLOCK) else "Filesystem",
        "resources": {"requests": {"storage": draw(_REQUESTS)}},
    }
    class_name = draw(_CLAIM_CLASS) if draw(_CLAIM_CLASS_IS_SOUND) else draw(ANY_CLASS)
    if class_name or draw(EVEN):
        spec["storageClassName"] = class_name
    if draw(RARE):
        annotations["volume.beta.kubernetes.io/storage-class"] = draw(ONE_CLASS)
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
    if draw(ATTRIBUTES_CLASS):
        spec["volumeAttributesClassName"] = "gold"
    if annotations:
        metadata["annotations"] = annotations
    if draw(DYING):
        metadata["deletionTimestamp"] = DELETED
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": spec,
        "status": {"phase": phase},
    }
