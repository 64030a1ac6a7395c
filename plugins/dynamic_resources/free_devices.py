"""The number of free devices that match a request, on all nodes, followed through changes.

Most claims ask for some devices of a class and for nothing else. Whether a node has them is a
matter of counting: the search would take the first free ones. So these claims are decided for all
nodes by one comparison, and only the chosen node is searched, when the pod is reserved there.

Counting cannot tell everything. A node on which a selector fails, a device is shared or draws from
counters, or a pool is invalid is left to the search.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from cache.byte_bounded import ByteBounded
from plugins.dynamic_resources.errors import AllocationError
from plugins.dynamic_resources.requests import PrioritizedList
from plugins.dynamic_resources.search import MAX_RESULTS

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Sequence

    import numpy.typing as npt

    from cache.allocated_devices import AllocatedState
    from cache.columns import Columns
    from cache.device_objects import DeviceId, PoolId
    from cache.device_slices import SlicesView
    from cache.devices import Devices
    from cache.objects import Node
    from plugins.dynamic_resources.pooled_device import PooledDevice
    from plugins.dynamic_resources.pools import PoolIndex
    from plugins.dynamic_resources.requests import ClaimRequests, Request
    from plugins.framework.attempt_budget import AttemptBudget
    from plugins.framework.results import BoolArray

MAX_BYTES: Final = 1 << 26
"""64 MiB for all requests: one over 80 000 devices weighs 4 MiB."""

_ROW_BYTES: Final = 80
_DEVICE_BYTES: Final = 40

SEARCH: Final = -1
"""Stands for the number of free devices on a node that has to be searched."""

_Rows: TypeAlias = "set[int]"


class Countable(NamedTuple):
    """Requests that counting can decide.

    Attributes
    ----------
    key
        Equal for requests that match the same devices.
    request
        One of them.
    needed
        The number of devices that all of them need together.
    """

    key: Hashable
    request: Request
    needed: int


def countable(claims: Sequence[ClaimRequests]) -> tuple[Countable, ...]:
    """Return the alternatives of what claims ask for; none where counting cannot decide.

    Counting can where all requests are for a number of devices, match the same devices and have no
    constraint: whichever of the devices one of them takes, the others find as many. It also can for
    a single request with alternatives: of those with enough devices, the first one is taken.
    """
    if len(claims) == 1 and len(claims[0].requests) == 1:
        (request,) = claims[0].requests
        if isinstance(request, PrioritizedList):
            return _countable_list(claims[0], request)
    plain = _countable(claims)
    return () if plain is None else (plain,)


def _countable_list(claim: ClaimRequests, request: PrioritizedList) -> tuple[Countable, ...]:
    if claim.claim.spec.devices.constraints:
        return ()
    if any(not _is_plain(each) or each.count > MAX_RESULTS for each in request.alternatives):
        return ()
    return tuple(Countable(_key(each), each, each.count) for each in request.alternatives)


def _countable(claims: Sequence[ClaimRequests]) -> Countable | None:
    found: Countable | None = None
    for claim in claims:
        if claim.claim.spec.devices.constraints:
            return None
        in_claim = 0
        for request in claim.requests:
            if isinstance(request, PrioritizedList) or not _is_plain(request):
                return None
            key = _key(request)
            if found is not None and found.key != key:
                return None
            in_claim += request.count
            found = Countable(key, request, request.count + (found.needed if found else 0))
        if in_claim > MAX_RESULTS:
            return None
    return found


def _is_plain(request: Request) -> bool:
    return not (
        request.error is not None
        or request.is_all
        or request.is_admin
        or request.capacity
        or not request.count
    )


def _key(request: Request) -> Hashable:
    of_class = tuple(each.expression for each in request.class_selectors or ())
    own = tuple(each.expression for each in request.selectors or ())
    return of_class, own, request.tolerations


class _Counts:
    """The free devices for one kind of request.

    Attributes
    ----------
    free
        int32, by row: the free devices, or ``SEARCH``.
    devices
        By row: the devices that match, in use or not.
    rows_of
        The rows on which devices of a pool match.
    unknown, stale
        The rows of which the devices have to be looked up; the rows to be counted again.
    """

    __slots__ = ("bytes", "devices", "free", "rows_of", "stale", "unknown")

    def __init__(self, n_rows: int) -> None:
        self.free: npt.NDArray[np.int32] = np.zeros(n_rows, dtype=np.int32)
        self.devices: list[tuple[DeviceId, ...] | None] = [()] * n_rows
        self.rows_of: dict[PoolId, _Rows] = {}
        self.unknown: _Rows = set(range(n_rows))
        self.stale: _Rows = set()
        self.bytes = _ROW_BYTES * n_rows

    def resize(self, n_rows: int) -> None:
        known = len(self.devices)
        if n_rows > known:
            self.free = np.concatenate([self.free, np.zeros(n_rows - known, dtype=np.int32)])
            self.devices += [()] * (n_rows - known)
            self.bytes += _ROW_BYTES * (n_rows - known)

    def forget(self, pools: Collection[PoolId] | None) -> None:
        """Drop the rows of pools, or of all: what changed or went is looked up again."""
        if pools is None:
            self.rows_of.clear()
            return
        for pool in pools:
            self.rows_of.pop(pool, None)


class FreeDevices:
    """Counts the free devices that match requests, by node.

    Parameters
    ----------
    columns
        The nodes.
    pools
        The pools of nodes; updated by :meth:`follow`.
    devices
        The state of the cluster.

    Notes
    -----
    *Concurrency*: confined to the thread of the columns; reads ``devices``, which is thread-safe.

    *Cost*: the first pod with a new kind of request pays an evaluation for each distinct device
    and a microsecond for each device; later pods pay for the nodes whose devices changed.
    """

    def __init__(self, columns: Columns, pools: PoolIndex, devices: Devices) -> None:
        self.columns = columns
        self.pools = pools
        self._devices = devices
        self._kinds: ByteBounded[Hashable, _Counts] = ByteBounded(
            MAX_BYTES, lambda _, counts: counts.bytes
        )
        self._cursor = self._pool_version = self._device_version = 0
        self._nodes: list[Node | None] = []
        self._reach: dict[PoolId, _Rows] = {}
        self.allocated: AllocatedState = devices.allocated()
        self._device_version = self.allocated.version
        self._pool_version, _ = devices.slices.pool_changes(0)
        self.follow()

    # --- following ----------------------------------------------------------------------------

    def follow(self) -> None:
        """Read nodes, slices and the devices in use: all that is asked next is about these."""
        taken = self._read_allocated()
        self.pools.kept.follow(self.allocated, self._devices.device_changes)
        pools, view = self._read_slices()
        self.pools.update(view)
        self._cursor, rows = self.columns.follow(self._cursor, of_pods=False)
        changed = self._changed_nodes(rows)
        changed |= self._rows_of_pools(pools, view)
        n_rows = len(self.columns)
        for counts in self._kinds.values():
            counts.resize(n_rows)
            counts.unknown |= changed
            counts.forget(pools)
            if taken is None:
                counts.stale.update(range(n_rows))
                continue
            for device in taken:
                counts.stale.update(counts.rows_of.get(device.pool_id, ()))

    def _read_allocated(self) -> Collection[DeviceId] | None:
        """Take the devices in use; return those that changed, or None for any of them."""
        while True:
            version, changed = self._devices.device_changes(self._device_version)
            allocated = self._devices.allocated()
            if allocated.version == version:
                self._device_version, self.allocated = version, allocated
                return changed

    def _read_slices(self) -> tuple[Collection[PoolId] | None, SlicesView]:
        """Return the pools whose slices changed, or None for any of them, and all slices."""
        slices = self._devices.slices
        while True:
            before = slices.version
            version, changed = slices.pool_changes(self._pool_version)
            view = slices.view()
            if view.version == before:
                self._pool_version = version
                return changed, view

    def _changed_nodes(self, rows: Iterable[int]) -> _Rows:
        changed = set()
        n_rows = len(self.columns)
        self._nodes += [None] * (n_rows - len(self._nodes))
        for row in rows:
            info = self.columns.info_at(row)
            node = None if info is None else info.node
            if row < len(self._nodes) and self._nodes[row] is not node:
                self._nodes[row] = node
                changed.add(row)
        del self._nodes[n_rows:]
        return {row for row in changed if row < n_rows}

    def _rows_of_pools(self, pools: Collection[PoolId] | None, view: SlicesView) -> _Rows:
        """Return the rows on which pools may have changed: those that reach, or reached, one."""
        if pools is None:
            self._reach.clear()
            return set(range(len(self.columns)))
        # Rows that still reach a pool are entered again when their devices are looked up.
        changed: _Rows = set().union(*(self._reach.pop(pool, ()) for pool in pools))
        for pool in pools:
            for each in view.by_pool.get(pool, ()):
                name = each.spec.node_name
                if not name:
                    return set(range(len(self.columns)))
                row = self.columns.row_of.get(name)
                if row is not None:
                    changed.add(row)
        return changed

    # --- counting -----------------------------------------------------------------------------

    def enough(self, wanted: Countable, budget: AttemptBudget) -> tuple[BoolArray, BoolArray]:
        """Return bool (n_rows,) twice: the nodes with enough devices, and those to be searched.

        Raises
        ------
        AttemptBudgetExceededError
            When the attempt has used up its budget; what was counted is kept.
        """
        n_rows = len(self.columns)
        counts = self._kinds.get(wanted.key)
        if counts is None:
            counts = _Counts(n_rows)
            self._kinds.put(wanted.key, counts)
        if counts.unknown:
            self._look_up(counts, wanted.request, budget)
        while counts.stale:
            row = counts.stale.pop()
            if row < n_rows:
                counts.free[row] = self._free(counts.devices[row])
        free = counts.free[:n_rows]
        return free >= wanted.needed, free == SEARCH

    def _free(self, devices: tuple[DeviceId, ...] | None) -> int:
        if devices is None:
            return SEARCH
        in_use = self.allocated.devices
        return sum(device not in in_use for device in devices)

    def _look_up(self, counts: _Counts, request: Request, budget: AttemptBudget) -> None:
        """Find the devices that match on all unknown rows."""
        n_rows = len(self.columns)
        while counts.unknown:
            budget.check()
            row = counts.unknown.pop()
            node = self._nodes[row] if row < n_rows else None
            if node is None:
                continue
            with budget.exempt():
                # What the devices look like is nobody's choice but the drivers'.
                self._prepare(node)
            matching, pools = self._matching(node, request)
            for pool in pools:
                self._reach.setdefault(pool, set()).add(row)
            grown = len(matching or ()) - len(counts.devices[row] or ())
            counts.devices[row] = matching
            counts.stale.add(row)
            for device in matching or ():
                counts.rows_of.setdefault(device.pool_id, set()).add(row)
            counts.bytes += _DEVICE_BYTES * grown
        self._kinds.weigh_again()

    def _prepare(self, node: Node) -> None:
        with suppress(AllocationError):
            for device in self.pools.pools(node).devices:
                _ = device.view

    def _matching(
        self, node: Node, request: Request
    ) -> tuple[tuple[DeviceId, ...] | None, Collection[PoolId]]:
        """Return the devices of a node that a request can have, or None for a search."""
        try:
            pools = self.pools.pools(node)
            ids = [pool.id for pool in pools.pools]
            if pools.has_invalid:
                return None, ids
            found = []
            for device in pools.devices:
                if not request.matches(device):
                    continue
                rule = device.node_rule
                if (rule is not None and not rule.matches(node)) or not request.tolerates(device):
                    continue
                if not _is_simple(device):
                    return None, ids
                found.append(device.id)
        except AllocationError:
            return None, ()
        return tuple(found), ids


def _is_simple(device: PooledDevice) -> bool:
    """Return whether a device is either in use or free, and its nodes can be written down.

    Of several terms of a node selector, which the API server refuses, no allocation can be made.
    """
    spec = device.slice.spec
    selector = (device.device if spec.per_device_node_selection else spec).node_selector
    if selector is not None and len(selector.node_selector_terms) > 1:
        return False
    return not (device.is_shared or device.has_policies or device.device.consumes_counters)
