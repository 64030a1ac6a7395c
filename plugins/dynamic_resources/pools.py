"""The pools of devices that a node can reach.

A pool is the unit in which devices are published: several slices, each for one node, for some
nodes or for all. A node can use a pool only when all slices of its newest generation are known and
agree with each other.

*Source*: k8s.io/dynamic-resource-allocation 0.36, structured/internal/incubating,
pools_incubating.go.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from operator import is_
from typing import TYPE_CHECKING, Final

import msgspec

from cache.device_slices import pool_id
from cache.value import MutableValue, Value
from plugins.dynamic_resources.aged_dict import AgedDict
from plugins.dynamic_resources.kept_results import KeptResults
from plugins.dynamic_resources.node_rules import SharedSlices
from plugins.dynamic_resources.pooled_device import PooledDevice

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cache.device_objects import CounterSet, PoolId, ResourceSlice
    from cache.device_slices import SlicesView
    from cache.objects import Node


class CounterState(Value, frozen=True, eq=False):
    """The counter sets of a pool, and the slices whose devices may consume them.

    Attributes
    ----------
    sets
        By name.
    slices
        Slices with devices, on whatever node.

    Notes
    -----
    Its identity is a key for what is computed from it.
    """

    sets: Mapping[str, CounterSet]
    slices: tuple[ResourceSlice, ...]


class Pool(Value, frozen=True, eq=False):
    """The part of a pool that a node can reach.

    Attributes
    ----------
    id
        Driver and name.
    is_incomplete
        Not all slices of the generation are known; the pool has no devices then.
    is_invalid
        The slices contradict each other; the pool has no devices then.
    devices
        In the order in which they are tried.
    counters
        None for a pool without counter sets.
    is_local
        Whether all of its slices that the node can reach are for this node only.
    chooses_by_device
        Whether devices can be reached from other nodes than their slice.
    """

    id: PoolId
    is_incomplete: bool = False
    is_invalid: bool = False
    devices: tuple[PooledDevice, ...] = ()
    counters: CounterState | None = None
    is_local: bool = False
    chooses_by_device: bool = False

    @property
    def is_usable(self) -> bool:
        """Whether devices may be taken from the pool."""
        return not (self.is_incomplete or self.is_invalid)


class NodePools:
    """The pools that a node can reach, in the order in which they are tried.

    Attributes
    ----------
    pools
        Sorted by driver and name, those with binding conditions last.
    has_invalid
        Whether one of the pools is invalid.
    is_common
        Whether nothing depends on the node: all nodes with these pools get the same devices and
        the same allocation.

    Notes
    -----
    Nodes that reach the same slices, and no slice of their own, have one object in common.
    """

    __slots__ = ("_ends", "has_invalid", "is_common", "pools")

    def __init__(self, pools: Sequence[Pool]) -> None:
        self.pools = tuple(pools)
        self.has_invalid = any(pool.is_invalid for pool in pools)
        self.is_common = not any(
            each.slice.spec.node_name or each.node_rule is not None or each.device.binds_to_node
            for pool in pools
            for each in pool.devices
        )
        self._ends = tuple(accumulate(len(pool.devices) for pool in pools))

    @property
    def devices(self) -> tuple[PooledDevice, ...]:
        """The devices of all usable pools, in order.

        *Cost*: proportional to the devices of several pools. Nodes share the devices of a pool, and
        a list for each node would not.
        """
        if len(self.pools) == 1:
            return self.pools[0].devices
        return tuple(device for pool in self.pools for device in pool.devices)

    def pool_at(self, index: int) -> Pool:
        """Return the pool of one of :attr:`devices`."""
        return self.pools[bisect_right(self._ends, index)]


class _Generation:
    """All slices of one generation of a pool, on whatever node."""

    __slots__ = ("_is_consistent", "counters", "slices")

    def __init__(self, slices: tuple[ResourceSlice, ...]) -> None:
        self.slices = slices
        sets = _counter_sets(slices)
        self._is_consistent = sets is not None and _consumption_is_valid(sets, slices)
        with_devices = tuple(each for each in slices if not each.spec.shared_counters)
        self.counters = CounterState(sets or {}, with_devices)

    @property
    def is_consistent(self) -> bool:
        """Whether counter sets are unique, and devices consume only those that exist."""
        return self._is_consistent


class _WholePool:
    """All slices of a pool, by generation."""

    __slots__ = ("_by_generation", "_generations", "newest", "slices")

    def __init__(self, slices: tuple[ResourceSlice, ...]) -> None:
        self.slices = slices
        self._by_generation: dict[int, list[ResourceSlice]] = {}
        for each in slices:
            self._by_generation.setdefault(each.spec.pool.generation, []).append(each)
        self._generations: dict[int, _Generation] = {}
        self.newest = max(self._by_generation, default=0)

    def count(self, generation: int) -> int:
        return len(self._by_generation.get(generation, ()))

    def generation(self, generation: int) -> _Generation:
        known = self._generations.get(generation)
        if known is None:
            known = _Generation(tuple(self._by_generation.get(generation, ())))
            self._generations[generation] = known
        return known


class _Entry(MutableValue):
    """The pools of a node, and all that they were made from."""

    version: int
    labels: Mapping[str, str]
    local: Sequence[ResourceSlice]
    shared: SharedSlices
    unusable: tuple[Pool, ...]
    made_from: list[tuple[PoolId, tuple[ResourceSlice, ...]]] = msgspec.field(default_factory=list)
    pools: NodePools = msgspec.field(default_factory=lambda: NodePools(()))


_NO_SLICES: Final[tuple[ResourceSlice, ...]] = ()


class PoolIndex:
    """Finds the pools of nodes among all slices of one moment.

    Parameters
    ----------
    view
        The slices.

    Attributes
    ----------
    kept
        What searches in these pools have found.

    Notes
    -----
    *Concurrency*: confined to one thread.

    *Cost*: for a node whose slices have not changed since it was last asked for, under a
    microsecond; else its own slices and those that are for several nodes. Slices that are only for
    other nodes cost nothing.
    """

    def __init__(self, view: SlicesView) -> None:
        self.kept = KeptResults()
        self._view = view
        self._shared = SharedSlices(view.shared)
        self._entries: AgedDict[str, _Entry] = AgedDict()
        self._common: dict[tuple[int, ...], _Entry] = {}
        self._whole: AgedDict[PoolId, _WholePool] = AgedDict()
        self._devices: AgedDict[str, tuple[ResourceSlice, tuple[PooledDevice, ...]]] = AgedDict()
        self._built: AgedDict[PoolId, tuple[list[ResourceSlice], _Generation | None, Pool]]
        self._built = AgedDict()
        self._with_counters = _NO_SLICES
        self._counters: dict[PoolId, list[ResourceSlice]] = {}
        self._elsewhere: dict[PoolId, tuple[Sequence[ResourceSlice], Pool | None]] = {}
        self._unusable: tuple[Pool, ...] = ()
        self._read_counters()

    @property
    def version(self) -> int:
        """The version of the slices."""
        return self._view.version

    def update(self, view: SlicesView) -> None:
        """Use the slices of another moment from now on."""
        if view is self._view:
            return
        if not self._shared.is_of(view.shared):
            self._shared = SharedSlices(view.shared)
        self._common.clear()
        self._view = view
        self._read_counters()

    def _read_counters(self) -> None:
        """Find the slices with counters, and the pools that no node can use because of them.

        Each node sees the counters of all pools. Of a pool that it does not reach otherwise, they
        matter only if the pool cannot be used, and then for all nodes in the same way.
        """
        view = self._view
        if view.with_counters is not self._with_counters:
            self._with_counters = view.with_counters
            self._counters = {}
            for each in view.with_counters:
                self._counters.setdefault(pool_id(each), []).append(each)
            self._elsewhere = {k: v for k, v in self._elsewhere.items() if k in self._counters}
        unusable = []
        for key, with_counters in self._counters.items():
            all_slices = view.by_pool.get(key, _NO_SLICES)
            known = self._elsewhere.get(key)
            if known is None or known[0] is not all_slices:
                newest: dict[PoolId, list[ResourceSlice]] = {}
                for each in with_counters:
                    _add(newest, each)
                known = all_slices, self._pool(key, newest[key], all_slices)
                self._elsewhere[key] = known
            if known[1] is not None and not known[1].is_usable:
                unusable.append(known[1])
        if unusable != list(self._unusable):
            self._unusable = tuple(unusable)

    def pools(self, node: Node) -> NodePools:
        """Return the pools that a node can reach.

        Raises
        ------
        AllocationError
            When a slice has a malformed node selector.
        """
        name = node.metadata.name
        entry = self._entries.get(name)
        if entry is None or not self._is_valid(entry, node):
            entry = self._gather(node)
            self._entries.put(name, entry)
        entry.version = self._view.version
        return entry.pools

    def _is_valid(self, entry: _Entry, node: Node) -> bool:
        labels = node.metadata.labels
        if entry.labels is not labels and entry.labels != labels:
            return False
        if entry.version == self._view.version:
            return True
        view = self._view
        return (
            entry.shared is self._shared
            and entry.unusable is self._unusable
            and entry.local is view.by_node.get(node.metadata.name, _NO_SLICES)
            and all(view.by_pool.get(pool) is slices for pool, slices in entry.made_from)
        )

    def _gather(self, node: Node) -> _Entry:
        view = self._view
        local = view.by_node.get(node.metadata.name, _NO_SLICES)
        shared = self._shared.relevant(node)
        entry = _Entry(view.version, node.metadata.labels, local, self._shared, self._unusable)
        # The view keeps all slices alive: no other slice gets the id of one of them.
        reached = tuple(map(id, shared))
        common = None if local else self._common.get(reached)
        if common is not None:
            entry.made_from, entry.pools = common.made_from, common.pools
            return entry
        relevant: dict[PoolId, list[ResourceSlice]] = {}
        for each in local:
            if not each.spec.shared_counters:
                _add(relevant, each)
        for each in shared:
            _add(relevant, each)
        pools = [pool for pool in self._unusable if pool.id not in relevant]
        for key in relevant:
            for each in self._counters.get(key, _NO_SLICES):
                _add(relevant, each)
        for key, slices in relevant.items():
            all_slices = view.by_pool.get(key, _NO_SLICES)
            entry.made_from.append((key, all_slices))
            pool = self._pool(key, slices, all_slices)
            if pool is not None and (pool.devices or not pool.is_usable):
                pools.append(pool)
        pools.sort(key=lambda pool: (_has_binding_conditions(pool), pool.id))
        entry.pools = NodePools(pools)
        if not local:
            self._common[reached] = entry
        return entry

    def _pool(
        self,
        key: PoolId,
        slices: list[ResourceSlice],
        all_slices: tuple[ResourceSlice, ...],
    ) -> Pool | None:
        """Return a pool, or None for one that is being replaced by a newer generation."""
        described = slices[0].spec.pool
        whole = None
        # A newer generation that is only for other nodes is not noticed when the slices that this
        # node can reach are as many as the pool has; so it is in kube-scheduler.
        if len(slices) != described.resource_slice_count:
            known = self._whole.get(key)
            if known is None or known.slices is not all_slices:
                known = _WholePool(all_slices)
                self._whole.put(key, known)
            if known.newest > described.generation:
                return None
            if known.count(described.generation) != described.resource_slice_count:
                return Pool(key, is_incomplete=True, is_local=_are_local(slices))
            whole = known.generation(described.generation)
        slices.sort(key=lambda each: each.metadata.name)
        # Pools for many nodes look alike on all of them.
        last = self._built.get(key)
        if last is not None and last[1] is whole and _are_same(last[0], slices):
            return last[2]
        pool = self._build(key, slices, whole)
        self._built.put(key, (slices, whole, pool))
        return pool

    def _build(self, key: PoolId, slices: list[ResourceSlice], whole: _Generation | None) -> Pool:
        with_devices = [each for each in slices if not each.spec.shared_counters]
        sets = _counter_sets(slices)
        if (
            not _names_are_unique(with_devices)
            or sets is None
            or not (
                whole.is_consistent if whole is not None else _consumption_is_valid(sets, slices)
            )
        ):
            return Pool(key, is_invalid=True, is_local=_are_local(slices))
        counters = None
        if sets:
            counters = CounterState(sets, tuple(with_devices)) if whole is None else whole.counters
        devices = tuple(device for each in with_devices for device in self._devices_of(each))
        return Pool(
            key,
            devices=devices,
            counters=counters,
            is_local=_are_local(slices),
            chooses_by_device=any(each.spec.per_device_node_selection for each in slices),
        )

    def _devices_of(self, known: ResourceSlice) -> tuple[PooledDevice, ...]:
        held = self._devices.get(known.metadata.name)
        if held is not None and held[0] is known:
            return held[1]
        devices = tuple(PooledDevice(known, device) for device in known.spec.devices)
        self._devices.put(known.metadata.name, (known, devices))
        return devices


def _add(pools: dict[PoolId, list[ResourceSlice]], new: ResourceSlice) -> None:
    """Add a slice to its pool, which keeps those of the newest generation only."""
    key = pool_id(new)
    slices = pools.get(key)
    if slices is None:
        pools[key] = [new]
        return
    generation = slices[0].spec.pool.generation
    if new.spec.pool.generation > generation:
        pools[key] = [new]
    elif new.spec.pool.generation == generation:
        slices.append(new)


def _are_same(known: Sequence[ResourceSlice], new: Sequence[ResourceSlice]) -> bool:
    return len(known) == len(new) and all(map(is_, known, new))


def _are_local(slices: Iterable[ResourceSlice]) -> bool:
    return all(each.spec.node_name for each in slices)


def _names_are_unique(slices: Sequence[ResourceSlice]) -> bool:
    names = {device.name for each in slices for device in each.spec.devices}
    return len(names) == sum(len(each.spec.devices) for each in slices)


def _counter_sets(slices: Iterable[ResourceSlice]) -> Mapping[str, CounterSet] | None:
    """Return the counter sets by name, or None when two have the same name."""
    sets: dict[str, CounterSet] = {}
    for each in slices:
        for counter_set in each.spec.shared_counters:
            if counter_set.name in sets:
                return None
            sets[counter_set.name] = counter_set
    return sets


def _consumption_is_valid(sets: Mapping[str, CounterSet], slices: Iterable[ResourceSlice]) -> bool:
    """Return whether all counters that devices consume exist."""
    for each in slices:
        for device in each.spec.devices:
            for consumption in device.consumes_counters:
                counter_set = sets.get(consumption.counter_set)
                if counter_set is None or not (
                    consumption.counters.keys() <= counter_set.counters.keys()
                ):
                    return False
    return True


def _has_binding_conditions(pool: Pool) -> bool:
    return any(device.device.binding_conditions is not None for device in pool.devices)
