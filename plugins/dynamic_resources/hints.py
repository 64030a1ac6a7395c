"""Queueing hints of DynamicResources: changes that may help a pod that it rejected.

*Source*: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, EventsToRegister,
isSchedulableAfterClaimChange and isSchedulableAfterPodChange (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plugins.dynamic_resources.claims_of_pod import ClaimsNotReadyError, claims_of_pod
from plugins.dynamic_resources.extended_resources import is_special
from plugins.framework.cluster_events import Action, EventRegistration, Resource
from plugins.framework.queueing_hints import (
    ITSELF,
    NO,
    GroupHint,
    Likeness,
    Question,
    for_the_pod_itself,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cache.device_objects import ResourceClaim
    from cache.objects import Pod
    from cache.pod_info import PodInfo
    from plugins.dynamic_resources.claims_of_pod import FindClaim

_ADD_OR_UPDATE: Final = Action.ADD | Action.UPDATE


def claim_keys(pod: Pod) -> list[tuple[str, str]]:
    """Return namespace and name of the claims that a pod names, and of those generated for it."""
    namespace = pod.metadata.namespace
    generated = (each.resource_claim_name for each in pod.status.resource_claim_statuses)
    named = (each.resource_claim_name for each in pod.spec.resource_claims)
    return [(namespace, name) for name in (*named, *generated) if name is not None]


class ClaimHints:
    """The hints of the plugin.

    Parameters
    ----------
    find
        Returns the function that looks up a claim: the newest version, with what was written and
        the watch has not brought yet. Called with each event.
    """

    def __init__(self, find: Callable[[], FindClaim]) -> None:
        self._find = find
        self._pods: Likeness[PodInfo] = Likeness(
            lambda info: info, lambda info: claim_keys(info.pod)
        )

    def registrations(self) -> Sequence[EventRegistration]:
        """Return the events: changes of nodes, claims, classes, slices and generated claims.

        A deleted claim matters only to the pod whose special claim it was: others were deallocated
        before. A pool that a deleted slice repairs wakes nobody, as in kube-scheduler.

        # Differs: in kube-scheduler a pod whose special claim is deleted waits for another event.
        """
        nodes = Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE
        return (
            EventRegistration.on(Resource.NODE, nodes),
            EventRegistration.on(
                Resource.RESOURCE_CLAIM, _ADD_OR_UPDATE, GroupHint(self._pods, self._about_claim)
            ),
            EventRegistration.on(
                Resource.POD,
                Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM,
                for_the_pod_itself(lambda pod, old, new: self._usable(new) is not None),
            ),
            EventRegistration.on(
                Resource.RESOURCE_CLAIM,
                Action.DELETE,
                GroupHint(ITSELF, _about_deleted_claim, is_addition=True),
            ),
            EventRegistration.on(Resource.DEVICE_CLASS, _ADD_OR_UPDATE),
            EventRegistration.on(Resource.RESOURCE_SLICE, _ADD_OR_UPDATE),
        )

    def _usable(self, pod: Pod) -> tuple[ResourceClaim, ...] | None:
        """Return the claims of a pod, or None if one of them cannot be used."""
        try:
            return claims_of_pod(pod, self._find())
        except ClaimsNotReadyError:
            return None

    def _about_claim(
        self, old: ResourceClaim | None, new: ResourceClaim | None
    ) -> Question[PodInfo]:
        """Return the question that a changed claim asks of the waiting pods.

        A claim that was deallocated frees devices for every pod; any other change matters only to
        the pods that use the claim.
        """
        if new is None:
            return NO
        if old is not None and (
            old.status.allocation is not None and new.status.allocation is None
        ):
            return Question(lambda info: self._usable(info.pod) is not None)
        if old is not None and old.status == new.status:
            return NO
        uid = new.metadata.uid

        def uses_it(info: PodInfo) -> bool:
            claims = self._usable(info.pod)
            return claims is not None and any(each.metadata.uid == uid for each in claims)

        return Question(uses_it, ((new.metadata.namespace, new.metadata.name),))


def _about_deleted_claim(old: ResourceClaim | None, new: ResourceClaim | None) -> Question[PodInfo]:
    """Return the question whether a waiting pod had the special claim that was deleted."""
    if old is None or new is not None or not is_special(old):
        return NO
    owners = {owner.uid for owner in old.metadata.owner_references}
    return Question(lambda info: info.uid in owners, owners)
