"""Look up the claims of a pod, and say why one of them cannot be used.

*Source*: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go,
foreachPodResourceClaim (1.36); k8s.io/dynamic-resource-allocation resourceclaim/resourceclaim.go,
Name, IsForPod and IsReservedForPod (0.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from cache.device_objects import ResourceClaim
    from cache.objects import Pod, PodResourceClaim

    FindClaim: TypeAlias = Callable[[str, str], ResourceClaim | None]

FINALIZER: Final = "resource.kubernetes.io/delete-protection"
"""The finalizer of every claim that is allocated."""


class ClaimsNotReadyError(Exception):
    """A claim of a pod cannot be used now; the message is kube-scheduler's reason."""


def claims_of_pod(pod: Pod, find: FindClaim) -> tuple[ResourceClaim, ...]:
    """Return the claims of a pod in the order of its spec.

    An entry for which no claim is needed is left out.

    Parameters
    ----------
    find
        Returns the claim with a namespace and a name, or None.

    Raises
    ------
    ClaimsNotReadyError
        For the first entry whose claim cannot be used.
    """
    found = []
    for entry in pod.spec.resource_claims:
        claim = _claim_of(pod, entry, find)
        if claim is not None:
            found.append(claim)
    return tuple(found)


def _claim_of(pod: Pod, entry: PodResourceClaim, find: FindClaim) -> ResourceClaim | None:
    namespace = pod.metadata.namespace
    name = entry.resource_claim_name
    if name is None:
        name = _generated_name(pod, entry)
        if name is None:
            return None
    claim = find(namespace, name)
    if claim is None:
        raise ClaimsNotReadyError(f'could not find ResourceClaim "{namespace}/{name}"')
    if claim.metadata.deletion_timestamp is not None:
        raise ClaimsNotReadyError(f'resourceclaim "{name}" is being deleted')
    if entry.resource_claim_name is None and not is_controlled_by(claim, pod):
        raise ClaimsNotReadyError(
            f"ResourceClaim {namespace}/{name} was not created for Pod "
            f"{namespace}/{pod.metadata.name} (Pod is not owner)"
        )
    return claim


def _generated_name(pod: Pod, entry: PodResourceClaim) -> str | None:
    """Return the name of the claim that was created from a template; None if none is needed."""
    key = f'"{pod.metadata.namespace}/{pod.metadata.name}"'
    if entry.resource_claim_template_name is None:
        why = "none of the supported fields are set"
        raise ClaimsNotReadyError(f'pod {key}, spec.resourceClaim "{entry.name}": {why}')
    for status in pod.status.resource_claim_statuses:
        if status.name == entry.name:
            return status.resource_claim_name
    raise ClaimsNotReadyError(f"pod {key}: ResourceClaim not created yet")


def is_controlled_by(claim: ResourceClaim, pod: Pod) -> bool:
    """Return whether a pod is the controller owner of a claim."""
    for owner in claim.metadata.owner_references:
        if owner.controller:
            return owner.uid == pod.metadata.uid
    return False


def is_reserved_for(claim: ResourceClaim, pod_uid: str) -> bool:
    """Return whether a claim is reserved for the pod with a UID."""
    return any(consumer.uid == pod_uid for consumer in claim.status.reserved_for)


def key_of(claim: ResourceClaim) -> str:
    """Return ``namespace/name``, as messages name a claim."""
    return f"{claim.metadata.namespace}/{claim.metadata.name}"
