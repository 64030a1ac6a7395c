"""ResourceSlices by node and by pool."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from cache.change_journal import ChangeJournal
from cache.device_objects import PoolId
from cache.sharded_map import MAX_CHANGED, SnapshotDict
from cache.value import Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cache.device_objects import ResourceSlice
    from cache.locks import MakeLock


class SlicesView(Value, frozen=True):
    """All slices at one moment; each sequence is sorted by the names of the slices.

    Attributes
    ----------
    version
        Of :class:`DeviceSlices`.
    by_node
        The slices with a ``nodeName``, by that name.
    shared
        The slices without a ``nodeName``.
    with_counters
        The slices with shared counters, those of single nodes included.
    by_pool
        All slices by their pool, whatever their generation.

    Notes
    -----
    *Concurrency*: immutable.
    """

    version: int
    by_node: Mapping[str, tuple[ResourceSlice, ...]]
    shared: tuple[ResourceSlice, ...]
    with_counters: tuple[ResourceSlice, ...]
    by_pool: Mapping[PoolId, tuple[ResourceSlice, ...]]


class DeviceSlices:
    """The slices, as the API has them.

    Notes
    -----
    *Concurrency*: thread-safe; written from the I/O loop, read from any thread.

    *Cost*: a change costs the same whatever the number of slices. The next :meth:`view` then costs
    the slices of the nodes and pools that changed.
    """

    def __init__(self, make_lock: MakeLock = threading.Lock) -> None:
        self._lock = make_lock()
        self._slices: dict[str, ResourceSlice] = {}
        self._version = 0
        self._pool_journal: ChangeJournal[PoolId] = ChangeJournal()
        self._names_of_node: dict[str, dict[str, None]] = {}
        self._names_of_pool: dict[PoolId, dict[str, None]] = {}
        self._names_with_counters: dict[str, None] = {}
        self._stale_nodes: set[str] = set()
        self._stale_pools: set[PoolId] = set()
        self._are_counters_stale = False
        self._by_node: SnapshotDict[str, tuple[ResourceSlice, ...]] = SnapshotDict()
        self._by_pool: SnapshotDict[PoolId, tuple[ResourceSlice, ...]] = SnapshotDict()
        self._view = SlicesView(0, {}, (), (), {})

    @property
    def version(self) -> int:
        """Grows with every change."""
        return self._version

    def pool_changes(self, since: int) -> tuple[int, frozenset[PoolId] | None]:
        """Return the version of the pools, and the pools whose slices changed after ``since``.

        It is not :attr:`version`: a change that moves a slice to another pool counts twice.
        """
        with self._lock:
            return self._pool_journal.version, self._pool_journal.since(since)

    def get(self, name: str) -> ResourceSlice | None:
        """Return a slice, or None."""
        return self._slices.get(name)

    def view(self) -> SlicesView:
        """Return all slices as they are now."""
        with self._lock:
            if self._view.version != self._version:
                self._view = self._new_view_locked()
            return self._view

    def changed(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        """Store a slice; ``new`` is None for a deleted one."""
        subject = new if new is not None else old
        if subject is None:
            return
        name = subject.metadata.name
        with self._lock:
            before = self._slices.pop(name, None)
            if before is not None:
                self._unindex_locked(before)
            if new is not None:
                self._slices[name] = new
                self._names_of_node.setdefault(_node(new), {})[name] = None
                self._names_of_pool.setdefault(pool_id(new), {})[name] = None
                if new.spec.shared_counters:
                    self._names_with_counters[name] = None
            known = [each for each in (before, new) if each is not None]
            self._stale_nodes.update(map(_node, known))
            self._are_counters_stale |= any(each.spec.shared_counters for each in known)
            for pool in dict.fromkeys(map(pool_id, known)):
                self._stale_pools.add(pool)
                self._pool_journal.record(pool)
            self._version += 1
            if len(self._stale_nodes) + len(self._stale_pools) >= MAX_CHANGED:
                self._view = self._new_view_locked()

    def _unindex_locked(self, known: ResourceSlice) -> None:
        name, node, pool = known.metadata.name, _node(known), pool_id(known)
        del self._names_of_node[node][name]
        if not self._names_of_node[node]:
            del self._names_of_node[node]
        self._names_with_counters.pop(name, None)
        del self._names_of_pool[pool][name]
        if not self._names_of_pool[pool]:
            del self._names_of_pool[pool]

    def _new_view_locked(self) -> SlicesView:
        shared, with_counters = self._view.shared, self._view.with_counters
        if self._are_counters_stale:
            with_counters = self._sorted_locked(self._names_with_counters)
            self._are_counters_stale = False
        for node in self._stale_nodes:
            slices = self._sorted_locked(self._names_of_node.get(node, {}))
            if node:
                self._by_node.put(node, slices or None)
            else:
                shared = slices
        for pool in self._stale_pools:
            self._by_pool.put(pool, self._sorted_locked(self._names_of_pool.get(pool, {})) or None)
        self._stale_nodes, self._stale_pools = set(), set()
        return SlicesView(
            self._version,
            self._by_node.snapshot(),
            shared,
            with_counters,
            self._by_pool.snapshot(),
        )

    def _sorted_locked(self, names: Mapping[str, None]) -> tuple[ResourceSlice, ...]:
        return tuple(self._slices[name] for name in sorted(names))


def pool_id(known: ResourceSlice) -> PoolId:
    """Return the pool of a slice."""
    return PoolId(known.spec.driver, known.spec.pool.name)


def _node(known: ResourceSlice) -> str:
    """Return the node that has the devices of a slice; empty for several nodes."""
    return known.spec.node_name or ""
