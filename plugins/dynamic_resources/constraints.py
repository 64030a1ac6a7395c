"""Constraints on the devices of a claim: an attribute is equal in all of them, or differs.

*Source*: k8s.io/dynamic-resource-allocation 0.36, structured/internal/incubating,
allocator_incubating.go (matchAttributeConstraint, lookupAttribute) and constraint.go
(distinctAttributeConstraint).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

if TYPE_CHECKING:
    from cache.device_objects import DeviceAttribute, DeviceConstraint
    from plugins.dynamic_resources.pooled_device import PooledDevice

AttributeKey: TypeAlias = "tuple[str, str | int | bool] | None"
"""Type and value; None for a value of a type that is not known."""

UNKNOWN: Final[AttributeKey] = ("", "")
"""Stands for such a value where None means that there is none."""


class Constraint(Protocol):
    """A constraint, with the devices that the search has taken so far."""

    def add(self, request: str, alternative: str, device: PooledDevice) -> bool:
        """Take a device for a request (or one of its alternatives), and return True if it may.

        A device that may not be taken is not remembered.
        """

    def remove(self, request: str, alternative: str, device: PooledDevice) -> None:
        """Undo one :meth:`add` that returned True, with the same arguments."""

    def admits(self, request: str, alternative: str, device: PooledDevice) -> bool:
        """Return whether :meth:`add` would return True."""

    def value_of(self, device: PooledDevice) -> AttributeKey:
        """Return what the constraint sees of a device; None where the attribute is missing."""


def constraint_of(constraint: DeviceConstraint) -> Constraint | None:
    """Return a constraint without devices, or None for one of an unknown kind."""
    if constraint.match_attribute is not None:
        return MatchAttribute(constraint.match_attribute, frozenset(constraint.requests))
    if constraint.distinct_attribute is not None:
        return DistinctAttribute(constraint.distinct_attribute, frozenset(constraint.requests))
    return None


class _OnAttribute(ABC):
    """A constraint that compares an attribute of each further device with those taken before.

    Parameters
    ----------
    attribute
        The name of the attribute with its domain.
    requests
        The requests, and alternatives as ``request/alternative``, that it is about; empty for all.
    """

    def __init__(self, attribute: str, requests: frozenset[str]) -> None:
        self._attribute = attribute
        self._domain, _, self._id = attribute.partition("/")
        self._requests = requests
        self._devices = 0

    def add(self, request: str, alternative: str, device: PooledDevice) -> bool:
        """Take a device; the first one only needs to have the attribute."""
        if not self.is_about(request, alternative):
            return True
        attribute = self._lookup(device)
        if attribute is None:
            return False
        value = attribute_key(attribute)
        if self._devices and not self._agrees(value):
            return False
        self._remember(request, value)
        self._devices += 1
        return True

    def remove(self, request: str, alternative: str, device: PooledDevice) -> None:
        """Undo one :meth:`add`."""
        if self.is_about(request, alternative):
            self._forget(request)
            self._devices -= 1

    def admits(self, request: str, alternative: str, device: PooledDevice) -> bool:
        """Return whether the device may be taken."""
        if not self.is_about(request, alternative):
            return True
        attribute = self._lookup(device)
        if attribute is None:
            return False
        return not self._devices or self._agrees(attribute_key(attribute))

    @property
    def has_devices(self) -> bool:
        """Whether a device is taken."""
        return self._devices > 0

    def value_of(self, device: PooledDevice) -> AttributeKey:
        """Return the value of the attribute; None where it is missing."""
        attribute = self._lookup(device)
        return None if attribute is None else attribute_key(attribute) or UNKNOWN

    @abstractmethod
    def _agrees(self, value: AttributeKey) -> bool:
        """Return whether a further device may have a value."""

    @abstractmethod
    def _remember(self, request: str, value: AttributeKey) -> None:
        """Store the value of a device that is taken."""

    @abstractmethod
    def _forget(self, request: str) -> None:
        """Forget the value of a device that is given back."""

    def is_about(self, request: str, alternative: str) -> bool:
        """Return whether the devices of a request (or one of its alternatives) are compared."""
        requests = self._requests
        return (
            not requests
            or request in requests
            or (bool(alternative) and f"{request}/{alternative}" in requests)
        )

    def _lookup(self, device: PooledDevice) -> DeviceAttribute | None:
        """Return the attribute of a device; without a domain it belongs to the driver."""
        attributes = device.device.attributes
        known = attributes.get(self._attribute)
        if known is None and self._id and self._domain == device.id.driver:
            return attributes.get(self._id)
        return known


class MatchAttribute(_OnAttribute):
    """All devices have the attribute, with the same type and value."""

    def __init__(self, attribute: str, requests: frozenset[str]) -> None:
        super().__init__(attribute, requests)
        self._value: AttributeKey = None

    def _agrees(self, value: AttributeKey) -> bool:
        return value is not None and value == self._value

    def _remember(self, request: str, value: AttributeKey) -> None:
        self._value = value

    def _forget(self, request: str) -> None:
        """Do nothing: the next first device sets the value anew."""


class DistinctAttribute(_OnAttribute):
    """All devices have the attribute, and the values differ.

    As in kube-scheduler one value is remembered for each request, not for each device: of three
    devices in one request the first and the third may have the same value. When a device is given
    back, the value of its request is forgotten, whichever device it came from. What the constraint
    admits therefore depends on what was tried before.
    """

    def __init__(self, attribute: str, requests: frozenset[str]) -> None:
        super().__init__(attribute, requests)
        self._values: dict[str, AttributeKey] = {}

    def _agrees(self, value: AttributeKey) -> bool:
        if value is None:
            return not self._values
        return value not in self._values.values()

    def _remember(self, request: str, value: AttributeKey) -> None:
        self._values[request] = value

    def _forget(self, request: str) -> None:
        self._values.pop(request, None)


def attribute_key(attribute: DeviceAttribute) -> AttributeKey:
    """Return a value by which attributes are compared; versions are compared as texts."""
    if attribute.string_value is not None:
        return "string", attribute.string_value
    if attribute.int_value is not None:
        return "int", attribute.int_value
    if attribute.bool_value is not None:
        return "bool", attribute.bool_value
    if attribute.version_value is not None:
        return "version", attribute.version_value
    return None
