"""Judge one pod with a profile: filter every node, score the feasible nodes.

A decision, a rehearsal, an explanation and a shadow use the same functions, so their results
cannot differ. Only the cycle state is changed, by the plugins. PostFilter is not called, because it
may evict pods; nor are extenders, because they may record the requests.

*Source*: pkg/scheduler/schedule_one.go, findNodesThatFitPod (1.36).
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from cache.value import Value
from plugins.framework.cycle_state import CycleState
from plugins.framework.status import Code
from scheduler.decision.decision import Diagnosis
from scheduler.runtime.filter_outcome import PluginError
from scheduler.runtime.node_statuses import SearchStatuses

if TYPE_CHECKING:
    from collections.abc import Callable

    from cache.columns import NodesView
    from cache.pod_info import PodInfo
    from cache.snapshot import Snapshot
    from plugins.framework.results import BoolArray, RowArray
    from plugins.framework.status import Status
    from scheduler.decision.decision import Scores
    from scheduler.runtime.filter_outcome import FilterOutcome
    from scheduler.runtime.framework_runner import FrameworkRunner
    from scheduler.runtime.plugin_set import PreFilterOutcome


class Candidates:
    """The only nodes that a pod may be placed on; plugins see all nodes of the snapshot.

    Parameters
    ----------
    rows
        intp, ascending, without duplicates.
    num_nodes
        The number of nodes in the snapshot.

    Notes
    -----
    Valid as long as the rows stand for the same nodes.
    """

    __slots__ = ("mask", "rows")

    def __init__(self, rows: RowArray, num_nodes: int) -> None:
        self.rows = rows
        self.mask: BoolArray = np.zeros(num_nodes, dtype=np.bool_)
        """bool (n_nodes,)"""
        self.mask[rows] = True

    def __len__(self) -> int:
        return len(self.rows)


class LikePods:
    """Pods that no plugin can tell apart, decided about one after another in one trial.

    Plugins that had nothing to do for the first of them are not asked about the others. The caller
    promises that nothing but such pods comes to the nodes, or leaves them, in between, that they
    have no terms about other pods, and that no user's plugin is in the profile.
    """

    __slots__ = ("memo",)

    def __init__(self) -> None:
        self.memo: object | None = None
        """What whoever decides remembers of the first one."""


class Search(Value, frozen=True):
    """The results of PreFilters and filters for a pod.

    ``nodes`` are the nodes for which the filters ran; ``outcome`` is None when a PreFilter
    rejected the pod before that.
    """

    nodes: NodesView
    pre: PreFilterOutcome
    outcome: FilterOutcome | None

    def feasible(self) -> NodesView:
        """Return the feasible nodes."""
        if self.outcome is None:
            return self.nodes.subset(np.zeros(0, dtype=np.intp))
        mask = self.outcome.feasible
        return self.nodes if mask is None else self.nodes.subset(np.flatnonzero(mask))

    def diagnosis(self, num_nodes: int) -> Diagnosis:
        """Return why no node was feasible of all that there are."""
        pre, absent = self.pre, None
        narrowing = pre.narrowing_plugins
        if not pre.status.is_success:
            return Diagnosis(num_nodes, pre_filter=pre.status, narrowing_plugins=narrowing)
        if pre.node_names is not None:
            absent = pre.narrowed_away()
        rejected = () if self.outcome is None else self.outcome.rejected()
        return Diagnosis(num_nodes, absent=absent, rejected=rejected, narrowing_plugins=narrowing)


class Judgement(Value, frozen=True):
    """The result of a profile for every node of a snapshot. It is valid until the snapshot changes.

    Parameters
    ----------
    view
        The feasible nodes.
    feasible
        bool, shape (n_nodes,).
    scores
        The scores of the feasible nodes, in the order of their rows; None if no plugin scores them.
    seconds
        The duration of the judgement.
    """

    snapshot: Snapshot
    search: Search
    view: NodesView
    feasible: BoolArray
    scores: Scores | None
    seconds: float

    @property
    def count(self) -> int:
        """How many nodes are feasible."""
        return len(self.view)

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
    state: CycleState | None = None,
    *,
    scored_from: int = 1,
    clock: Callable[[], float] = perf_counter,
) -> Judgement:
    """Ask the filters of a profile about all nodes, and its scores about those that are feasible.

    Parameters
    ----------
    snapshot
        At least one node.
    state
        For the plugins' notes; None for one of its own.
    scored_from
        How many nodes must be feasible for them to be scored.
    clock
        Seconds; measures.

    Raises
    ------
    PluginError
        When a plugin fails.
    """
    began = clock()
    state = CycleState() if state is None else state
    nodes = snapshot.all_nodes()
    found = search(framework, state, info, nodes, pre_filter(framework, state, info, nodes))
    view = found.feasible()
    feasible: BoolArray = np.zeros(len(snapshot), dtype=np.bool_)
    feasible[slice(None) if view.rows is None else view.rows] = True
    scores = None
    if len(view) >= scored_from and framework.scores_nodes:
        scores = framework.run_score(state, info, view, keep=True)
    return Judgement(snapshot, found, view, feasible, scores, clock() - began)


def pre_filter(
    framework: FrameworkRunner, state: CycleState, info: PodInfo, nodes: NodesView
) -> PreFilterOutcome:
    """Run the PreFilters over all nodes; raises PluginError when one fails."""
    pre = framework.run_pre_filter(state, info, nodes)
    if pre.status.code is Code.ERROR:
        raise PluginError(pre.status)
    return pre


def search(
    framework: FrameworkRunner,
    state: CycleState,
    info: PodInfo,
    nodes: NodesView,
    pre: PreFilterOutcome,
    among: Candidates | None = None,
) -> Search:
    """Run the filters over the nodes that PreFilters left; raises PluginError when one fails.

    Parameters
    ----------
    among
        The only nodes that count; None for all nodes.
    """
    if not pre.status.is_success:
        return Search(nodes, pre, None)
    if pre.node_names is not None:
        row_of = nodes.columns.row_of
        named = sorted(row_of[name] for name in pre.node_names if name in row_of)
        rows = np.array(named, dtype=np.intp)
        nodes = nodes.subset(rows if among is None else rows[among.mask[rows]])
    elif among is not None:
        nodes = nodes.subset(among.rows)
    return Search(nodes, pre, framework.run_filter(state, info, nodes))
