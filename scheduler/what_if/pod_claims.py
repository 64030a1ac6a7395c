"""The claims that come and go with a pod: volumes and devices that controllers create for it.

In a cluster, controllers create the claims of ephemeral volumes and of claim templates after the
pod, and delete them with it. A what-if does the same at once.

*Source*: pkg/controller/volume/ephemeral and pkg/controller/resourceclaim (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from cache.device_objects import ClaimMeta, ResourceClaim, ResourceClaimStatus
from cache.objects import ObjectMeta, OwnerReference, PodResourceClaimStatus
from cache.storage_objects import PersistentVolumeClaim, PersistentVolumeClaimStatus

if TYPE_CHECKING:
    from cache.device_objects import ResourceClaimSpec
    from cache.objects import Pod
    from scheduler.offline.cluster import Cluster


class PodClaims:
    """Creates and deletes the claims of pods.

    Parameters
    ----------
    cluster
        Where they are stored.
    templates
        The specifications of ResourceClaimTemplates by namespace and name, as far as they are
        known.
    """

    def __init__(
        self, cluster: Cluster, templates: dict[tuple[str, str], ResourceClaimSpec]
    ) -> None:
        self._cluster = cluster
        self._storage = cluster.known.storage
        self._devices = cluster.known.devices.claims
        self._templates = templates
        self._is_searched = False

    def delete(self, pod: Pod) -> None:
        """Delete what a pod owns, and end its use of what it shares."""
        namespace, uid = pod.metadata.namespace, pod.metadata.uid
        for volume in pod.spec.volumes:
            if volume.ephemeral is not None:
                name = f"{pod.metadata.name}-{volume.name}"
                owned = self._storage.claim(namespace, name)
                if owned is not None and _is_owned(owned.metadata, uid):
                    self._storage.claims.changed(owned, None)
        if pod.spec.resource_claims or pod.status.extended_resource_claim_status is not None:
            self._learn_templates(pod)
            for claim in self._devices.by_owner(uid):
                self._devices.changed(claim, None)
            for use in pod.spec.resource_claims:
                if use.resource_claim_name:
                    self._release(namespace, use.resource_claim_name, uid)

    def create(self, pod: Pod) -> Pod:
        """Create the claims of a new pod; return the pod with a status that names them."""
        metadata = pod.metadata
        owner = OwnerReference("v1", "Pod", metadata.name, metadata.uid, controller=True)
        for volume in pod.spec.volumes:
            template = None if volume.ephemeral is None else volume.ephemeral.volume_claim_template
            if template is not None:
                name = f"{metadata.name}-{volume.name}"
                made = ObjectMeta(
                    name=name,
                    uid=f"{metadata.uid}/{volume.name}",
                    namespace=metadata.namespace,
                    owner_references=(owner,),
                )
                status = PersistentVolumeClaimStatus("Pending")
                self._storage.claims.changed(
                    None, PersistentVolumeClaim(made, template.spec, status)
                )
        statuses = []
        for use in pod.spec.resource_claims:
            if use.resource_claim_template_name:
                claim_name = self._create_claim(pod, use.name, use.resource_claim_template_name)
                if claim_name:
                    statuses.append(PodResourceClaimStatus(use.name, claim_name))
        if not statuses:
            return pod
        return replace(pod, status=replace(pod.status, resource_claim_statuses=tuple(statuses)))

    def _create_claim(self, pod: Pod, use: str, template: str) -> str:
        """Create a claim from a template; return its name, empty if nobody knows the template."""
        metadata = pod.metadata
        key = metadata.namespace, template
        if key not in self._templates and not self._is_searched:
            self._is_searched = True
            for known in list(self._cluster.pods.values()):
                self._learn_templates(known)
        spec = self._templates.get(key)
        if spec is None:
            return ""
        name = f"{metadata.name}-{use}"
        made = ClaimMeta(
            name=name,
            uid=f"{metadata.uid}/{use}",
            namespace=metadata.namespace,
            owner_references=(
                OwnerReference("v1", "Pod", metadata.name, metadata.uid, controller=True),
            ),
        )
        self._devices.changed(None, ResourceClaim(made, spec, ResourceClaimStatus()), restored=True)
        return name

    def _learn_templates(self, pod: Pod) -> None:
        """Remember what the templates of a running pod say: its claims repeat it."""
        names = {use.name: use.resource_claim_template_name for use in pod.spec.resource_claims}
        for status in pod.status.resource_claim_statuses:
            template = names.get(status.name)
            if template and status.resource_claim_name:
                namespace = pod.metadata.namespace
                claim = self._devices.get(namespace, status.resource_claim_name)
                if claim is not None:
                    self._templates.setdefault((namespace, template), claim.spec)

    def _release(self, namespace: str, name: str, uid: str) -> None:
        claim = self._devices.get(namespace, name)
        if claim is None:
            return
        users = tuple(user for user in claim.status.reserved_for if user.uid != uid)
        if len(users) == len(claim.status.reserved_for):
            return
        allocation = claim.status.allocation if users else None
        status = replace(claim.status, reserved_for=users, allocation=allocation)
        self._devices.changed(claim, replace(claim, status=status), restored=True)


def _is_owned(metadata: ObjectMeta, uid: str) -> bool:
    return any(owner.uid == uid for owner in metadata.owner_references)
