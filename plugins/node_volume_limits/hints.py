"""Which changes may help a pod that NodeVolumeLimits rejected.

Source: pkg/scheduler/framework/plugins/nodevolumelimits/csi.go, isSchedulableAfter... (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cache.csi_translation import MIGRATED, inline_handle, inline_plugin
from cache.resources import MalformedObjectError
from plugins.framework.cluster_events import Hint
from plugins.node_volume_limits.counted_volumes import claim_name, may_count

if TYPE_CHECKING:
    from cache.objects import Pod, Volume
    from cache.storage_objects import CSINode, PersistentVolumeClaim, VolumeAttachment


def after_csi_node_updated(pod: Pod, old: CSINode | None, new: CSINode | None) -> Hint:
    """Answer for a CSINode that changed: only if a driver holds more now.

    A driver without a limit counts as one that holds nothing, as kube-scheduler has it.
    """
    if old is None or new is None:
        return Hint.QUEUE
    before, after = _counts(old), _counts(new)
    more = any(count > before.get(driver, 0) for driver, count in after.items())
    return Hint.QUEUE if more else Hint.SKIP


def after_pod_deleted(pod: Pod, old: Pod | None, new: Pod | None) -> Hint:
    """Answer for a pod that is gone: only if it had volumes on a node."""
    if old is None:
        return Hint.QUEUE
    placed = old.spec.node_name or old.status.nominated_node_name
    return Hint.QUEUE if placed and may_count(old) else Hint.SKIP


def after_claim_added(
    pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None
) -> Hint:
    """Answer for a new claim: only one that the pod waits for."""
    if new is None:
        return Hint.QUEUE
    mine = new.metadata.namespace == pod.metadata.namespace and any(
        claim_name(pod, volume) == new.metadata.name for volume in pod.spec.volumes
    )
    return Hint.QUEUE if mine else Hint.SKIP


def after_attachment_deleted(
    pod: Pod, old: VolumeAttachment | None, new: VolumeAttachment | None
) -> Hint:
    """Answer for a volume that was detached: any for a pod with a claim, else its own driver's."""
    if old is None:
        return Hint.QUEUE
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            return Hint.QUEUE
        plugin = inline_plugin(volume)
        if plugin is not None and (plugin.driver == old.spec.attacher or not _makes_sense(volume)):
            return Hint.QUEUE
    return Hint.SKIP


def _makes_sense(volume: Volume) -> bool:
    if inline_plugin(volume) in MIGRATED:
        try:
            inline_handle(volume)
        except MalformedObjectError:
            return False
    return True


def _counts(csi_node: CSINode) -> dict[str, int]:
    return {
        driver.name: (driver.allocatable.count or 0) if driver.allocatable is not None else 0
        for driver in csi_node.spec.drivers
    }
