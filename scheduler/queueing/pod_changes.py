"""Classify the update of a pending pod by the fields that matter for its next attempt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cache.resource_versions import INCOMPARABLE, parse_resource_version
from plugins.framework.cluster_events import Action

if TYPE_CHECKING:
    from cache.objects import Pod
    from cache.pod_info import PodInfo


def pod_changes(before: PodInfo, after: PodInfo) -> Action:
    """Return the changes; none for an update of the status alone, but for generated claims.

    ``UPDATE_OTHER`` stands for a change without a specific action; it only reaches plugins that
    register for every update.

    Notes
    -----
    *Source*: pkg/scheduler/framework/events.go, PodSchedulingPropertiesChange (1.36).

    # Differs: there, any update that changes nothing else is an event too, the one included by
    which the scheduler writes its own refusal into the pod's condition. A change of annotations
    counts if they are among those that are kept.
    """
    old, new = before.pod, after.pod
    action = Action(0)
    if old.metadata.labels != new.metadata.labels:
        action |= Action.UPDATE_POD_LABEL
    if before.requests != after.requests and any(
        after.requests.get(name, -1) < amount for name, amount in before.requests.items()
    ):
        action |= Action.UPDATE_POD_SCALE_DOWN
    if _generated_claims(old) != _generated_claims(new):
        action |= Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM
    if old.spec != new.spec:
        if old.spec.scheduling_gates and not new.spec.scheduling_gates:
            action |= Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
        if len(old.spec.tolerations) != len(new.spec.tolerations):
            action |= Action.UPDATE_POD_TOLERATION
        return action or Action.UPDATE_OTHER
    if not action and (
        old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
        or old.metadata.owner_references != new.metadata.owner_references
        or old.metadata.annotations != new.metadata.annotations
    ):
        return Action.UPDATE_OTHER
    return action


def _generated_claims(pod: Pod) -> tuple[object, object]:
    """Return the claims that were created for a pod."""
    return pod.status.resource_claim_statuses, pod.status.extended_resource_claim_status


def is_older(pod: Pod, than: Pod) -> bool:
    """Return whether a version of a pod is known to be older than another of the same pod."""
    version = parse_resource_version(pod.metadata.resource_version)
    return version != INCOMPARABLE and version < parse_resource_version(
        than.metadata.resource_version
    )


def is_same_version(one: Pod, other: Pod) -> bool:
    """Return whether two objects are known to be the same version of a pod."""
    version = one.metadata.resource_version
    return bool(version) and version == other.metadata.resource_version
