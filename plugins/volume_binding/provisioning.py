"""Finds the nodes on which a volume can be provisioned: class topologies and driver capacities.

*Source*: pkg/scheduler/framework/plugins/volumebinding/binder.go, checkVolumeProvisions and
hasEnoughCapacity (1.36); pkg/apis/core/v1/helper/helpers.go, MatchTopologySelectorTerms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from cache.byte_bounded import remembered
from cache.label_selectors import IN, Selector, compile_label_selector
from cache.objects import LabelSelector, LabelSelectorRequirement
from cache.quantity import quantity_value
from cache.resources import MalformedObjectError
from cache.storage import claim_class
from plugins.label_masks import requirements_mask
from plugins.volume_binding.free_volumes import STORAGE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cache.columns import NodesView
    from cache.objects import Quantity
    from cache.storage import Storage
    from cache.storage_objects import (
        CSIStorageCapacity,
        PersistentVolumeClaim,
        TopologySelectorTerm,
    )
    from plugins.framework.results import BoolArray

NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
"""The provisioner of classes whose volumes are created manually."""

_MIN_REMEMBERED: Final = 256


class CapacityMemory:
    """The compiled topologies of capacities, stored until these change.

    *Concurrency*: confined to the scheduling thread.
    """

    def __init__(self) -> None:
        self._selectors: dict[tuple[str, str], tuple[CSIStorageCapacity, Selector | None]] = {}

    def selector(self, capacity: CSIStorageCapacity, num_known: int) -> Selector | None:
        """Return the selector of the nodes that can use a capacity; None if no node can."""
        if len(self._selectors) > 2 * num_known + _MIN_REMEMBERED:
            self._selectors.clear()
        key = (capacity.metadata.namespace, capacity.metadata.name)
        known = self._selectors.get(key)
        if known is None or known[0] is not capacity:
            known = (capacity, _topology_selector(capacity))
            self._selectors[key] = known
        return known[1]


def _topology_selector(capacity: CSIStorageCapacity) -> Selector | None:
    if capacity.node_topology is None:
        return None
    try:
        return compile_label_selector(capacity.node_topology, "nodeTopology")
    except MalformedObjectError:
        return None


class Provisioning:
    """Whether and where a volume can be provisioned for one claim.

    Attributes
    ----------
    claim
        The claim.
    error
        The error that prevents a result; empty without an error.
    is_possible
        Whether the class provisions volumes at all.
    topologies
        Selectors, of which a node must match one, of the class; None for all nodes.
    segments
        Selectors, of which a node must match one, of sufficient capacities; None for all nodes.
    """

    __slots__ = ("claim", "error", "is_possible", "segments", "topologies")

    def __init__(
        self, claim: PersistentVolumeClaim, storage: Storage, memory: CapacityMemory
    ) -> None:
        self.claim = claim
        self.error = ""
        self.is_possible = False
        self.topologies: tuple[Selector, ...] | None = None
        self.segments: tuple[Selector, ...] | None = None
        class_name = claim_class(claim)
        if not class_name:
            key = f"{claim.metadata.namespace}/{claim.metadata.name}"
            self.error = f'no class for claim "{key}"'
            return
        storage_class = storage.classes.get(class_name)
        if storage_class is None:
            self.error = f'failed to find storage class "{class_name}"'
            return
        if storage_class.provisioner in ("", NO_PROVISIONER):
            return
        self.is_possible = True
        if storage_class.allowed_topologies:
            self.topologies = _compiled_topologies(storage_class.allowed_topologies)
        self.segments = _segments_with_room(claim, storage_class.provisioner, storage, memory)

    # --- one node -----------------------------------------------------------------------------

    def is_allowed(self, labels: Mapping[str, str]) -> bool:
        """Return whether the class provisions volumes for a node."""
        return self.is_possible and _matches_any(self.topologies, labels)

    def has_room(self, labels: Mapping[str, str]) -> bool:
        """Return whether the driver has enough capacity for the claim that a node can use."""
        return _matches_any(self.segments, labels)

    # --- all nodes ----------------------------------------------------------------------------

    def allowed_mask(self, nodes: NodesView) -> BoolArray | None:
        """Return bool (n_nodes,): the nodes that the class provisions for; None for all."""
        if not self.is_possible:
            return np.zeros(len(nodes), dtype=np.bool_)
        return _any_mask(self.topologies, nodes)

    def room_mask(self, nodes: NodesView) -> BoolArray | None:
        """Return bool (n_nodes,): the nodes with enough capacity of the driver; None for all."""
        return _any_mask(self.segments, nodes)


@remembered(1 << 21)
def _compiled_topologies(terms: tuple[TopologySelectorTerm, ...]) -> tuple[Selector, ...]:
    selectors = []
    for term in terms:
        expressions = tuple(
            LabelSelectorRequirement(key=each.key, operator=IN, values=each.values)
            for each in term.match_label_expressions
        )
        if not expressions:
            continue
        try:
            selectors.append(compile_label_selector(LabelSelector(match_expressions=expressions)))
        except MalformedObjectError:
            continue
    return tuple(selectors)


def _segments_with_room(
    claim: PersistentVolumeClaim, driver_name: str, storage: Storage, memory: CapacityMemory
) -> tuple[Selector, ...] | None:
    quantity = claim.spec.resources.requests.get(STORAGE)
    if quantity is None:
        return None
    driver = storage.csi_drivers.get(driver_name)
    if driver is None or not driver.spec.storage_capacity:
        return None
    size = quantity_value(quantity)
    capacities = storage.capacities.by_index(claim_class(claim))
    segments = []
    for capacity in capacities:
        limit = volume_limit(capacity)
        if limit is not None and quantity_value(limit) >= size:
            selector = memory.selector(capacity, len(capacities))
            if selector is not None:
                segments.append(selector)
    return tuple(segments)


def volume_limit(capacity: CSIStorageCapacity) -> Quantity | None:
    """Return the largest volume that a capacity allows, or None without a limit."""
    limit = capacity.maximum_volume_size
    return capacity.capacity if limit is None else limit


def _matches_any(selectors: tuple[Selector, ...] | None, labels: Mapping[str, str]) -> bool:
    return selectors is None or any(selector.matches(labels) for selector in selectors)


def _any_mask(selectors: Sequence[Selector] | None, nodes: NodesView) -> BoolArray | None:
    """Return the nodes that one of the selectors matches; None for all.

    *Cost*: selectors that only compare one label cost one pass over its column together.
    """
    if selectors is None:
        return None
    union: BoolArray = np.zeros(len(nodes), dtype=np.bool_)
    values_by_key: dict[str, set[str]] = {}
    others: set[Selector] = set()
    for selector in selectors:
        if selector.empty:
            return None
        if len(selector.requirements) == 1 and selector.requirements[0].operator == IN:
            (requirement,) = selector.requirements
            values_by_key.setdefault(requirement.key, set()).update(requirement.values)
        else:
            others.add(selector)
    for key, values in values_by_key.items():
        column, ids = nodes.label(key)
        wanted = np.zeros(len(column.values), dtype=np.bool_)
        for value in values:
            value_id = column.id_of(value)
            if value_id is not None:
                wanted[value_id] = True
        union = union | wanted.take(ids)
    for selector in others:
        one = requirements_mask(selector.requirements, nodes)
        if one is not None:
            union = union | one
    return union
