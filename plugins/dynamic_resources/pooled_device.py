"""A device of a slice, with what the search derives from it once."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, TypeVar

from cache.ages import AGES
from cache.device_objects import BLOCKING_EFFECTS, DeviceId
from cache.quantity import exact_value
from plugins.cel import DeviceView, is_amount, is_version
from plugins.dynamic_resources.node_rules import device_rule

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping
    from fractions import Fraction

    from cache.device_objects import (
        Device,
        DeviceAttribute,
        DeviceCounterConsumption,
        DeviceTaint,
        ResourceSlice,
    )
    from plugins.dynamic_resources.node_rules import NodeRule

_V = TypeVar("_V")

CounterKey: TypeAlias = "tuple[str, str]"
"""Counter set and counter."""


class PooledDevice:
    """A device of a slice.

    Attributes
    ----------
    id
        Its identity in the cluster.
    device, slice
        As the API has them.
    is_shared
        Whether several requests and claims can have a share of it.
    has_policies
        Whether a capacity can be consumed in certain amounts only.
    is_well_formed
        Whether all attributes and capacities have values, so that selectors can look at them.
    taints
        Those that prevent an allocation unless they are tolerated.
    node_rule
        The nodes that can reach it; None where the slice decides.

    Notes
    -----
    *Concurrency*: confined to one thread; nothing changes but what is computed when it is needed.
    """

    __slots__ = (
        "_consumption",
        "_look",
        "_view",
        "device",
        "has_policies",
        "id",
        "is_shared",
        "is_well_formed",
        "node_rule",
        "slice",
        "taints",
    )

    def __init__(self, known: ResourceSlice, device: Device) -> None:
        spec = known.spec
        self.id = DeviceId(spec.driver, spec.pool.name, device.name)
        self.device = device
        self.slice = known
        self.is_shared = bool(device.allow_multiple_allocations)
        self.has_policies = False
        self.is_well_formed = _have_values(device.attributes)
        for capacity in device.capacity.values():
            if capacity.request_policy is not None:
                self.has_policies = True
            if not _is_amount(str(capacity.value)):
                self.is_well_formed = False
        self.taints: tuple[DeviceTaint, ...] = device.taints and tuple(
            taint for taint in device.taints if taint.effect in BLOCKING_EFFECTS
        )
        self.node_rule: NodeRule | None = (
            device_rule(device) if spec.per_device_node_selection else None
        )
        self._view: DeviceView | None = None
        self._consumption: tuple[tuple[CounterKey, int | Fraction], ...] | None = None
        self._look: object | None = None

    @property
    def view(self) -> DeviceView:
        """What selectors see of the device."""
        view = self._view
        if view is None:
            device = self.device
            view = self._view = DeviceView(
                self.id.driver,
                device.attributes,
                {name: str(capacity.value) for name, capacity in device.capacity.items()},
                device.allow_multiple_allocations or False,
            )
        return view

    @property
    def consumption(self) -> tuple[tuple[CounterKey, int | Fraction], ...]:
        """The counters that an allocation consumes, in exact amounts.

        Raises
        ------
        QuantityError
            When an amount cannot be read.
        """
        if self._consumption is None:
            self._consumption = tuple(
                ((taken.counter_set, name), exact_value(counter.value))
                for taken in self.device.consumes_counters
                for name, counter in taken.counters.items()
            )
        return self._consumption

    @property
    def look(self) -> object:
        """A hashable value that is equal for devices which no request can tell apart.

        What binding needs and what is written are no part of it.
        """
        if self._look is None:
            device = self.device
            by_node = (device.node_name, device.all_nodes, device.node_selector)
            self._look = _Look(
                (
                    self.id.driver,
                    _sorted(device.attributes),
                    self.capacity_look,
                    self.is_shared,
                    self.taints,
                    self.consumption_look,
                    by_node if self.node_rule is not None else None,
                )
            )
        return self._look

    @property
    def capacity_look(self) -> Hashable:
        """A value that is equal for devices with the same capacities."""
        return _sorted(self.device.capacity)

    @property
    def consumption_look(self) -> Hashable:
        """A value that is equal for devices which consume the same of the same counters."""
        drawn = self.counters_look
        return (self.id.pool_id, drawn) if drawn else None

    @property
    def counters_look(self) -> tuple[object, ...]:
        """A value that is equal for devices which consume the same of counters of equal names."""
        return tuple(map(_drawn, self.device.consumes_counters))


class _Look:
    """A value that computes its hash once."""

    __slots__ = ("_content", "_hash")

    def __init__(self, content: tuple[object, ...]) -> None:
        self._content = content
        self._hash = hash(content)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Look):
            return NotImplemented
        return self is other or (self._hash == other._hash and self._content == other._content)

    def __hash__(self) -> int:
        return self._hash


def _have_values(attributes: Mapping[str, DeviceAttribute]) -> bool:
    for attribute in attributes.values():
        if (
            attribute.string_value is None
            and attribute.int_value is None
            and attribute.bool_value is None
        ):
            version = attribute.version_value
            if version is None or not _is_version(version):
                return False
    return True


_is_version = AGES.forgets(4096)(is_version)
_is_amount = AGES.forgets(4096)(is_amount)


def _drawn(taken: DeviceCounterConsumption) -> tuple[object, ...]:
    return taken.counter_set, _sorted(taken.counters)


def _sorted(mapping: Mapping[str, _V]) -> tuple[tuple[str, _V], ...]:
    return tuple(sorted(mapping.items(), key=lambda item: item[0]))
