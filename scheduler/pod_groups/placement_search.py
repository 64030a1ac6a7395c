"""A bounded search for a placement of the members, where placing them in one order has failed.

It walks the placements that can be reached by putting one member after another on a node that all
filters accept at that moment, depth first, and no placement twice. Where it ends without a result
and was not cut short, no order of the members has one.

    order matters:     members with affinity, spreading, volumes or claims, those that others look
                       for, and all in a profile with users' filters: tried in any order
    order is free:     the others, in one order, since two pods that keep each other off a node do
                       so whichever of them comes first

A node that is rejected for a lasting reason is not asked about again further down, which bounds the
members that can still come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from cache.value import Value
from plugins.framework.cycle_state import CycleState
from scheduler.pod_groups.counting import lastingly_rejected
from scheduler.pod_groups.shapes import has_claims
from scheduler.pod_groups.ties import tied_members
from scheduler.runtime.judgement import pre_filter, search

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from cache.pod_info import PodInfo
    from plugins.framework.results import BoolArray, RowArray
    from scheduler.pod_groups.shapes import Likeness, Shapes
    from scheduler.pod_groups.trial_placements import TrialPlacements
    from scheduler.runtime.judgement import Candidates

MAX_DEPTH: Final = 200
"""Members that a search places at most: each is a call within a call."""

MAX_WIDTH: Final = 12
"""Nodes that are tried for one member; where more are feasible, the search is not complete."""

SHARE: Final = 0.5
"""Of the group's budget: the rest is for what comes after."""


class SearchEndedError(Exception):
    """The search has used what it may use."""


class _Found(Value, frozen=True):
    """The verdicts on one member at one moment."""

    state: CycleState
    rows: RowArray
    """The feasible nodes."""
    is_dead: bool
    """Whether no node can become feasible by more pods."""


