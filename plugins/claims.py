"""The claims of a pod, the messages for missing claims, and the queueing hint for claims.

*Source*: k8s.io/apimachinery api/errors NewNotFound, with the resources that client-go's listers
name, and k8s.io/component-helpers storage/ephemeral (0.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plugins.framework.cluster_events import Hint
from plugins.framework.queueing_hints import for_pods_by

if TYPE_CHECKING:
    from collections.abc import Callable

    from cache.objects import Pod, Volume
    from cache.storage import ClaimKey
    from cache.storage_objects import PersistentVolumeClaim
    from plugins.framework.queueing_hints import GroupHint, Sample

WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"
"""The volumeBindingMode of a StorageClass whose claims are bound once their pod has a node."""


def claim_not_found(name: str) -> str:
    """Return the reason for a PersistentVolumeClaim."""
    return f'persistentvolumeclaim "{name}" not found'


def volume_not_found(name: str) -> str:
    """Return the reason for a PersistentVolume."""
    return f'persistentvolume "{name}" not found'


def storage_class_not_found(name: str) -> str:
    """Return the reason for a StorageClass."""
    return f'storageclass.storage.k8s.io "{name}" not found'


def claim_name(pod: Pod, volume: Volume) -> str | None:
    """Return the name of the claim behind a volume of a pod, or None if there is none."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return None if volume.ephemeral is None else f"{pod.metadata.name}-{volume.name}"


def claim_keys(pod: Pod) -> frozenset[ClaimKey]:
    """Return namespace and name of each claim of a pod, those of ephemeral volumes included."""
    names = (claim_name(pod, volume) for volume in pod.spec.volumes)
    return frozenset((pod.metadata.namespace, name) for name in names if name is not None)


def named_claim_keys(pod: Pod) -> frozenset[ClaimKey]:
    """Return namespace and name of each claim that a pod names itself."""
    return frozenset(
        (pod.metadata.namespace, volume.persistent_volume_claim.claim_name)
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim is not None
    )


def for_claims(keys: Callable[[Pod], frozenset[ClaimKey]]) -> GroupHint[Sample[Pod]]:
    """Return a hint for new or changed claims: Queue for pods whose ``keys`` contain the claim."""

    def hint(
        pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None
    ) -> Hint:
        if new is None:
            return Hint.QUEUE
        mine = (new.metadata.namespace, new.metadata.name) in keys(pod)
        return Hint.QUEUE if mine else Hint.SKIP

    return for_pods_by(
        keys,
        hint,
        lambda keys: keys,
        lambda old, new: None if new is None else {(new.metadata.namespace, new.metadata.name)},
    )
