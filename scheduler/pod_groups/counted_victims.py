"""Choose victims for like members by columns: which nodes, and then who of them.

free amounts of all nodes -> what evictions below each priority would free
-> the lowest priority that suffices -> the nodes where the fewest pods go for each member
-> the victims among the pods of these nodes
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import numpy as np

from cache.value import Value
from plugins.default_preemption import LOWEST_PRIORITY, importance_in, split_by_budgets
from scheduler.pod_groups.counted_room import CountedRoom
from scheduler.pod_groups.reprieve import choose

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from cache.columns import NodesView
    from cache.pod_info import PodInfo
    from plugins.default_preemption import Harm
    from plugins.framework.attempt_budget import AttemptBudget
    from plugins.framework.results import BoolArray, IntArray, RowArray
    from scheduler.pod_groups.counted_room import NodeSlots
    from scheduler.pod_groups.losses import Losses

FEW_PODS: Final = 48
"""Among so many pods all choices of victims are looked at, as far as :data:`MAX_STEPS` goes."""

MAX_STEPS: Final = 1500
"""Choices that are looked at, some 10 us each."""

_FEW_NODES: Final = 32
"""If so many nodes suffice, or fewer, more are looked at: the cheapest choice may be among them."""

MAX_DOMAINS: Final = 4
"""Domains of which single pods are looked at."""

_VIOLATION: Final = 2**33
"""More than priorities differ: added to that of a pod whose eviction would violate a budget."""

_LIFT: Final = 2.0**31

_Number = TypeVar("_Number", np.int64, np.float64)


class CountedVictims(NamedTuple):
    """The victims by UID, and the harm of evicting them."""

    pods: Mapping[str, PodInfo]
    harm: Harm


class _Evictable(Value, frozen=True, eq=False):
    """The pods that may be evicted, as columns of shape (n_pods,).

    Parameters
    ----------
    rows
        The row of each pod's node.
    levels
        Its priority, and :data:`_VIOLATION` more if its eviction would violate a budget.
    costs
        How many pods go with it, roughly: those of a higher priority count a little more.
    freed
        int64 (n_pods, n_resources).
    """

    rows: RowArray
    levels: IntArray
    costs: npt.NDArray[np.float64]
    freed: IntArray

    def where(self, mask: BoolArray) -> _Evictable:
        return _Evictable(self.rows[mask], self.levels[mask], self.costs[mask], self.freed[mask])


class _Reach(NamedTuple):
    """The nodes of a domain that evictions make room on, the cheapest first.

    Parameters
    ----------
    estimate
        The level, and how many pods go.
    order, reached
        The rows, and how many more members fit on these and all before.
    missing
        How many more have to fit.
    """

    estimate: tuple[int, float]
    order: RowArray
    reached: IntArray
    missing: int


class CountedSearch:
    """A search for victims for members that are counted.

    Parameters
    ----------
    nodes
        All nodes.
    usable
        bool (n_nodes,): the nodes that evictions may make feasible.
    free
        int64 (n_nodes, n_resources): what is free on each node.
    slots
        Of the members.
    losses
        What may be evicted.
    budget
        Of the group.

    Notes
    -----
    *Cost*: some microseconds for each pod below the priority, once; for each domain some vector
    operations over its pods, and some 10 us for each pod of the nodes that are chosen.
    """

    def __init__(
        self,
        nodes: NodesView,
        usable: BoolArray,
        free: IntArray,
        slots: NodeSlots,
        losses: Losses,
        budget: AttemptBudget,
    ) -> None:
        self._nodes = nodes
        self._slots = slots
        self._losses = losses
        self._budget = budget
        self._free = free
        self._fitting = np.where(usable, slots.counts(free), 0)
        self._usable = usable
        self._pods = self._evictable()

    def most(self, rows: RowArray) -> int:
        """Return how many members fit on some nodes without all pods that may be evicted."""
        return int(self._counts(self._among(rows), rows).sum())

    def find_cheapest(
        self, domains: Sequence[RowArray], needed: int
    ) -> list[tuple[int, CountedVictims]]:
        """Return the domains in which members fit, with the victims, the cheapest first.

        Of many pods only those of :data:`MAX_DOMAINS` domains are looked at that seem the cheapest
        by columns.
        """
        reaches = [(at, self._reach(rows, needed)) for at, rows in enumerate(domains)]
        able = [(at, reach) for at, reach in reaches if reach is not None]
        if len(self._pods.rows) > FEW_PODS:
            able = sorted(able, key=lambda one: one[1].estimate)[:MAX_DOMAINS]
        found = [
            (at, victims)
            for at, reach in able
            if (victims := self._find(reach, domains[at], needed)) is not None
        ]
        return sorted(found, key=lambda one: one[1].harm)

    def _reach(self, rows: RowArray, needed: int) -> _Reach | None:
        """Return the nodes of a domain with which members fit; None if they never do."""
        missing = needed - int(self._fitting[rows].sum())
        nothing = np.empty(0, dtype=np.intp)
        if missing <= 0:
            return _Reach((0, 0.0), nothing, nothing, 0)
        pods = self._among(rows)
        if len(pods.rows) <= FEW_PODS:
            every = np.unique(pods.rows)
            return _Reach((0, 0.0), every, np.full(len(every), missing), missing)
        level = self._lowest_level(pods, rows, needed)
        if level is None:
            return None
        order, gains, costs = self._best_rows(pods.where(pods.levels <= level))
        reached = np.cumsum(gains)
        count = int(np.searchsorted(reached, missing)) + 1
        return _Reach((level, float(costs[:count].sum())), order, reached, missing)

    def _find(self, reach: _Reach, rows: RowArray, needed: int) -> CountedVictims | None:
        if not reach.missing:
            return CountedVictims({}, self._losses.harm(()))
        best: CountedVictims | None = None
        seen = 0
        for times in (1, 2, 4):
            count = int(np.searchsorted(reach.reached, times * reach.missing)) + 1
            if len(self._pods.rows) <= FEW_PODS:
                count = len(reach.order)
            if best is not None and (count > _FEW_NODES or count == seen):
                break
            seen = count
            found = self._among_nodes(reach.order[:count], rows, needed)
            if found is not None and (best is None or found.harm < best.harm):
                best = found
        return best

    # --- columns ------------------------------------------------------------------------------

    def _evictable(self) -> _Evictable:
        losses, gangs = self._losses, self._losses.gangs
        lowest = self._nodes.derived(LOWEST_PRIORITY)
        rows: list[int] = []
        infos: list[PodInfo] = []
        costs: list[float] = []
        priorities: list[int] = []
        for row in np.flatnonzero(self._usable & (lowest < losses.priority)).tolist():
            self._budget.check()
            for info, cost, priority in losses.costs(self._nodes.node_info(row)):
                rows.append(row)
                infos.append(info)
                costs.append(cost * (priority + _LIFT) / _LIFT)
                priorities.append(priority)
        freed = [self._slots.freed(info) for info in infos]
        levels = np.array(priorities, dtype=np.int64)
        if losses.budgets.has_any:
            ordered = sorted(infos, key=lambda info: importance_in(gangs, info))
            violating = {info.uid for info in split_by_budgets(ordered, losses.budgets)[0]}
            levels += np.array([info.uid in violating for info in infos], np.int64) * _VIOLATION
        return _Evictable(
            np.array(rows, dtype=np.intp),
            levels,
            np.array(costs, dtype=np.float64),
            np.array(freed, dtype=np.int64).reshape(len(infos), self._free.shape[1]),
        )

    def _among(self, rows: RowArray) -> _Evictable:
        is_among = np.zeros(len(self._nodes), dtype=np.bool_)
        is_among[rows] = True
        return self._pods.where(is_among[self._pods.rows])

    def _counts(self, pods: _Evictable, rows: RowArray) -> IntArray:
        free = self._free.copy()
        np.add.at(free, pods.rows, pods.freed)
        counts: IntArray = np.where(self._usable[rows], self._slots.counts(free[rows]), 0)
        return counts

    def _lowest_level(self, pods: _Evictable, rows: RowArray, needed: int) -> int | None:
        """Return the lowest level up to which evictions suffice."""
        levels = np.unique(pods.levels)
        low, high = 0, len(levels)
        while low < high:
            middle = (low + high) // 2
            below = pods.where(pods.levels <= levels[middle])
            if int(self._counts(below, rows).sum()) >= needed:
                high = middle
            else:
                low = middle + 1
        return int(levels[low]) if low < len(levels) else None

    def _best_rows(self, pods: _Evictable) -> tuple[RowArray, IntArray, npt.NDArray[np.float64]]:
        """Return the rows where members cost the least first, with how many more fit on each.

        The last value is what these cost.
        """
        size = (pods.freed / np.maximum(self._free.max(axis=0, initial=1), 1)).sum(axis=1)
        order = np.lexsort((-size, pods.levels, pods.rows))
        rows, freed, costs = pods.rows[order], pods.freed[order], pods.costs[order]
        starts = np.flatnonzero(np.append(True, rows[1:] != rows[:-1]))
        lengths = np.diff(np.append(starts, len(rows)))
        freed_so_far = _sums_within(freed, starts, lengths)
        cost_so_far = _sums_within(costs[:, None], starts, lengths)[:, 0]
        counts = self._slots.counts(self._free[rows] + freed_so_far)
        gains = counts - self._fitting[rows]
        with np.errstate(divide="ignore"):
            ratios = np.where(gains > 0, cost_so_far / gains, np.inf)
        best = np.minimum.reduceat(ratios, starts)
        most = np.maximum.reduceat(gains, starts)
        helps = np.flatnonzero(most > 0)
        ranked = helps[np.argsort(best[helps], kind="stable")]
        return rows[starts[ranked]], most[ranked], best[ranked] * most[ranked]

    # --- pods ---------------------------------------------------------------------------------

    def _among_nodes(self, chosen: RowArray, rows: RowArray, needed: int) -> CountedVictims | None:
        losses = self._losses
        infos = self._nodes.columns.node_infos
        units = losses.units(infos[row] for row in chosen.tolist())
        pods = [info for unit in units for info in unit.pods]
        room = self._room(chosen, pods, rows, needed)
        found = choose(room, losses, units, FEW_PODS, MAX_STEPS)
        return None if found is None else CountedVictims(found[1], found[0])

    def _room(
        self, chosen: RowArray, pods: list[PodInfo], rows: RowArray, needed: int
    ) -> CountedRoom:
        """Return the nodes of some pods; all other nodes of the domain do not change."""
        row_of = self._nodes.columns.row_of
        inside = set(rows[self._usable[rows]].tolist())
        concerned = set(chosen.tolist()) | {row_of.get(info.node_name, -1) for info in pods}
        concerned &= inside
        infos = self._nodes.columns.node_infos
        free = {infos[row].name: self._free[row].tolist() for row in concerned}
        at = np.array(sorted(concerned), dtype=np.intp)
        elsewhere = int(self._fitting[rows].sum()) - int(self._fitting[at].sum())
        return CountedRoom(self._slots, free, needed, elsewhere)


def _sums_within(
    amounts: npt.NDArray[_Number], starts: RowArray, lengths: RowArray
) -> npt.NDArray[_Number]:
    """Return the running sums over the first axis, which begin anew at each start."""
    sums: npt.NDArray[_Number] = np.cumsum(amounts, axis=0)
    before = np.where(starts[:, None] > 0, sums[starts - 1], 0)
    within: npt.NDArray[_Number] = sums - np.repeat(before, lengths, axis=0)
    return within
