"""Queueing hints of VolumeBinding: changes that may help a pod that it rejected.

*Source*: pkg/scheduler/framework/plugins/volumebinding/volume_binding.go, EventsToRegister and the
hint functions (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cache.csi_translation import MIGRATED_PLUGINS
from cache.quantity import quantity_value
from plugins.claims import claim_keys, for_claims
from plugins.framework.cluster_events import Action, EventRegistration, Hint, Resource
from plugins.framework.queueing_hints import for_everybody, for_pods_by
from plugins.volume_binding.provisioning import volume_limit

if TYPE_CHECKING:
    from cache.objects import Pod
    from cache.storage_objects import (
        CSIDriver,
        CSINode,
        CSIStorageCapacity,
        StorageClass,
    )

_ADD_OR_UPDATE: Final = Action.ADD | Action.UPDATE


def _inline_drivers(pod: Pod) -> frozenset[str]:
    return frozenset(volume.csi.driver for volume in pod.spec.volumes if volume.csi is not None)


def _after_storage_class_change(old: StorageClass | None, new: StorageClass | None) -> bool:
    """Return whether the class is new or provisions volumes in other topologies."""
    return old is None or new is None or old.allowed_topologies != new.allowed_topologies


def _after_csi_node_change(old: CSINode | None, new: CSINode | None) -> bool:
    """Return whether the set of in-tree volumes that drivers serve on the node has changed."""
    if old is None or new is None:
        return True
    before = old.metadata.annotations.get(MIGRATED_PLUGINS, "")
    return before != new.metadata.annotations.get(MIGRATED_PLUGINS, "")


def _after_csi_driver_change(pod: Pod, old: CSIDriver | None, new: CSIDriver | None) -> Hint:
    """Return whether a driver of the pod's inline volumes stopped publishing its capacity."""
    if old is None or new is None:
        return Hint.QUEUE
    stopped = old.spec.storage_capacity and not new.spec.storage_capacity
    mine = stopped and new.metadata.name in _inline_drivers(pod)
    return Hint.QUEUE if mine else Hint.SKIP


def _after_capacity_change(old: CSIStorageCapacity | None, new: CSIStorageCapacity | None) -> bool:
    """Return whether there is more capacity than before."""
    if old is None or new is None:
        return True
    before, now = volume_limit(old), volume_limit(new)
    return now is not None and (before is None or quantity_value(now) > quantity_value(before))


AFTER_CLAIM_CHANGE: Final = for_claims(claim_keys)
AFTER_CSI_DRIVER_CHANGE: Final = for_pods_by(_inline_drivers, _after_csi_driver_change)
AFTER_STORAGE_CLASS_CHANGE: Final = for_everybody(_after_storage_class_change)
AFTER_CSI_NODE_CHANGE: Final = for_everybody(_after_csi_node_change)
AFTER_CAPACITY_CHANGE: Final = for_everybody(_after_capacity_change)


REGISTRATIONS: Final = (
    EventRegistration.on(Resource.STORAGE_CLASS, _ADD_OR_UPDATE, AFTER_STORAGE_CLASS_CHANGE),
    EventRegistration.on(Resource.PERSISTENT_VOLUME_CLAIM, _ADD_OR_UPDATE, AFTER_CLAIM_CHANGE),
    EventRegistration.on(Resource.PERSISTENT_VOLUME, _ADD_OR_UPDATE),
    EventRegistration.on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
    EventRegistration.on(Resource.CSI_NODE, _ADD_OR_UPDATE, AFTER_CSI_NODE_CHANGE),
    EventRegistration.on(Resource.CSI_DRIVER, Action.UPDATE, AFTER_CSI_DRIVER_CHANGE),
    EventRegistration.on(Resource.CSI_STORAGE_CAPACITY, _ADD_OR_UPDATE, AFTER_CAPACITY_CHANGE),
)
"""The events, with their hints."""
