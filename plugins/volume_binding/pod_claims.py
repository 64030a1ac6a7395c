"""The claims of a pod, and whether the pod can be scheduled with them at all.

*Source*: pkg/scheduler/framework/plugins/volumebinding/volume_binding.go (podHasPVCs) and binder.go
(GetPodVolumeClaims); k8s.io/component-helpers storage/ephemeral and storage/volume (0.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cache.storage import claim_class
from cache.value import Value
from plugins.claims import WAIT_FOR_FIRST_CONSUMER, claim_keys, claim_name

if TYPE_CHECKING:
    from cache.objects import Pod
    from cache.storage import Storage
    from cache.storage_objects import PersistentVolumeClaim

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
"""The annotation of a claim that is completely bound; its value has no meaning."""


class ClaimsNotReadyError(Exception):
    """The pod cannot be scheduled before one of its claims changes; the message says which."""


class PodClaims(Value, frozen=True):
    """The claims of a pod by what has to be done for them, each in the order of the volumes.

    Attributes
    ----------
    bound
        Claims that have their volume.
    immediate
        Claims that the volume controller should have bound already.
    delayed
        Claims that are bound once the pod has a node.
    """

    bound: tuple[PersistentVolumeClaim, ...]
    immediate: tuple[PersistentVolumeClaim, ...]
    delayed: tuple[PersistentVolumeClaim, ...]


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Return whether a claim has its volume and each refers to the other."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def has_claims(pod: Pod, storage: Storage) -> bool:
    """Return whether a pod has claims, and check that all of them exist and can be used.

    Raises
    ------
    ClaimsNotReadyError
        When a claim is missing, has lost its volume, is being deleted or, for an ephemeral
        volume, belongs to another owner.
    """
    found = False
    namespace = pod.metadata.namespace
    for volume in pod.spec.volumes:
        name = claim_name(pod, volume)
        if name is None:
            continue
        found = True
        is_ephemeral = volume.persistent_volume_claim is None
        claim = storage.claim(namespace, name)
        if claim is None:
            if is_ephemeral:
                raise ClaimsNotReadyError(
                    "waiting for ephemeral volume controller to create the persistentvolumeclaim "
                    f'"{name}"'
                )
            raise ClaimsNotReadyError(f'persistentvolumeclaim "{name}" not found')
        if claim.status.phase == "Lost":
            raise ClaimsNotReadyError(
                f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume '
                f'"{claim.spec.volume_name}"'
            )
        if claim.metadata.deletion_timestamp is not None:
            raise ClaimsNotReadyError(f'persistentvolumeclaim "{name}" is being deleted')
        if is_ephemeral:
            _check_owner(pod, claim)
    return found


def pod_claims(pod: Pod, storage: Storage) -> PodClaims:
    """Return the claims of a pod, with assumed changes.

    Raises
    ------
    ClaimsNotReadyError, ValueError
        When a claim was deleted since :func:`has_claims`, or a class is malformed.
    """
    bound, immediate, delayed = [], [], []
    namespace = pod.metadata.namespace
    for volume in pod.spec.volumes:
        name = claim_name(pod, volume)
        if name is None:
            continue
        claim = storage.claims.get((namespace, name))
        if claim is None:
            key = f"{namespace}/{name}"
            raise ValueError(f'error getting PVC "{key}": persistentvolumeclaims "{key}" not found')
        if volume.persistent_volume_claim is None:
            _check_owner(pod, claim)
        if is_fully_bound(claim):
            bound.append(claim)
        elif _waits_for_consumer(claim, storage) and not claim.spec.volume_name:
            delayed.append(claim)
        else:
            immediate.append(claim)
    return PodClaims(tuple(bound), tuple(immediate), tuple(delayed))


def all_bound(pod: Pod, storage: Storage) -> bool:
    """Return whether every claim of a pod has its volume."""
    claims = map(storage.claims.get, claim_keys(pod))
    return all(claim is not None and is_fully_bound(claim) for claim in claims)


def _waits_for_consumer(claim: PersistentVolumeClaim, storage: Storage) -> bool:
    class_name = claim_class(claim)
    storage_class = storage.classes.get(class_name) if class_name else None
    if storage_class is None:
        return False
    mode = storage_class.volume_binding_mode
    if mode is None:
        raise ValueError(f'VolumeBindingMode not set for StorageClass "{class_name}"')
    return mode == WAIT_FOR_FIRST_CONSUMER


def _check_owner(pod: Pod, claim: PersistentVolumeClaim) -> None:
    owned = any(
        owner.controller and owner.uid == pod.metadata.uid
        for owner in claim.metadata.owner_references
    )
    if not owned:
        of_claim, of_pod = claim.metadata, pod.metadata
        raise ClaimsNotReadyError(
            f"PVC {of_claim.namespace}/{of_claim.name} was not created for pod "
            f"{of_pod.namespace}/{of_pod.name} (pod is not owner)"
        )
