"""Finds the volumes of a pod that count against the limits of CSI drivers.

A claim counts as the volume that it is bound to or, while it is not bound, as the volume that its
class will provision. In-tree volumes count as volumes of the CSI driver that serves them today.

*Source*: pkg/scheduler/framework/plugins/nodevolumelimits/csi.go, filterAttachableVolumes and what
it calls (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from cache.csi_translation import (
    IN_TREE_PLUGINS,
    MIGRATED,
    csi_source,
    in_tree_plugin,
    inline_handle,
    inline_plugin,
)
from cache.resources import MalformedObjectError
from cache.storage import claim_class
from plugins.claims import claim_name, claim_not_found
from plugins.framework.status import Code, Status, unresolvable

if TYPE_CHECKING:
    from collections.abc import Hashable

    from cache.objects import Pod, Volume
    from cache.storage import Storage
    from cache.storage_objects import CSINode, PersistentVolumeClaim

VolumeKey: TypeAlias = "tuple[str, ...]"
"""The identity of a volume. First comes the driver; then its name for the volume or, while there
is no volume, the namespace and the name of the claim."""

Counted: TypeAlias = "frozenset[VolumeKey] | Status"
"""The volumes of a pod, or the status when they cannot be found."""

NONE: frozenset[VolumeKey] = frozenset()


def class_key(name: str) -> Hashable:
    """Return the key of a storage class among the keys that volumes are computed from."""
    return (name,)


def may_count(pod: Pod) -> bool:
    """Return whether any volume of a pod can count."""
    return any(
        volume.persistent_volume_claim is not None
        or volume.ephemeral is not None
        or inline_plugin(volume) is not None
        for volume in pod.spec.volumes
    )


def volumes_of_new_pod(storage: Storage, pod: Pod, *, on_csi_node: bool) -> Counted:
    """Return the volumes of a pod to be placed; a missing claim rejects it.

    ``on_csi_node`` says whether the node has a CSINode: without one, in-tree volumes do not
    count.
    """
    return _volumes(storage, pod, None, on_csi_node=on_csi_node, is_new=True)


def volumes_of_running_pod(storage: Storage, pod: Pod, read: set[Hashable]) -> Counted:
    """Return the volumes of a pod on a node with a CSINode; a missing claim has none.

    The keys of the claims and the classes and the names of the volumes that this depends on are
    added to ``read``, whether they exist or not.
    """
    return _volumes(storage, pod, read, on_csi_node=True, is_new=False)


def attached_volumes(storage: Storage, node_name: str, read: set[Hashable]) -> frozenset[VolumeKey]:
    """Return the volumes that are attached to a node or are being attached.

    The names of the volumes that this depends on are added to ``read``.
    """
    found = set()
    for attachment in storage.attachments(node_name):
        name = attachment.spec.source.persistent_volume_name
        if attachment.spec.attacher and name is not None:
            read.add(name)
            volume = storage.volume(name)
            if volume is not None and volume.spec.csi is not None:
                found.add((attachment.spec.attacher, volume.spec.csi.volume_handle))
    return frozenset(found)


def volume_limits(csi_node: CSINode | None) -> dict[str, int]:
    """Return the limit of each driver that has a limit on a node."""
    if csi_node is None:
        return {}
    return {
        driver.name: driver.allocatable.count
        for driver in csi_node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


def _volumes(
    storage: Storage, pod: Pod, read: set[Hashable] | None, *, on_csi_node: bool, is_new: bool
) -> Counted:
    found: set[VolumeKey] = set()
    namespace = pod.metadata.namespace
    for volume in pod.spec.volumes:
        name = claim_name(pod, volume)
        if name is None:
            if on_csi_node:
                error = _add_inline(found, volume)
                if error is not None:
                    return error
            continue
        if not name:
            return _error("PersistentVolumeClaim had no name")
        if read is not None:
            read.add((namespace, name))
        claim = storage.claim(namespace, name)
        if claim is None:
            if is_new:
                return unresolvable(f"looking up PVC {namespace}/{name}: {claim_not_found(name)}")
            continue
        if volume.ephemeral is not None and not _is_controlled_by(claim, pod):
            return _error(
                f"PVC {namespace}/{name} was not created for pod "
                f"{namespace}/{pod.metadata.name} (pod is not owner)"
            )
        key = _volume_of_claim(storage, claim, read, on_csi_node=on_csi_node)
        if key is not None:
            found.add(key)
    return frozenset(found) if found else NONE


def _add_inline(found: set[VolumeKey], volume: Volume) -> Status | None:
    plugin = inline_plugin(volume)
    if plugin in MIGRATED and plugin is not None:
        try:
            found.add((plugin.driver, inline_handle(volume)))
        except MalformedObjectError as error:
            return _error(f"converting volume({volume.name}) from inline to csi: {error}")
    return None


def _volume_of_claim(
    storage: Storage,
    claim: PersistentVolumeClaim,
    read: set[Hashable] | None,
    *,
    on_csi_node: bool,
) -> VolumeKey | None:
    name = claim.spec.volume_name
    if name:
        if read is not None:
            read.add(name)
        volume = storage.volume(name)
        if volume is not None:
            plugin = in_tree_plugin(volume)
            if plugin is not None and not (on_csi_node and plugin in MIGRATED):
                return None
            try:
                source = csi_source(volume)
            except MalformedObjectError:
                return None
            if source is None or not source.driver or not source.volume_handle:
                return None
            return source.driver, source.volume_handle
    # No volume yet, or a missing one: it counts for the driver that will provision it.
    class_name = claim_class(claim)
    if read is not None:
        read.add(class_key(class_name))
    storage_class = storage.classes.get(class_name)
    if storage_class is None:
        return None
    driver = storage_class.provisioner
    replaced = IN_TREE_PLUGINS.get(driver)
    if replaced is not None:
        if not (on_csi_node and replaced in MIGRATED):
            return None
        driver = replaced.driver
    return (driver, claim.metadata.namespace, claim.metadata.name) if driver else None


def _is_controlled_by(claim: PersistentVolumeClaim, pod: Pod) -> bool:
    owner = next((each for each in claim.metadata.owner_references if each.controller), None)
    return owner is not None and owner.uid == pod.metadata.uid


def _error(why: str) -> Status:
    return Status(Code.ERROR, (why,))
