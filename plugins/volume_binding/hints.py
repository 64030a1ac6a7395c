"""Which changes may make a pod schedulable that VolumeBinding rejected.

Source: pkg/scheduler/framework/plugins/volumebinding/volume_binding.go, EventsToRegister and the
hint functions (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cache.csi_translation import MIGRATED_PLUGINS
from cache.quantity import quantity_value
from plugins.framework.cluster_events import (
    Action,
    ClusterEvent,
    EventRegistration,
    Hint,
    Resource,
)
from plugins.volume_binding.pod_claims import claim_name
from plugins.volume_binding.provisioning import volume_limit

if TYPE_CHECKING:
    from cache.objects import Pod
    from cache.storage_objects import (
        CSIDriver,
        CSINode,
        CSIStorageCapacity,
        PersistentVolumeClaim,
        StorageClass,
    )

_ADD_OR_UPDATE: Final = Action.ADD | Action.UPDATE


def after_claim_change(
    pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None
) -> Hint:
    """Tell whether it is a claim of the pod."""
    if new is None or new.metadata.namespace != pod.metadata.namespace:
        return Hint.SKIP
    name = new.metadata.name
    mine = any(claim_name(pod, volume) == name for volume in pod.spec.volumes)
    return Hint.QUEUE if mine else Hint.SKIP


def after_storage_class_change(
    pod: Pod, old: StorageClass | None, new: StorageClass | None
) -> Hint:
    """Tell whether the class is new or makes volumes elsewhere."""
    if old is None or new is None or old.allowed_topologies != new.allowed_topologies:
        return Hint.QUEUE
    return Hint.SKIP


def after_csi_node_change(pod: Pod, old: CSINode | None, new: CSINode | None) -> Hint:
    """Tell whether other in-tree volumes are served by drivers on the node."""
    if old is None or new is None:
        return Hint.QUEUE
    before = old.metadata.annotations.get(MIGRATED_PLUGINS, "")
    now = new.metadata.annotations.get(MIGRATED_PLUGINS, "")
    return Hint.SKIP if before == now else Hint.QUEUE


def after_csi_driver_change(pod: Pod, old: CSIDriver | None, new: CSIDriver | None) -> Hint:
    """Tell whether a driver of the pod's inline volumes stopped to tell what room it has."""
    if old is None or new is None:
        return Hint.QUEUE
    stopped = old.spec.storage_capacity and not new.spec.storage_capacity
    mine = any(
        volume.csi is not None and volume.csi.driver == new.metadata.name
        for volume in pod.spec.volumes
    )
    return Hint.QUEUE if stopped and mine else Hint.SKIP


def after_capacity_change(
    pod: Pod, old: CSIStorageCapacity | None, new: CSIStorageCapacity | None
) -> Hint:
    """Tell whether there is more room than before."""
    if old is None or new is None:
        return Hint.QUEUE
    before, now = volume_limit(old), volume_limit(new)
    if now is not None and (before is None or quantity_value(now) > quantity_value(before)):
        return Hint.QUEUE
    return Hint.SKIP


REGISTRATIONS: Final = (
    EventRegistration(
        ClusterEvent(Resource.STORAGE_CLASS, _ADD_OR_UPDATE), after_storage_class_change
    ),
    EventRegistration(
        ClusterEvent(Resource.PERSISTENT_VOLUME_CLAIM, _ADD_OR_UPDATE), after_claim_change
    ),
    EventRegistration(ClusterEvent(Resource.PERSISTENT_VOLUME, _ADD_OR_UPDATE)),
    EventRegistration(ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)),
    EventRegistration(ClusterEvent(Resource.CSI_NODE, _ADD_OR_UPDATE), after_csi_node_change),
    EventRegistration(ClusterEvent(Resource.CSI_DRIVER, Action.UPDATE), after_csi_driver_change),
    EventRegistration(
        ClusterEvent(Resource.CSI_STORAGE_CAPACITY, _ADD_OR_UPDATE), after_capacity_change
    ),
)
"""The events, with their hints."""
