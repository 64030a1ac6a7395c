"""A device as expressions see it: built once, evaluated often.

*Source*: k8s.io/dynamic-resource-allocation cel/compile.go, ``DeviceMatches`` (0.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from plugins.cel import quantity, semver
from plugins.cel.errors import CelError, EvaluationError
from plugins.cel.values import DomainMap, Map, Value

if TYPE_CHECKING:
    from collections.abc import Mapping


class AttributeLike(Protocol):
    """The value of an attribute: exactly one of the fields is set."""

    @property
    def int_value(self) -> int | None:
        """The number."""

    @property
    def bool_value(self) -> bool | None:
        """The truth value."""

    @property
    def string_value(self) -> str | None:
        """The text."""

    @property
    def version_value(self) -> str | None:
        """The semantic version."""


class DeviceView:
    """What a selector can look at: driver, attributes, capacity, and whether it is shared.

    Two views of equal content are equal and have the same hash, so that equal devices can share
    one, and what is known about it.

    Parameters
    ----------
    driver : str
        Name of the driver, and the domain of names that have none.
    attributes : mapping of qualified name to attribute
    capacity : mapping of qualified name to the text of a quantity
    allow_multiple_allocations : bool or None
        None counts as false.

    *Concurrency*: immutable, but for what is computed with the first evaluation: of many equal
    devices only one is evaluated.
    """

    __slots__ = ("_attributes", "_capacity", "_hash", "_key", "_value")

    def __init__(
        self,
        driver: str,
        attributes: Mapping[str, AttributeLike],
        capacity: Mapping[str, str | int | float],
        allow_multiple_allocations: bool | None = None,
    ) -> None:
        shared = bool(allow_multiple_allocations)
        self._key = (
            driver,
            shared,
            frozenset((name, _content(each)) for name, each in attributes.items()),
            frozenset((name, str(amount)) for name, amount in capacity.items()),
        )
        self._hash = hash(self._key)
        self._attributes, self._capacity = attributes, capacity
        self._value: Map | str | None = None

    def checked(self) -> Map:
        """Return the value of the variable ``device``.

        Raises
        ------
        EvaluationError
            An attribute or a capacity has no value.
        """
        if self._value is None:
            self._value = self._build()
        if isinstance(self._value, str):
            raise EvaluationError(self._value)
        return self._value

    def _build(self) -> Map | str:
        """Return the value, or the text of the error."""
        driver, shared = self._key[:2]
        attributes, capacity = self._attributes, self._capacity
        try:
            return Map(
                {
                    "driver": driver,
                    "allowMultipleAllocations": shared,
                    "attributes": _by_domain(
                        driver, {name: _value(name, each) for name, each in attributes.items()}
                    ),
                    "capacity": _by_domain(
                        driver, {name: _amount(name, each) for name, each in capacity.items()}
                    ),
                }
            )
        except CelError as fault:
            return str(fault)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceView) and self._key == other._key

    def __hash__(self) -> int:
        return self._hash


def is_version(text: str) -> bool:
    """Return whether an attribute can be a semantic version."""
    try:
        semver.parsed(text)
    except CelError:
        return False
    return True


def is_amount(text: str) -> bool:
    """Return whether a capacity can be a quantity."""
    try:
        quantity.parsed(text)
    except CelError:
        return False
    return True


def _content(attribute: AttributeLike) -> tuple[Value, ...]:
    """Return what tells attributes apart: 1 and true are different values."""
    flag = attribute.bool_value
    return (
        attribute.int_value,
        None if flag is None else str(flag),
        attribute.string_value,
        attribute.version_value,
    )


def _value(name: str, attribute: AttributeLike) -> Value:
    if attribute.int_value is not None:
        return attribute.int_value
    if attribute.bool_value is not None:
        return attribute.bool_value
    if attribute.string_value is not None:
        return attribute.string_value
    if attribute.version_value is not None:
        try:
            return semver.parsed(attribute.version_value)
        except CelError as fault:
            raise CelError(f"attribute {name}: parse semantic version: {fault}") from None
    raise CelError(f"attribute {name}: unsupported attribute value")


def _amount(name: str, text: str | int | float) -> Value:
    # Differs: kube-scheduler's decoder refuses such a slice; here only its device cannot be used.
    try:
        return quantity.parsed(str(text))
    except CelError as fault:
        raise CelError(f"capacity {name}: {fault}") from None


def _by_domain(driver: str, values: Mapping[str, Value]) -> DomainMap:
    domains: dict[str, Map] = {}
    for name, value in values.items():
        domain, slash, rest = name.partition("/")
        if not slash:
            domain, rest = driver, name
        domains.setdefault(domain, Map({})).entries[rest] = value
    return DomainMap(dict(domains))
