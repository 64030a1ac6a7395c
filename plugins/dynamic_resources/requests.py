"""The requests of a pod's claims, checked as far as no node is needed for it.

*Source*: k8s.io/dynamic-resource-allocation 0.36, structured/internal/incubating,
allocator_incubating.go (Allocate, validateDeviceRequest).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from cache.value import Value
from plugins.dynamic_resources.selector_cache import SelectorList

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from cache.device_objects import (
        DeviceClass,
        DeviceRequest,
        DeviceSubRequest,
        DeviceTaint,
        ExactDeviceRequest,
        ResourceClaim,
    )
    from cache.objects import Quantity, Toleration
    from plugins.dynamic_resources.pooled_device import PooledDevice
    from plugins.dynamic_resources.selector_cache import SelectorCache

ALL: Final = "All"
EXACT_COUNT: Final = "ExactCount"

_NOTHING: Final[Mapping[str, Quantity]] = {}


class Request(Value, frozen=True, eq=False):
    """A request, or one alternative of a prioritized list.

    Attributes
    ----------
    claim
        The index of its claim.
    name
        The name of the request.
    alternative
        The name of the alternative; empty for a request without alternatives.
    error
        Why it cannot be satisfied on any node; None when it may.
    is_all
        Whether it is for all devices that match.
    count
        The number of devices; 0 where it is for all.
    is_admin
        Whether devices in use are fine.
    device_class
        Its class; None where ``error`` says why.
    class_selectors, selectors
        Those of the class and its own.
    tolerations
        The taints of devices that it tolerates.
    capacity
        The amounts of capacities that it asks for.
    """

    claim: int
    name: str
    alternative: str = ""
    error: str | None = None
    is_all: bool = False
    count: int = 0
    is_admin: bool = False
    device_class: DeviceClass | None = None
    class_selectors: SelectorList | None = None
    selectors: SelectorList | None = None
    tolerations: tuple[Toleration, ...] = ()
    capacity: Mapping[str, Quantity] = msgspec.field(default_factory=dict)

    @property
    def result_name(self) -> str:
        """How results name it."""
        return f"{self.name}/{self.alternative}" if self.alternative else self.name

    def matches(self, device: PooledDevice) -> bool:
        """Return whether the selectors match a device.

        Raises
        ------
        AllocationError
            When a selector cannot be compiled or fails.
        """
        return (self.class_selectors is None or self.class_selectors.matches(device)) and (
            self.selectors is None or self.selectors.matches(device)
        )

    def matching(self, devices: Sequence[PooledDevice]) -> Sequence[PooledDevice]:
        """Return the devices that the selectors match.

        Raises
        ------
        AllocationError
            When a selector cannot be compiled or fails on one of them.
        """
        if self.class_selectors is not None:
            devices = self.class_selectors.matching(devices)
        return devices if self.selectors is None else self.selectors.matching(devices)

    def tolerates(self, device: PooledDevice) -> bool:
        """Return whether no taint of a device prevents the allocation."""
        return not any(self.untolerated(device))

    def untolerated(self, device: PooledDevice) -> Iterator[DeviceTaint]:
        """Yield the taints of a device that prevent the allocation."""
        for taint in device.taints:
            if not any(tolerates(toleration, taint) for toleration in self.tolerations):
                yield taint


class PrioritizedList(Value, frozen=True, eq=False):
    """A request with alternatives, of which the first is taken that can be satisfied."""

    name: str
    alternatives: tuple[Request, ...]


class ClaimRequests(Value, frozen=True, eq=False):
    """The requests of one claim.

    Attributes
    ----------
    claim
        The claim.
    text
        How error texts name it.
    requests
        In the order of the claim.
    """

    claim: ResourceClaim
    text: str
    requests: tuple[Request | PrioritizedList, ...]


def claim_text(claim: ResourceClaim) -> str:
    """Return how error texts name a claim."""
    metadata = claim.metadata
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name


class RequestReader:
    """Reads the requests of claims.

    Parameters
    ----------
    classes
        Returns a class by name.
    selectors
        Compiles selectors.
    """

    def __init__(
        self, classes: Callable[[str], DeviceClass | None], selectors: SelectorCache
    ) -> None:
        self._classes = classes
        self._selectors = selectors

    def read(self, index: int, claim: ResourceClaim) -> ClaimRequests:
        """Return the requests of a claim, the ``index``-th of the pod's.

        *Cost*: proportional to the requests and their selectors.
        """
        text = claim_text(claim)
        requests: list[Request | PrioritizedList] = []
        for request in claim.spec.devices.requests:
            if request.first_available:
                alternatives = tuple(
                    self._alternative(index, text, request, each)
                    for each in request.first_available
                )
                requests.append(PrioritizedList(request.name, alternatives))
            else:
                requests.append(self._exactly(index, text, request))
        return ClaimRequests(claim, text, tuple(requests))

    def _exactly(self, index: int, text: str, request: DeviceRequest) -> Request:
        wanted = request.exactly
        if wanted is None:
            error = f"claim {text}, request {request.name}: {_NO_CLASS}"
            return Request(index, request.name, error=error)
        return self._request(index, text, (request.name, ""), wanted, bool(wanted.admin_access))

    def _alternative(
        self, index: int, text: str, request: DeviceRequest, wanted: DeviceSubRequest
    ) -> Request:
        return self._request(index, text, (request.name, wanted.name), wanted, False)

    def _request(
        self,
        index: int,
        text: str,
        names: tuple[str, str],
        wanted: ExactDeviceRequest | DeviceSubRequest,
        is_admin: bool,
    ) -> Request:
        name, alternative = names
        where = f"claim {text}, request {alternative or name}"
        device_class = self._classes(wanted.device_class_name)
        error = _error(where, wanted, device_class)
        if error is not None or device_class is None:
            return Request(index, name, alternative, error=error)
        of_class = device_class.spec.selectors
        class_owner = f"class {device_class.metadata.name}"
        is_all = wanted.allocation_mode == ALL
        return Request(
            claim=index,
            name=name,
            alternative=alternative,
            is_all=is_all,
            count=0 if is_all else wanted.count,
            is_admin=is_admin,
            device_class=device_class,
            class_selectors=SelectorList(of_class, class_owner, self._selectors)
            if of_class
            else None,
            selectors=SelectorList(wanted.selectors, f"claim {text}", self._selectors)
            if wanted.selectors
            else None,
            tolerations=wanted.tolerations,
            capacity=_NOTHING if wanted.capacity is None else wanted.capacity.requests,
        )


_NO_CLASS: Final = "missing device class name (unsupported request type?)"


def _error(
    where: str,
    wanted: ExactDeviceRequest | DeviceSubRequest,
    device_class: DeviceClass | None,
) -> str | None:
    for index, selector in enumerate(wanted.selectors):
        if selector.cel is None:
            return f"{where}, selector #{index}: {_NO_CEL}"
    name = wanted.device_class_name
    if not name:
        return f"{where}: {_NO_CLASS}"
    if device_class is None:
        missing = f'deviceclass.resource.k8s.io "{name}" not found'
        return f"{where}: could not retrieve device class {name}: {missing}"
    if wanted.allocation_mode not in (ALL, EXACT_COUNT):
        return f"{where}: unsupported count mode {wanted.allocation_mode}"
    return None


_NO_CEL: Final = "CEL expression empty (unsupported selector type?)"


def tolerates(toleration: Toleration, taint: DeviceTaint) -> bool:
    """Return whether a toleration tolerates a taint of a device.

    *Source*: k8s.io/dynamic-resource-allocation 0.36, resourceclaim/devicetoleration.go.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"
