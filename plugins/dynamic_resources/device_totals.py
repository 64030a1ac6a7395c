"""Count the devices of a class that a node can reach, and those of them that are in use.

*Source*: pkg/scheduler/framework/plugins/noderesources/resource_allocation.go,
calculateDRAResourceTotals and deviceMatchesClass (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plugins.dynamic_resources.errors import AllocationError
from plugins.dynamic_resources.node_rules import NodeRule
from plugins.dynamic_resources.node_verdicts import SELECTORS
from plugins.dynamic_resources.pooled_device import PooledDevice
from plugins.dynamic_resources.selector_cache import SelectorList

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cache.allocated_devices import AllocatedState
    from cache.device_objects import DeviceClass, DeviceId, ResourceSlice
    from cache.device_slices import SlicesView
    from cache.objects import Node


class DeviceTotals:
    """The devices of one class.

    Devices of all slices count, whatever the generation of their pool and whether it is complete.

    # Differs: kube-scheduler keeps for ever which devices match, by their names: a device that is
    published with other attributes keeps its first result.

    Notes
    -----
    *Concurrency*: confined to one thread.

    *Cost*: for a node, its own devices and those that several nodes can reach; selectors are
    evaluated once for each slice.
    """

    def __init__(self, known: DeviceClass, slices: SlicesView, allocated: AllocatedState) -> None:
        self.device_class = known
        owner = f"class {known.metadata.name}"
        self._selectors = SelectorList(known.spec.selectors, owner, SELECTORS)
        self._slices = slices
        self._allocated = allocated
        self._matching: dict[str, tuple[ResourceSlice, tuple[DeviceId, ...]]] = {}

    def follow(self, slices: SlicesView, allocated: AllocatedState) -> None:
        """Count the devices of another moment from now on."""
        if slices is not self._slices:
            here = {each.metadata.name for pool in slices.by_pool.values() for each in pool}
            self._matching = {name: found for name, found in self._matching.items() if name in here}
        self._slices, self._allocated = slices, allocated

    def of(self, node: Node) -> tuple[int, int]:
        """Return how many devices a node can reach, and how many of them are in use.

        Both are 0 when a selector fails.
        """
        local = self._slices.by_node.get(node.metadata.name, ())
        state = self._allocated
        total = used = 0
        try:
            for known in (*local, *self._slices.shared):
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
