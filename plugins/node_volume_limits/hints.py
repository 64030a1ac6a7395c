"""Queueing hints of NodeVolumeLimits: changes that may help a pod that it rejected.

*Source*: pkg/scheduler/framework/plugins/nodevolumelimits/csi.go, isSchedulableAfter... (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cache.csi_translation import MIGRATED, inline_handle, inline_plugin
from cache.resources import MalformedObjectError
from plugins.framework.cluster_events import Hint
from plugins.framework.queueing_hints import for_everybody, for_pods_by
from plugins.node_volume_limits.counted_volumes import may_count

if TYPE_CHECKING:
    from cache.objects import Pod, Volume
    from cache.storage_objects import CSINode, VolumeAttachment


def _csi_node_holds_more(old: CSINode | None, new: CSINode | None) -> bool:
    """Return the hint for a changed CSINode: Queue if the limit of a driver has grown.

    A driver without a limit counts as limit 0, as in kube-scheduler.
    """
    if old is None or new is None:
        return True
    before, after = _counts(old), _counts(new)
    return any(count > before.get(driver, 0) for driver, count in after.items())


def _pod_with_volumes_left(old: Pod | None, new: Pod | None) -> bool:
    """Return the hint for a deleted pod: Queue if it had volumes on a node."""
    if old is None:
        return True
    return bool(old.spec.node_name or old.status.nominated_node_name) and may_count(old)


def _after_attachment_deleted(
    pod: Pod, old: VolumeAttachment | None, new: VolumeAttachment | None
) -> Hint:
    """Return the hint for a detached volume: any for a pod with a claim, else its own driver's."""
    if old is None:
        return Hint.QUEUE
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            return Hint.QUEUE
        plugin = inline_plugin(volume)
        if plugin is not None and (plugin.driver == old.spec.attacher or not _makes_sense(volume)):
            return Hint.QUEUE
    return Hint.SKIP


def _attachable(pod: Pod) -> tuple[bool, tuple[Volume, ...]]:
    """Return the part of a pod that :func:`_after_attachment_deleted` reads."""
    with_claim = any(volume.persistent_volume_claim is not None for volume in pod.spec.volumes)
    inline = (volume for volume in pod.spec.volumes if inline_plugin(volume) is not None)
    return with_claim, () if with_claim else tuple(inline)


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


AFTER_CSI_NODE_UPDATED: Final = for_everybody(_csi_node_holds_more)
AFTER_POD_DELETED: Final = for_everybody(_pod_with_volumes_left)
AFTER_ATTACHMENT_DELETED: Final = for_pods_by(_attachable, _after_attachment_deleted)
