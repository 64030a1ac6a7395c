"""One policy's whole verdict on one pod: every node filtered, every feasible node scored."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from plugins.framework.cycle_state import CycleState
from scheduler.host_selection import HostSelector
from scheduler.node_statuses import SearchStatuses
from scheduler.scheduling_cycle import SchedulingCycle

if TYPE_CHECKING:
    from collections.abc import Callable

    from cache.pod_info import PodInfo
    from cache.snapshot import Snapshot
    from plugins.framework.results import BoolArray, RowArray
    from plugins.framework.status import Status
    from scheduler.decision import Scores
    from scheduler.framework_runner import FrameworkRunner
    from scheduler.scheduling_cycle import Search

_NO_MATTER = HostSelector(0)
"""A search chooses nothing."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a policy says of every node of a snapshot. Good until the snapshot changes.

    Parameters
    ----------
    feasible
        bool, shape (n_nodes,).
    count
        How many nodes are feasible.
    scores
        Of the feasible nodes, in the order of their rows; None where there is no choice: fewer than
        two of them.
    seconds
        What it took.
    """

    snapshot: Snapshot
    search: Search
    feasible: BoolArray
    count: int
    scores: Scores | None
    seconds: float

    def best_rows(self) -> RowArray:
        """Return the rows of the nodes that nothing is better than, intp, ascending."""
        if self.scores is None:
            return np.flatnonzero(self.feasible)
        total = self.scores.total
        best: RowArray = self.scores.rows[total == total.max()]
        return best

    def status_of(self, row: int) -> Status:
        """Return why a node is not feasible.

        *Cost*: asks the filters for their reasons.
        """
        verdicts = SearchStatuses(self.snapshot.all_nodes(), self.search.pre, self.search.outcome)
        return verdicts.status_of(self.snapshot.columns.node_infos[row].name)


def judge(
    framework: FrameworkRunner,
    snapshot: Snapshot,
    info: PodInfo,
    clock: Callable[[], float] = perf_counter,
) -> Judgement:
    """Ask the filters of a policy about all nodes, and its scores about those that are feasible.

    Nothing is changed but what plugins note in a cycle state of their own. PostFilter is not asked:
    it may evict. Nor are extenders: they are for the live cycle, and may note what they are asked.

    Parameters
    ----------
    snapshot
        At least one node.
    clock
        Seconds; measures.

    Raises
    ------
    PluginError
        When a plugin fails.
    """
    began = clock()
    state = CycleState()
    search = SchedulingCycle(snapshot, _NO_MATTER).search(framework, state, info)
    feasible: BoolArray = np.zeros(len(snapshot), dtype=np.bool_)
    scores = None
    if search.outcome is not None:
        mask, view = search.outcome.feasible, search.nodes
        if mask is not None:
            view = view.subset(np.flatnonzero(mask))
        feasible[slice(None) if view.rows is None else view.rows] = True
        if len(view) > 1 and framework.scores_nodes:
            scores = framework.run_score(state, info, view, keep=True)
    count = int(np.count_nonzero(feasible))
    return Judgement(snapshot, search, feasible, count, scores, clock() - began)
