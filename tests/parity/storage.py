"""Everything about storage in one cluster.

No two volumes have the same size and none are kept for the same claim: kube-scheduler takes the
first of such equals in the order of a map. What can be used by one pod alone is used by one, as
berth counts its users and kube-scheduler counts it once.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from tests.parity.persistent_volume_claims import DYING, POD_ALONE, claims
from tests.parity.persistent_volumes import persistent_volumes
from tests.parity.storage_classes import (
    DRIVER_SPECS,
    csi_nodes,
    storage_capacities,
    storage_classes,
    volume_attachments,
)
from tests.parity.storage_words import CLAIM_NAMES, CLASSES, CSI_DRIVERS, VOLUME_NAMES, api_object
from tests.parity.vocabulary import LIKELY, RARE, SELDOM, Json

if TYPE_CHECKING:
    from collections.abc import Iterable

_SIZES = ["1Gi", "2Gi", "3Gi", "5Gi", "8Gi", "20Gi", "100Gi"]
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
    objects = [draw(storage_classes(name)) for name in CLASSES if not draw(RARE)]
    for driver in CSI_DRIVERS[:2]:
        if draw(LIKELY):
            spec = draw(DRIVER_SPECS)
            objects.append(api_object("storage.k8s.io/v1", "CSIDriver", driver, spec=spec))
    objects += [draw(storage_capacities(f"capacity-{index}")) for index in range(draw(_FEW))]
    objects += [draw(csi_nodes(name)) for name in node_names if draw(LIKELY)]
    objects += [draw(volume_attachments(f"attachment-{index}")) for index in range(draw(_FEW))]
    offset, step = draw(_OFFSETS), draw(_STEPS)
    kept_for: set[str] = set()
    volume_names = VOLUME_NAMES[: draw(_NUMBERS_OF_VOLUMES)]
    for index, name in enumerate(volume_names):
        reserved = draw(_KEPT_FOR) if draw(SELDOM) else None
        if reserved in kept_for:
            reserved = None
        elif reserved is not None:
            kept_for.add(reserved)
        size = _SIZES[(offset + step * index) % len(_SIZES)]
        objects.append(draw(persistent_volumes(name, size, reserved)))
    volume = st.sampled_from([*volume_names * 5, "pv-gone"])
    shared = _shared(pods)
    for name in CLAIM_NAMES:
        if not draw(DYING):
            claim = draw(claims(name, volume))
            if name in shared and claim["spec"]["accessModes"] == POD_ALONE:
                claim["spec"]["accessModes"] = ["ReadWriteOnce"]
            objects.append(claim)
    for name in ("asked", *(pod["metadata"]["name"] for pod in pods)):
        if draw(LIKELY):
            foreign = name == "asked" and draw(RARE)
            owner = "uid-of-another" if foreign else f"uid-{name}"
            objects.append(draw(claims(f"{name}-{_EPHEMERAL}", volume, owner)))
    return objects