class PlacementSearch:
    """Search for a placement of a number of members.

    Parameters
    ----------
    trial
        Holds the members that are placed already; after a success those that were found as well.
    shapes
        The shapes of the group.
    members
        Those that are not placed, the hardest to place first.
    among
        The only nodes that count; None for all nodes.

    Attributes
    ----------
    is_complete
        Whether everything was tried, as far as the search went.
    most
        The most members that were placed together.
    left_steps
        The runs of the filters that are left.
    """

    def __init__(
        self,
        trial: TrialPlacements,
        shapes: Shapes,
        members: Sequence[PodInfo],
        among: Candidates | None,
        max_steps: int,
    ) -> None:
        self._trial = trial
        self._shapes = shapes
        self._among = among
        self.left_steps = max_steps
        self._nodes = trial.cycle.snapshot.all_nodes()
        tied = tied_members(trial, shapes, members)
        self._tied = _queues(shapes, [each for each in members if shapes.likeness(each) in tied])
        self._free = [each for each in members if shapes.likeness(each) not in tied]
        self._ordered = any(has_claims(each) for each in members)
        self._seen: set[Hashable] = set()
        self._path: list[Hashable] = []
        self.is_complete = True
        self.most = len(trial)

    def run(self, needed: int) -> bool:
        """Place so many more members, or none; return whether they are placed.

        Parameters
        ----------
        needed
            At most :data:`MAX_DEPTH`.

        Raises
        ------
        PluginError
            When a plugin fails.
        """
        start = len(self._trial)
        try:
            if self._walk_tied(needed):
                return True
        except SearchEndedError:
            self.is_complete = False
        self._trial.undo(start)
        return False

    # --- walking ------------------------------------------------------------------------------

    def _walk_tied(self, needed: int) -> bool:
        """Place members of which the order matters, and then the others."""
        if needed <= 0:
            return True
        if self._was_here(-1):
            return False
        waiting = [likeness for likeness, queue in self._tied.items() if queue]
        found = {likeness: self._judge(self._tied[likeness][0]) for likeness in waiting}
        alive = sum(len(self._tied[each]) for each in waiting if not found[each].is_dead)
        if alive + len(self._free) < needed:
            return False
        for likeness in sorted(waiting, key=lambda each: len(found[each].rows)):
            if self._try_nodes(likeness, found[likeness], needed):
                return True
        return len(self._free) >= needed and self._walk_free(0, needed)

    def _try_nodes(self, likeness: Likeness, found: _Found, needed: int) -> bool:
        queue = self._tied[likeness]
        info = queue.pop(0)
        for row in self._tried(info, found):
            if self._put(info, row, found):
                self._path.append((likeness, row))
                if self._walk_tied(needed - 1):
                    return True
                self._path.pop()
                self._trial.undo(len(self._trial) - 1)
        queue.insert(0, info)
        return False

    def _walk_free(self, index: int, needed: int) -> bool:
        """Place members of which the order does not matter, from one of them on."""
        if needed <= 0:
            return True
        if len(self._free) - index < needed:
            return False
        if self._was_here(index):
            return False
        info = self._free[index]
        found = self._judge(info)
        likeness = self._shapes.likeness(info)
        for row in self._tried(info, found):
            if self._put(info, row, found):
                self._path.append((likeness, row))
                if self._walk_free(index + 1, needed - 1):
                    return True
                self._path.pop()
                self._trial.undo(len(self._trial) - 1)
        # Without this member. Its like are no better off, as nothing was placed instead.
        after = index + 1
        while after < len(self._free) and self._shapes.likeness(self._free[after]) == likeness:
            after += 1
        return self._walk_free(after, needed)

    def _was_here(self, index: int) -> bool:
        """Return whether this placement was reached before, and remember it."""
        path: Hashable = tuple(self._path) if self._ordered else frozenset(_counted(self._path))
        key = (index, path)
        if key in self._seen:
            return True
        self._seen.add(key)
        return False

    # --- one member ---------------------------------------------------------------------------

    def _judge(self, info: PodInfo) -> _Found:
        if not self.left_steps or self._is_over():
            raise SearchEndedError
        self.left_steps -= 1
        framework, nodes = self._trial.framework, self._nodes
        state = CycleState(self._trial.budget)
        pre = pre_filter(framework, state, info, nodes)
        found = search(framework, state, info, nodes, pre, self._among)
        view = found.feasible()
        rows: RowArray = np.arange(len(view)) if view.rows is None else view.rows
        dead = False
        if not len(rows):
            lasting: BoolArray = lastingly_rejected(framework, state, info, found, len(nodes))
            dead = bool(lasting.all() if self._among is None else lasting[self._among.rows].all())
        return _Found(state, rows, dead)

    def _is_over(self) -> bool:
        budget = self._trial.budget
        return budget.has_used(budget.limit_s * SHARE)

    def _tried(self, info: PodInfo, found: _Found) -> list[int]:
        """Return the feasible nodes to try, those with the least free room first."""
        rows = found.rows
        room = _room(self._nodes.columns.allocatable, self._nodes.columns.requested, rows)
        order = rows[np.lexsort((rows, room))]
        if len(order) > MAX_WIDTH:
            self.is_complete = False
            order = order[:MAX_WIDTH]
        return [int(row) for row in order]

    def _put(self, info: PodInfo, row: int, found: _Found) -> bool:
        trial = self._trial
        decision = trial.cycle.place_on(trial.framework, info, row, len(found.rows))
        if not trial.put(decision, found.state.copy()).is_success:
            return False
        self.most = max(self.most, len(trial))
        return True


def _room(
    allocatable: np.ndarray[tuple[int, int], np.dtype[np.int64]],
    requested: np.ndarray[tuple[int, int], np.dtype[np.int64]],
    rows: RowArray,
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return float64 (len(rows),): the free share of the node, summed over its resources."""
    has = allocatable[:, rows].astype(np.float64)
    free = np.maximum(has - requested[:, rows], 0)
    shares = np.divide(free, has, out=np.zeros_like(free), where=has > 0)
    # The size breaks ties between empty nodes.
    largest = np.maximum(has.max(axis=1, keepdims=True, initial=1), 1)
    total: np.ndarray[tuple[int], np.dtype[np.float64]] = (shares + free / largest).sum(axis=0)
    return total


def _queues(shapes: Shapes, members: Sequence[PodInfo]) -> dict[Likeness, list[PodInfo]]:
    queues: dict[Likeness, list[PodInfo]] = {}
    for info in members:
        queues.setdefault(shapes.likeness(info), []).append(info)
    return queues


def _counted(path: Sequence[Hashable]) -> set[tuple[Hashable, int]]:
    counts: dict[Hashable, int] = {}
    for each in path:
        counts[each] = counts.get(each, 0) + 1
    return set(counts.items())
