"""The number of free devices that match a request, on all nodes, followed through changes.

Most claims ask for some devices of a class and for nothing else. Whether a node has them is a
matter of counting: the search would take the first free ones. So these claims are decided for all
nodes by one comparison, and only the chosen node is searched, when the pod is reserved there.

Counting cannot tell everything. A node on which a selector fails, a device is shared or draws from
counters, or a pool is invalid is left to the search.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from cache.byte_bounded import ByteBounded
from plugins.dynamic_resources.errors import AllocationError
from plugins.dynamic_resources.free_counts import SEARCH, FreeCounts, Part, Rows
from plugins.dynamic_resources.requests import PrioritizedList
from plugins.dynamic_resources.search import MAX_RESULTS

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Sequence

    from cache.allocated_devices import AllocatedState
    from cache.columns import Columns
    from cache.device_objects import DeviceId, PoolId
    from cache.device_slices import SlicesView
    from cache.devices import Devices
    from cache.objects import Node
    from plugins.dynamic_resources.pooled_device import PooledDevice
    from plugins.dynamic_resources.pools import NodePools, Pool, PoolIndex
    from plugins.dynamic_resources.requests import ClaimRequests, Request
    from plugins.framework.attempt_budget import AttemptBudget
    from plugins.framework.results import BoolArray

MAX_BYTES: Final = 1 << 26
"""64 MiB for all requests: one over 80 000 devices weighs 4 MiB."""

_AT_ONCE: Final = 64
"""Nodes that are prepared, and devices that are looked at, between two checks of the budget."""

MAX_EXEMPT: Final = 20_000
"""Devices that are read in one cycle without being charged to the pod: some 40 ms. Of slices that
were there before the first pod all are read ahead
(:class:`plugins.framework.read_ahead.ReadAheadPlugin`)."""


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

    *Cost*: the first pod with a new kind of request pays an evaluation for each device that is
    distinct for its selectors, a microsecond for each selector and device, and some microseconds
    for each node whose pools were not read ahead; later pods pay for the nodes whose devices
    changed.
    """

    def __init__(self, columns: Columns, pools: PoolIndex, devices: Devices) -> None:
        self.columns = columns
        self.pools = pools
        self._devices = devices
        self._kinds: ByteBounded[Hashable, FreeCounts] = ByteBounded(
            MAX_BYTES, lambda _, counts: counts.bytes
        )
        self._cursor = self._pool_version = self._device_version = 0
        self._nodes: list[Node | None] = []
        self._row_of_pool: dict[PoolId, Rows] = {}
        self._shared_pools: set[PoolId] = set()
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
            if taken is None:
                counts.all_have_changed()
                continue
            for device in taken:
                counts.has_changed(device.pool_id)

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

    def _changed_nodes(self, rows: Iterable[int]) -> Rows:
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

    def _rows_of_pools(self, pools: Collection[PoolId] | None, view: SlicesView) -> Rows:
        """Return the rows on which pools may have changed: those that reach, or reached, one."""
        if pools is None or not self._shared_pools.isdisjoint(pools):
            self._row_of_pool.clear()
            self._shared_pools.clear()
            return set(range(len(self.columns)))
        # Rows that still reach a pool are entered again when their devices are looked up.
        changed: Rows = set().union(*(self._row_of_pool.pop(pool, ()) for pool in pools))
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

    def is_kept(self, wanted: Countable) -> bool:
        """Return whether requests are counted already, or half of the memory is still left."""
        return wanted.key in self._kinds or self._kinds.bytes < MAX_BYTES // 2

    def enough(
        self, wanted: Countable, budget: AttemptBudget, *, exempt: int = MAX_EXEMPT
    ) -> tuple[BoolArray, BoolArray]:
        """Return bool (n_rows,) twice: the nodes with enough devices, and those to be searched.

        Parameters
        ----------
        exempt
            About how many devices may be read outside of the budget.

        Raises
        ------
        AttemptBudgetExceededError
            When the attempt has used up its budget; what was counted is kept.
        """
        n_rows = len(self.columns)
        counts = self._kinds.get(wanted.key)
        if counts is None:
            counts = FreeCounts(n_rows)
            self._kinds.put(wanted.key, counts)
        if counts.unknown:
            self._look_up(counts, wanted.request, budget, exempt)
        counts.recount(self.allocated.devices)
        free = counts.free[:n_rows]
        return free >= wanted.needed, free == SEARCH

    def _look_up(
        self, counts: FreeCounts, request: Request, budget: AttemptBudget, exempt: int
    ) -> None:
        """Find the devices that match on all unknown rows."""
        while counts.unknown:
            rows = list(islice(counts.unknown, _AT_ONCE))
            if exempt > 0:
                with budget.exempt():
                    # What the devices look like is nobody's choice but the drivers'.
                    exempt -= self._prepare(rows)
            for row in rows:
                budget.check()
                self._look_up_row(counts, request, row, budget)
                counts.unknown.discard(row)
        counts.forget_unused()
        self._kinds.weigh_again()

    def _prepare(self, rows: Iterable[int]) -> int:
        """Read the pools of rows; return about how many devices that was."""
        effort = 0
        for row in rows:
            node = self._nodes[row] if row < len(self._nodes) else None
            pools = None if node is None else self._pools_of(node)
            effort += 1
            if pools is None or pools.is_common:
                continue
            effort += len(pools.devices)
        return effort

    def _pools_of(self, node: Node) -> NodePools | None:
        try:
            return self.pools.pools(node)
        except AllocationError:
            return None

    def _look_up_row(
        self, counts: FreeCounts, request: Request, row: int, budget: AttemptBudget
    ) -> None:
        node = self._nodes[row] if row < len(self._nodes) else None
        if node is None:
            if row < len(counts.free):
                counts.leave(row)
            return
        pools = self._pools_of(node)
        if pools is None:
            counts.enter(row, None, ())
        elif not counts.join(row, pools):
            parts = tuple(self._part(counts, request, pool, node, budget) for pool in pools.pools)
            counts.enter(row, pools, parts)
            for pool in pools.pools:
                if pool.is_local:
                    self._row_of_pool.setdefault(pool.id, set()).add(row)
                else:
                    self._shared_pools.add(pool.id)

    def _part(
        self, counts: FreeCounts, request: Request, pool: Pool, node: Node, budget: AttemptBudget
    ) -> Part:
        known = None if pool.is_local or pool.chooses_by_device else counts.part(pool)
        if known is not None:
            return known
        return Part(pool, _matching(request, pool, node, budget), self.allocated.devices)


def _matching(
    request: Request, pool: Pool, node: Node, budget: AttemptBudget
) -> tuple[DeviceId, ...] | None:
    """Return the devices of a pool that a request can have on a node, or None for a search."""
    found = []
    try:
        for start in range(0, len(pool.devices), _AT_ONCE):
            budget.glance()
            for device in request.matching(pool.devices[start : start + _AT_ONCE]):
                rule = device.node_rule
                if (rule is not None and not rule.matches(node)) or (
                    device.taints and not request.tolerates(device)
                ):
                    continue
                if not _is_simple(device):
                    return None
                found.append(device.id)
    except AllocationError:
        return None
    return tuple(found)


def _is_simple(device: PooledDevice) -> bool:
    """Return whether a device is either in use or free, and its nodes can be written down.

    Of several terms of a node selector, which the API server refuses, no allocation can be made.
    """
    spec = device.slice.spec
    selector = (device.device if spec.per_device_node_selection else spec).node_selector
    if selector is not None and len(selector.node_selector_terms) > 1:
        return False
    return not (device.is_shared or device.has_policies or device.device.consumes_counters)
