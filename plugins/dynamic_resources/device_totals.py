"""Count the devices of a class that a node can reach, and those of them that are in use.

*Source*: pkg/scheduler/framework/plugins/noderesources/resource_allocation.go,
calculateDRAResourceTotals and deviceMatchesClass (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cache.device_slices import pool_id
from plugins.dynamic_resources.errors import AllocationError
from plugins.dynamic_resources.node_rules import NodeRule
from plugins.dynamic_resources.node_verdicts import SELECTORS
from plugins.dynamic_resources.pooled_device import PooledDevice
from plugins.dynamic_resources.selector_cache import SelectorList

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from cache.device_objects import DeviceClass, DeviceId, PoolId, ResourceSlice
    from cache.devices import Devices
    from cache.objects import Node

MAX_NODES: Final = 40_000
"""Nodes whose counts are kept: more than any cluster has, so most of them are gone by then."""


class DeviceTotals:
    """The devices of one class.

    Devices of all slices count, whatever the generation of their pool and whether it is complete.

    # Differs: kube-scheduler keeps for ever which devices match, by their names: a device that is
    published with other attributes keeps its first result.

    Notes
    -----
    *Concurrency*: confined to one thread.

    *Cost*: for a node that was counted before, a look-up, as long as no slice has changed and no
    device of its pools was taken or freed; else its own devices and those that several nodes can
    reach. Selectors are evaluated once for each slice.
    """

    def __init__(self, known: DeviceClass, devices: Devices) -> None:
        self.device_class = known
        owner = f"class {known.metadata.name}"
        self._selectors = SelectorList(known.spec.selectors, owner, SELECTORS)
        self._known = devices
        self._slices = devices.slices.view()
        self._allocated = devices.allocated()
        self._matching: dict[str, tuple[ResourceSlice, tuple[DeviceId, ...]]] = {}
        self._counted: dict[str, tuple[Node, tuple[int, int]]] = {}
        self._nodes_of_pool: dict[PoolId, set[str]] = {}

    def follow(self) -> None:
        """Count the devices as they are now."""
        changed = self._read_allocated()
        slices = self._known.slices.view()
        if slices is not self._slices:
            here = {each.metadata.name for pool in slices.by_pool.values() for each in pool}
            self._matching = {name: found for name, found in self._matching.items() if name in here}
            self._slices = slices
            changed = None
        if changed is None or len(self._counted) > MAX_NODES:
            self._counted.clear()
            self._nodes_of_pool.clear()
            return
        for pool in {device.pool_id for device in changed}:
            for name in self._nodes_of_pool.pop(pool, ()):
                self._counted.pop(name, None)

    def _read_allocated(self) -> Collection[DeviceId] | None:
        """Take the devices in use; return those that changed, or None for any of them."""
        while True:
            version, changed = self._known.device_changes(self._allocated.version)
            allocated = self._known.allocated()
            if allocated.version == version:
                self._allocated = allocated
                return changed

    def of(self, node: Node) -> tuple[int, int]:
        """Return how many devices a node can reach, and how many of them are in use.

        Both are 0 when a selector fails.
        """
        name = node.metadata.name
        known = self._counted.get(name)
        if known is None or known[0] is not node:
            known = self._counted[name] = (node, self._count(node))
        return known[1]

    def _count(self, node: Node) -> tuple[int, int]:
        name = node.metadata.name
        state = self._allocated
        total = used = 0
        try:
            for known in (*self._slices.by_node.get(name, ()), *self._slices.shared):
                self._nodes_of_pool.setdefault(pool_id(known), set()).add(name)
                for device in self._devices(known, node):
                    total += 1
                    used += device in state.devices or device in state.shared
        except AllocationError:
            return 0, 0
        return total, used

    def _devices(self, known: ResourceSlice, node: Node) -> Iterable[DeviceId]:
        """Return the devices of a slice that match, and that a node can reach."""
        spec = known.spec
        if spec.per_device_node_selection:
            devices = (PooledDevice(known, device) for device in spec.devices)
            return [
                each.id
                for each in devices
                if each.node_rule is not None
                and each.node_rule.matches(node)
                and self._selectors.matches(each)
            ]
        if not NodeRule(spec.node_name, spec.all_nodes, spec.node_selector).matches(node):
            return ()
        held = self._matching.get(known.metadata.name)
        if held is None or held[0] is not known:
            devices = (PooledDevice(known, device) for device in spec.devices)
            found = tuple(each.id for each in devices if self._selectors.matches(each))
            held = self._matching[known.metadata.name] = (known, found)
        return held[1]
