"""What enough random changes must have reached: both answers of every hint that has two."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

ROWS_FOR_ENOUGH = 20_000

_POD_GOES = "AssignedPodDelete"
_OWN = "UnschedulablePodUpdate"
_STORAGE = "storage.k8s.io/"

_TWO_ANSWERS = (
    ("AssignedPodAdd", "InterPodAffinity", "PodTopologySpread"),
    (
        _POD_GOES,
        "InterPodAffinity",
        "InterPodAffinity besides",
        "NodePorts",
        "NodeResourcesFit",
        "NodeVolumeLimits",
        "PodTopologySpread",
        "VolumeRestrictions",
    ),
    ("AssignedPodUpdatePodLabel", "InterPodAffinity", "PodTopologySpread"),
    ("AssignedPodUpdatePodScaleDown", "NodeResourcesFit"),
    (
        "NodeAdd",
        "InterPodAffinity",
        "NodeAffinity",
        "NodeResourcesFit",
        "NodeUnschedulable",
        "PodTopologySpread",
        "TaintToleration",
    ),
    ("NodeDelete", "PodTopologySpread"),
    ("NodeUpdateNodeAllocatable", "NodeResourcesFit"),
    ("NodeUpdateNodeLabel", "InterPodAffinity", "NodeAffinity", "PodTopologySpread"),
    ("NodeUpdateNodeTaint", "NodeUnschedulable", "PodTopologySpread", "TaintToleration"),
    (f"{_OWN}PodLabel", "PodTopologySpread"),
    (f"{_OWN}PodToleration", "NodeUnschedulable", "PodTopologySpread"),
    (f"{_OWN}PodScaleDown", "NodeDeclaredFeatures"),
    (
        "PersistentVolumeClaimAdd",
        "NodeVolumeLimits",
        "VolumeBinding",
        "VolumeRestrictions",
        "VolumeZone",
    ),
    ("PersistentVolumeClaimUpdate", "VolumeBinding", "VolumeZone"),
    ("PersistentVolumeUpdate", "VolumeZone"),
    (f"{_STORAGE}CSIDriverUpdate", "VolumeBinding"),
    (f"{_STORAGE}CSINodeUpdate", "NodeVolumeLimits", "VolumeBinding"),
    (f"{_STORAGE}CSIStorageCapacityUpdate", "VolumeBinding"),
    (f"{_STORAGE}StorageClassAdd", "VolumeZone"),
    (f"{_STORAGE}StorageClassUpdate", "VolumeBinding"),
    (f"{_STORAGE}VolumeAttachmentDelete", "NodeVolumeLimits"),
)

_ONE_ANSWER = (
    f"{_OWN}PodSchedulingGatesEliminated SchedulingGates True",
    f"{_OWN}PodToleration TaintToleration True",
    f"{_OWN}PodScaleDown NodeResourcesFit True",
    "NodeUpdateNodeDeclaredFeature NodeDeclaredFeatures True",
    "NodeUpdateNodeTaint NodeResourcesFit True",
    "AssignedPodDelete DefaultPreemption False",
)

REQUIRED = (
    *(
        f"{label} {plugin} {wakes}"
        for label, *plugins in _TWO_ANSWERS
        for plugin in plugins
        for wakes in (True, False)
    ),
    *_ONE_ANSWER,
)


def not_reached(counts: Mapping[str, int]) -> list[str]:
    """Return what was never reached and should have been."""
    return [branch for branch in REQUIRED if not counts.get(branch)]
