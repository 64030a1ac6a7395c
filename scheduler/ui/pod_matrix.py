"""One pod as a matrix: every node by every filter, and the scores of the feasible nodes.

A cycle stops asking about a node at the first filter that refuses it. The matrix asks all filters
about all nodes, so that it shows whether a node is one change away, or several.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from plugins.framework.attempt_budget import UNLIMITED
from plugins.framework.cycle_state import CycleState
from plugins.framework.interfaces import FilterPlugin
from plugins.framework.results import NodeVerdicts
from plugins.framework.status import Code
from scheduler.runtime.judgement import pre_filter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from cache.columns import NodesView
    from cache.pod_info import PodInfo
    from cache.snapshot import Snapshot
    from plugins.framework.attempt_budget import AttemptBudget
    from plugins.framework.results import BoolArray, IntArray, RowArray
    from plugins.framework.status import Status
    from scheduler.runtime.framework_runner import FrameworkRunner

PASSES: Final = -1
NOT_ASKED: Final = -2


@dataclass(frozen=True, slots=True)
class Refusal:
    """What one filter says of the nodes that it refuses."""

    plugin: str
    reasons: tuple[str, ...]
    resolvable: bool
    """Whether the node could do once other pods were gone."""
    nodes: int


@dataclass(frozen=True, slots=True)
class Pattern:
    """The nodes of which all filters say the same.

    Parameters
    ----------
    cells
        For each plugin that refuses any node: an index into ``refusals``, ``PASSES`` or
        ``NOT_ASKED``.
    rows
        The nodes' rows in the snapshot.
    """

    cells: tuple[int, ...]
    rows: RowArray
    refused_by: int


@dataclass(frozen=True, slots=True)
class Ranking:
    """The feasible nodes, the best first.

    Parameters
    ----------
    rows
        Rows in the snapshot; intp, shape (n_feasible,).
    scores
        The weighted scores by plugin; int64, shape (n_feasible,).
    total
        Their sum.
    """

    rows: RowArray
    scores: Mapping[str, IntArray]
    total: IntArray


NO_RANKING: Final = Ranking(np.zeros(0, dtype=np.intp), {}, np.zeros(0, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class Matrix:
    """The verdicts of all filters on all nodes.

    Parameters
    ----------
    num_nodes
        All nodes.
    before
        Why no node can do, if a plugin said so before any node was looked at; else empty.
    before_plugin
        That plugin.
    refusing
        The plugins that refuse any node, in the order in which they run.
    passing
        The plugins that pass every node that they are asked about.
    patterns
        The nodes that fewest plugins refuse come first.
    """

    num_nodes: int
    before: str = ""
    before_plugin: str = ""
    refusing: tuple[str, ...] = ()
    passing: tuple[str, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    patterns: tuple[Pattern, ...] = ()
    ranking: Ranking = NO_RANKING


class _AllVerdicts:
    """Keeps what every filter says of every node.

    Parameters
    ----------
    confined
        The filters that are asked about the nodes that nobody has refused, and about no others.
    """

    def __init__(self, num_nodes: int, confined: frozenset[str]) -> None:
        self.columns: list[tuple[str, npt.NDArray[np.int32]]] = []
        self.refusals: list[Refusal] = []
        self.feasible: BoolArray = np.ones(num_nodes, dtype=np.bool_)
        self._confined = confined

    def add(self, plugin: str, verdicts: NodeVerdicts) -> bool:
        """Take in the verdicts of the next plugin; every filter is asked."""
        column = np.full(len(self.feasible), PASSES, dtype=np.int32)
        if verdicts.passed is not None:
            which, statuses = verdicts.statuses()
            self._refuse(plugin, column, ~verdicts.passed, which, statuses)
        if plugin in self._confined:
            column[~self.feasible] = NOT_ASKED
        self.feasible = self.feasible & (column == PASSES)
        self.columns.append((plugin, column))
        return True

    def _refuse(
        self,
        plugin: str,
        column: npt.NDArray[np.int32],
        refused: BoolArray,
        which: npt.NDArray[np.integer],
        statuses: Sequence[Status],
    ) -> None:
        if plugin in self._confined:
            refused = refused & self.feasible
        for index in np.unique(which[refused]).tolist():
            here = refused & (which == index)
            column[here] = len(self.refusals)
            status = statuses[index]
            resolvable = status.code is Code.UNSCHEDULABLE
            self.refusals.append(Refusal(plugin, status.reasons, resolvable, int(here.sum())))

    def narrow(self, plugin: str, status: Status, named: RowArray) -> None:
        """Take in what PreFilters say of all nodes but those that they name."""
        passed = np.zeros(len(self.feasible), dtype=np.bool_)
        passed[named] = True
        self.add(plugin, NodeVerdicts(passed, status=status))

    def counting(self) -> BoolArray | None:
        """Return the nodes that are feasible so far: a filter may fail on the others."""
        return self.feasible

    def surviving(self) -> BoolArray | None:
        """Return the nodes that are feasible so far."""
        return self.feasible


def matrix_of(
    framework: FrameworkRunner,
    snapshot: Snapshot,
    info: PodInfo,
    budget: AttemptBudget = UNLIMITED,
) -> Matrix:
    """Return the verdicts of all filters of a profile on all nodes.

    Pods that are nominated for nodes are not counted there.

    Raises
    ------
    PluginError
        When a plugin fails.
    AttemptBudgetExceededError
        When the budget is used up.

    *Cost*: a cycle, and some microseconds for each node.
    """
    if not len(snapshot):
        return Matrix(0)
    state, nodes = CycleState(budget), snapshot.all_nodes()
    pre = pre_filter(framework, state, info, nodes)
    if not pre.status.is_success:
        return Matrix(len(snapshot), pre.status.message, pre.status.plugin)
    found = _AllVerdicts(len(snapshot), _confined(framework))
    if pre.node_names is not None:
        row_of = nodes.columns.row_of
        named = [row_of[name] for name in pre.node_names if name in row_of]
        # The first by name answers for all that narrow, as in an explanation.
        found.narrow(
            min(pre.narrowing_plugins), pre.narrowed_away(), np.array(named, dtype=np.intp)
        )
    framework.judges.run_filters(state, info, nodes, found)
    refusing = [(plugin, column) for plugin, column in found.columns if (column >= 0).any()]
    busy = {plugin for plugin, _ in refusing}
    return Matrix(
        len(snapshot),
        refusing=tuple(plugin for plugin, _ in refusing),
        passing=tuple(plugin for plugin, _ in found.columns if plugin not in busy),
        refusals=tuple(found.refusals),
        patterns=_patterns([column for _, column in refusing], len(snapshot)),
        ranking=_ranking(framework, state, info, nodes, found.feasible),
    )


def _confined(framework: FrameworkRunner) -> frozenset[str]:
    return frozenset(
        plugin.name
        for plugin in framework.plugins
        if isinstance(plugin, FilterPlugin) and plugin.judges_survivors
    )


def _patterns(columns: Sequence[npt.NDArray[np.int32]], num_nodes: int) -> tuple[Pattern, ...]:
    """Return the distinct rows of the matrix; those that fewest plugins refuse come first."""
    if not columns:
        return (Pattern((), np.arange(num_nodes), 0),)
    distinct, which = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    which = which.reshape(-1)
    found = [
        Pattern(tuple(cells), np.flatnonzero(which == index), sum(cell >= 0 for cell in cells))
        for index, cells in enumerate(distinct.tolist())
    ]
    found.sort(key=lambda pattern: (pattern.refused_by, -len(pattern.rows), pattern.cells))
    return tuple(found)


def _ranking(
    framework: FrameworkRunner,
    state: CycleState,
    info: PodInfo,
    nodes: NodesView,
    feasible: BoolArray,
) -> Ranking:
    """Return the feasible nodes in descending order of their scores; equals by name."""
    rows = np.flatnonzero(feasible)
    if not len(rows) or not framework.scores_nodes:
        return Ranking(rows, {}, np.zeros(len(rows), dtype=np.int64))
    scores = framework.run_score(state, info, nodes.subset(rows), keep=True)
    infos = nodes.columns.node_infos
    order = sorted(
        range(len(rows)), key=lambda index: (-int(scores.total[index]), infos[rows[index]].name)
    )
    chosen = np.array(order, dtype=np.intp)
    weighted = {name: column[chosen] for name, column in scores.weighted.items()}
    return Ranking(rows[chosen], weighted, scores.total[chosen])
