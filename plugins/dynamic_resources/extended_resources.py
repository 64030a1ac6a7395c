"""The special claim: the devices that stand for extended resources of a pod.

A DeviceClass may provide an extended resource. A pod that asks for it gets one claim of its own
for all such resources, with a request for each container and resource. Which of the resources are
devices differs between nodes: where a device plugin reports the resource, it is an ordinary one.

*Source*: pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from cache.device_objects import (
    ClaimMeta,
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from cache.objects import ContainerExtendedResourceRequest, OwnerReference
from cache.quantity import QuantityError, exact_value
from cache.resources import is_restartable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cache.objects import Container, Pod

SPECIAL_NAME: Final = "<extended-resources>"
"""The name of a special claim that is not in the API yet; no claim there can have it."""

ANNOTATION: Final = "resource.kubernetes.io/extended-resource-claim"

EXACT_COUNT: Final = "ExactCount"


class DeviceRequests(NamedTuple):
    """The requests of a special claim, and the container and resource that each is for."""

    requests: tuple[DeviceRequest, ...]
    mappings: tuple[ContainerExtendedResourceRequest, ...]


def new_special_claim(pod: Pod, uid: str) -> ResourceClaim:
    """Return the special claim of a pod, without requests, under a UID that is not the API's."""
    metadata = pod.metadata
    owner = OwnerReference("v1", "Pod", metadata.name, metadata.uid, controller=True)
    return ResourceClaim(
        metadata=ClaimMeta(
            name=SPECIAL_NAME,
            namespace=metadata.namespace,
            uid=uid,
            generate_name=f"{metadata.name}-extended-resources-",
            owner_references=(owner,),
            annotations={ANNOTATION: "true"},
        )
    )


def is_in_memory(claim: ResourceClaim) -> bool:
    """Return whether a special claim is not in the API yet."""
    return claim.metadata.name == SPECIAL_NAME


def is_special(claim: ResourceClaim) -> bool:
    """Return whether a claim was made for the extended resources of a pod."""
    return claim.metadata.annotations.get(ANNOTATION) == "true"


def find_special_claim(pod: Pod, claims: Iterable[ResourceClaim]) -> ResourceClaim | None:
    """Return the special claim that an earlier attempt left, or None."""
    for claim in claims:
        if is_special(claim) and any(
            owner.controller and (owner.name, owner.uid) == (pod.metadata.name, pod.metadata.uid)
            for owner in claim.metadata.owner_references
        ):
            return claim
    return None


def with_requests(claim: ResourceClaim, wanted: DeviceRequests) -> ResourceClaim:
    """Return the special claim with the requests for one kind of node."""
    return replace(claim, spec=ResourceClaimSpec(DeviceClaim(wanted.requests)))


def device_requests(pod: Pod, class_names: Mapping[str, str]) -> DeviceRequests:
    """Return the requests for the extended resources that are devices.

    Parameters
    ----------
    class_names
        The DeviceClass of each of these resources.
    """
    requests: list[DeviceRequest] = []
    mappings: list[ContainerExtendedResourceRequest] = []
    for resource in sorted(class_names):
        of_resource = _ResourceRequests(pod, resource, class_names[resource])
        requests += of_resource.requests
        mappings += of_resource.mappings
    requests.sort(key=lambda request: request.name)
    return DeviceRequests(tuple(requests), tuple(mappings))


class _ResourceRequests:
    """The requests of all containers for one resource.

    Containers and sidecars run at one time, so their requests add up. An ordinary init container
    ends before those that come after it start: it reuses their devices, and of the devices that
    init containers need besides only the largest request stays.
    """

    def __init__(self, pod: Pod, resource: str, class_name: str) -> None:
        self._resource = resource
        self._class_name = class_name
        containers = (*pod.spec.init_containers, *pod.spec.containers)
        init = len(pod.spec.init_containers)
        short = [i for i in range(init) if not is_restartable(containers[i])]
        long_lived: dict[int, DeviceRequest] = {}
        self.mappings: list[ContainerExtendedResourceRequest] = []
        for index in sorted(set(range(len(containers))) - set(short)):
            request, names = self._of(index, containers[index], ())
            self._map(containers[index], names)
            if request is not None:
                long_lived[index] = request
        largest = self._short_lived(containers, short, long_lived)
        self.requests = [*(() if largest is None else (largest,)), *long_lived.values()]

    def _short_lived(
        self,
        containers: Sequence[Container],
        indices: Iterable[int],
        long_lived: Mapping[int, DeviceRequest],
    ) -> DeviceRequest | None:
        """Map ordinary init containers, and return the largest request that they need besides."""
        largest: DeviceRequest | None = None
        own_names: set[str] = set()
        found: list[tuple[Container, list[str]]] = []
        for index in indices:
            later = [request for at, request in long_lived.items() if at > index]
            request, names = self._of(index, containers[index], later)
            found.append((containers[index], names))
            if request is not None:
                own_names.add(request.name)
                if largest is None or _count(largest) < _count(request):
                    largest = request
        for container, names in found:
            shown = (
                names
                if largest is None
                else [largest.name if name in own_names else name for name in names]
            )
            self._map(container, shown)
        return largest

    def _of(
        self, index: int, container: Container, reusable: Iterable[DeviceRequest]
    ) -> tuple[DeviceRequest | None, list[str]]:
        """Return what a container needs beyond requests that it reuses, and all names it uses."""
        wanted = _whole(container, self._resource)
        names: list[str] = []
        if not wanted:
            return None, names
        for request in reusable:
            wanted -= _count(request)
            names.append(request.name)
            if wanted <= 0:
                return None, names
        place = sorted(container.resources.requests).index(self._resource)
        name = f"container-{index}-request-{place}"
        names.append(name)
        exactly = ExactDeviceRequest(
            device_class_name=self._class_name, allocation_mode=EXACT_COUNT, count=wanted
        )
        return DeviceRequest(name, exactly), names

    def _map(self, container: Container, names: Iterable[str]) -> None:
        self.mappings += (
            ContainerExtendedResourceRequest(container.name, self._resource, name) for name in names
        )


def _count(request: DeviceRequest) -> int:
    return 0 if request.exactly is None else request.exactly.count


def _whole(container: Container, resource: str) -> int:
    """Return how many of a resource a container asks for; 0 for an amount that is not whole."""
    quantity = container.resources.requests.get(resource)
    if quantity is None:
        return 0
    try:
        amount = exact_value(quantity)
    except QuantityError:
        return 0
    return amount if isinstance(amount, int) else 0
