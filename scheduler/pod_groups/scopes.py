"""The sets of nodes in which a group is tried, judged all at once by sums of what fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from cache.value import Value
from plugins.names import INTER_POD_AFFINITY
from plugins.node_resources_fit import NodeResourcesFit
from scheduler.pod_groups.counting import Counts, count
from scheduler.pod_groups.domains import Grouping, in_order, key_problem
from scheduler.pod_groups.needs import free_room, least_requests, too_small
from scheduler.pod_groups.packing import Kind
from scheduler.pod_groups.ties import keys_apart
from scheduler.runtime.filter_outcome import PluginError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cache.pod_info import PodInfo
    from plugins.framework.results import IntArray
    from scheduler.pod_groups.plan import GroupTask, PlacedMember
    from scheduler.pod_groups.shapes import Shape, Shapes
    from scheduler.pod_groups.trial_placements import TrialPlacements
    from scheduler.runtime.judgement import Candidates

MAX_BYTES: Final = 1 << 25
"""32 MiB for what is counted of the shapes of one group; further shapes are not counted."""


MAX_DOMAINS: Final = 64
"""Domains that are tried for members that want to be together, by a term instead of by the group's
rules: those with the most room."""


class Scope(Value, frozen=True, eq=False):
    """A set of nodes in which the minimum of a group may be placed.

    Parameters
    ----------
    among
        These nodes; None for all.
    beyond
        The nodes for members beyond the minimum; None for all.
    bound
        No more members fit.
    domain, preferred_domain
        The values of the topology keys; empty without one.
    """

    among: Candidates | None
    beyond: Candidates | None
    bound: int
    domain: str = ""
    preferred_domain: str = ""


class Scopes:
    """All scopes of one group.

    Parameters
    ----------
    trial
        Nothing is placed yet.
    pick
        Decides between domains that are equally good.

    Attributes
    ----------
    is_counted
        Whether plugins cannot tell the members apart, and as many fit as are counted.
    is_beyond_bounds
        Whether no scope can hold the members that are needed.

    Notes
    -----
    *Cost*: one run of the filters for each shape, and some vector operations for each shape and
    topology key, whatever the number of domains.
    """

    def __init__(
        self,
        trial: TrialPlacements,
        task: GroupTask,
        shapes: Shapes,
        pick: Callable[[int], int],
    ) -> None:
        self._task = task
        self._shapes = shapes
        self._pick = pick
        self._columns = trial.cycle.snapshot.columns
        nodes = trial.cycle.snapshot.all_nodes()
        self._own_rows = _nominations(task, self._columns.row_of)
        self._sizes = [
            sum(info.uid not in self._own_rows for info in shape.members) for shape in shapes.shapes
        ]
        self._counts: list[Counts | None] = []
        most = MAX_BYTES // (8 * len(nodes) + 1)
        for shape, size in zip(shapes.shapes, self._sizes, strict=True):
            counts = None
            if size and len(self._counts) < most:
                try:
                    counts = count(task.framework, shape.first, nodes, size, task.budget)
                except PluginError:
                    counts = None  # a decision says whose fault it is
            self._counts.append(counts)
        self.is_counted = (
            len(shapes) == 1
            and not self._own_rows
            and self._counts[0] is not None
            and self._counts[0].is_exact
            and len({shapes.likeness(info) for info in task.members}) == 1
        )
        filters = {plugin.name for plugin in task.framework.judges.filters}
        minds_terms = INTER_POD_AFFINITY in filters
        self._apart = [keys_apart(s.members) if minds_terms else () for s in shapes.shapes]
        self._least = self._least_requests()
        self.is_beyond_bounds = True
        rules = task.rules
        self._required = rules.topology_key
        preferred = rules.preferred_topology_key
        self._preferred = (
            "" if not preferred or key_problem(self._columns, preferred) else preferred
        )

    # --- bounds -------------------------------------------------------------------------------

    def _least_requests(self) -> dict[str, int]:
        """Return what the members that are needed ask for at least of what has to be free."""
        fit = [p for p in self._task.framework.judges.filters if isinstance(p, NodeResourcesFit)]
        if not fit or self._own_rows or None in self._counts:
            return {}
        least = least_requests(self._shapes.shapes, self._task.needed)
        return {name: amount for name, amount in least.items() if fit[0].limits(name)}

    def _bounds(self, grouping: Grouping) -> IntArray:
        """Return int64 (n_domains,): no more members fit in each domain."""
        bounds = np.zeros(len(grouping), dtype=np.int64)
        bounds += len(self._own_rows)
        for shape, counts in zip(self._shapes.shapes, self._counts, strict=True):
            size = self._sizes[shape.index]
            if counts is None:
                bounds += size
            else:
                bounds += np.minimum(self._most(grouping, shape, counts), size)
        small = too_small(self._columns, grouping, self._any_slots(), self._least)
        bounds[small] = np.minimum(bounds[small], self._task.needed - 1)
        bounds[0] = 0
        return bounds

    def _most(self, grouping: Grouping, shape: Shape, counts: Counts) -> IntArray:
        """Return int64 (n_domains,): no more members of a shape fit in each domain."""
        most = grouping.sums(counts.slots)
        for key in self._apart[shape.index]:
            _, ids = self._columns.labels.get(key)
            # Nodes without the label keep nobody apart.
            bare = grouping.sums(np.where(ids == 0, counts.slots, 0))
            width = int(ids.max(initial=0)) + 1
            pairs = grouping.ids.astype(np.int64) * width + ids
            distinct = np.unique(pairs[(counts.slots > 0) & (ids > 0)])
            alone = np.bincount(distinct // width, minlength=len(grouping))
            most = np.minimum(most, bare + alone)
        return most

    def _any_slots(self) -> IntArray:
        """Return int64 (n_nodes,): how many members fit on each node, of the shapes together."""
        total = np.zeros(len(self._columns), dtype=np.int64)
        for counts in self._counts:
            if counts is None:
                return np.ones(len(self._columns), dtype=np.int64)
            total += counts.slots
        return total

    def _left(self, grouping: Grouping) -> IntArray:
        """Return int64 (n_domains,): how much is free in each domain."""
        if len(self._shapes) == 1:
            return grouping.sums(self._any_slots())
        return free_room(self._columns, grouping, self._any_slots(), self._least)

    def _rooms(self, grouping: Grouping) -> IntArray:
        rooms = np.zeros(len(grouping), dtype=np.int64)
        for row in self._own_rows.values():
            rooms[grouping.ids[row]] += 1
        return rooms

    # --- scopes -------------------------------------------------------------------------------

    def in_order(self) -> Iterator[Scope]:
        """Yield the scopes that may hold the members that are needed, the best first.

        Narrow ones first; among them those that hold the most members, then those that are left
        with the least free room.
        """
        if self._preferred:
            keys = (self._required, self._preferred) if self._required else (self._preferred,)
            grouping = Grouping(self._columns, keys)
            for domain, bound in self._ordered(grouping):
                yield self._narrow(grouping, domain, bound)
        if self._required:
            grouping = Grouping(self._columns, (self._required,))
            for domain, bound in self._ordered(grouping):
                among = grouping.candidates(domain)
                yield Scope(among, among, bound, grouping.names[domain])
        else:
            whole = Grouping.whole(self._columns)
            for _, bound in self._ordered(whole):
                yield Scope(None, None, bound)

    def _ordered(self, grouping: Grouping) -> Iterator[tuple[int, int]]:
        bounds = self._bounds(grouping)
        rooms, left = self._rooms(grouping), self._left(grouping)
        for domain in in_order(bounds, rooms, self._task.needed, left, self._pick):
            self.is_beyond_bounds = False
            yield domain, int(bounds[domain])

    def _narrow(self, grouping: Grouping, domain: int, bound: int) -> Scope:
        among = grouping.candidates(domain)
        if not self._required:
            return Scope(among, None, bound, preferred_domain=grouping.names[domain])
        wide = Grouping(self._columns, (self._required,))
        around = int(wide.ids[among.rows[0]])
        beyond = wide.candidates(around)
        return Scope(among, beyond, bound, wide.names[around], grouping.names[domain])

    def within(self, scope: Scope, key: str) -> Iterator[Candidates]:
        """Yield the parts of a scope in one domain of another key, those with most room first."""
        if key not in self._columns.label_keys:
            return
        grouping = Grouping(self._columns, (key,))
        if scope.among is not None:
            grouping.ids = np.where(scope.among.mask, grouping.ids, 0)
        bounds = self._bounds(grouping)
        left = self._left(grouping)
        rooms = self._rooms(grouping)
        for domain in in_order(bounds, rooms, 1, left, self._pick)[:MAX_DOMAINS]:
            yield grouping.candidates(domain)

    def closest(self) -> Scope:
        """Return the scope that comes closest to holding the members that are needed."""
        if not self._required:
            return Scope(None, None, self.bound_of_all())
        grouping = Grouping(self._columns, (self._required,))
        bounds = self._bounds(grouping)
        names = grouping.names
        domain = min(range(1, len(grouping)), key=lambda each: (-int(bounds[each]), names[each]))
        among = grouping.candidates(domain)
        return Scope(among, among, int(bounds[domain]), names[domain])

    def bound_of_all(self) -> int:
        """Return how many members fit at most, in whichever domains."""
        return int(self._bounds(Grouping.whole(self._columns))[1])

    # --- members ------------------------------------------------------------------------------

    def members_in_order(self, scope: Scope) -> list[PodInfo]:
        """Return the members, those with the fewest places first.

        Large members have few places, and so have those that few nodes suit. Members that nodes
        are nominated for come before all others: these rooms are theirs.
        """
        rows = slice(None) if scope.among is None else scope.among.rows
        places: dict[int, int] = {}
        for index, counts in enumerate(self._counts):
            places[index] = _UNKNOWN if counts is None else int(counts.slots[rows].sum())
        weights = self._weights()

        def key(shape: Shape) -> tuple[int, float]:
            return places[shape.index], -weights[shape.index]

        own = [info for info in self._task.members if info.uid in self._own_rows]
        rest = [
            info
            for shape in sorted(self._shapes.shapes, key=key)
            for info in shape.members
            if info.uid not in self._own_rows
        ]
        return own + rest

    def _weights(self) -> list[float]:
        """Return the largest share of what is free that one member of each shape asks for."""
        free: dict[str, float] = {}
        columns = self._columns
        for name, line in columns.resource_row.items():
            has = columns.allocatable[line] - columns.requested[line].astype(np.float64)
            free[name] = max(float(np.maximum(has, 0).sum()), 1.0)
        return [
            max((amount / free.get(n, 1.0) for n, amount in s.first.requests.items()), default=0.0)
            for s in self._shapes.shapes
        ]

    def kinds(self) -> list[Kind] | None:
        """Return the shapes for packing; None unless room is all that their filters look at."""
        found = []
        for shape, counts in zip(self._shapes.shapes, self._counts, strict=True):
            if counts is None or not counts.is_exact or self._own_rows:
                return None
            info = shape.first
            found.append(Kind(shape.index, len(shape.members), info.requests, counts.slots))
        return found

    def exact_slots(self, scope: Scope) -> list[tuple[int, int]] | None:
        """Return row and number of members for each node that has room, if that is all there is.

        None unless the members are counted and too few fit.
        """
        if not self.is_counted or scope.bound >= self._task.needed or self._counts[0] is None:
            return None
        slots = self._counts[0].slots
        rows = np.arange(len(slots)) if scope.among is None else scope.among.rows
        return [(int(row), int(slots[row])) for row in rows[slots[rows] > 0]]

    def num_counted(self, placed: Sequence[PlacedMember]) -> int:
        """Return how many of the members that are placed were counted."""
        exact = [counts is not None and counts.is_exact for counts in self._counts]
        return sum(exact[self._shapes.of(member.decision.info).index] for member in placed)


_UNKNOWN: Final = 1 << 40


def _nominations(task: GroupTask, row_of: dict[str, int]) -> dict[str, int]:
    """Return the row of the node that each nominated member is nominated for, by UID."""
    nominated = task.framework.nominated
    found = {}
    for info in task.members:
        name = info.pod.status.nominated_node_name if nominated is None else nominated.node_of(info)
        row = row_of.get(name) if name else None
        if row is not None:
            found[info.uid] = row
    return found
