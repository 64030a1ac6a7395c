"""What the plugins that sign a pod said of every node, kept for the next pod like it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from cache.columns import NodesView
from plugins.framework.attempt_budget import UNLIMITED
from plugins.framework.cycle_state import CycleState
from plugins.framework.interfaces import (
    FilterPlugin,
    Plugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
)
from plugins.framework.normalize import MAX_NODE_SCORE, MIN_NODE_SCORE
from plugins.framework.status import Code
from scheduler.reuse.best_rows import INFEASIBLE, BestRows
from scheduler.score_check import check_scores

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from cache.columns import Columns
    from cache.pod_info import PodInfo
    from plugins.framework.attempt_budget import AttemptBudget
    from plugins.framework.results import BoolArray, IntArray, RowArray

MAX_ONE_BY_ONE: Final = 8
"""Changed rows up to which the scalar twins are the quicker way."""


class NotShareableError(Exception):
    """The plugins' answers cannot be kept: one rejects the pod, narrows the search or fails."""


class Normalized:
    """A plugin whose scores are relative to those of the other feasible nodes."""

    __slots__ = ("plugin", "raw", "uniform", "weight")

    def __init__(self, plugin: ScorePlugin, weight: int, num_nodes: int) -> None:
        self.plugin = plugin
        self.weight = weight
        self.raw: IntArray = np.zeros(num_nodes, dtype=np.int64)
        """Raw scores by row; without a meaning where the node is not feasible."""
        self.uniform: int | None = None
        """The raw score that every row has had so far; None once they differ."""


class _Judges(NamedTuple):
    """Who is asked about a node: filters, scorers that do not normalise, and those that do."""

    filters: tuple[FilterPlugin, ...]
    plain: tuple[tuple[ScorePlugin, int], ...]
    normalized: tuple[Normalized, ...]


class KeptVerdicts:
    """Feasibility and scores of all nodes by the plugins that signed one pod.

    Parameters
    ----------
    plugins
        Those that signed, by extension point, in order.
    weights
        The weight of each scoring plugin.
    info
        The pod they signed; any other with the same signature will do.
    columns
        The snapshot's.
    budget
        Of the attempt that needs it.

    Raises
    ------
    NotShareableError
        When the answers are no good for keeping.
    PluginError
        When scores are out of bounds.

    Notes
    -----
    *Concurrency*: confined to the scheduling thread.

    Invariant: after :meth:`follow` everything equals what a new object would hold. After one that
    raised it holds nothing of use, and nobody may keep it.
    """

    __slots__ = (
        "_all",
        "_best",
        "_bonus",
        "_facts",
        "_facts_of",
        "_info",
        "_node_base",
        "_node_version",
        "_of_pods",
        "_position",
        "_state",
        "_view",
        "base",
        "columns",
        "count",
        "epoch",
        "feasible",
        "normalized",
    )

    def __init__(
        self,
        plugins: Mapping[str, Sequence[Plugin]],
        weights: Mapping[str, int],
        info: PodInfo,
        columns: Columns,
        budget: AttemptBudget = UNLIMITED,
    ) -> None:
        self.columns = columns
        self._info = info
        self._state = CycleState(budget)
        every = NodesView(columns)
        self._pre_filter(plugins["preFilter"], every)
        skipped = self._state.skip_filter
        filters = tuple(
            p for p in plugins["filter"] if isinstance(p, FilterPlugin) and p.name not in skipped
        )
        self._pre_score(plugins["preScore"], every)
        skipped = self._state.skip_score
        scorers = [
            p for p in plugins["score"] if isinstance(p, ScorePlugin) and p.name not in skipped
        ]
        plain = tuple((p, weights[p.name]) for p in scorers if not _normalizes(p))
        self.normalized = tuple(
            Normalized(p, weights[p.name], len(columns)) for p in scorers if _normalizes(p)
        )
        self._all = _Judges(filters, plain, self.normalized)
        self._of_pods = _Judges(
            tuple(p for p in filters if p.reads_pods),
            tuple((p, weight) for p, weight in plain if p.reads_pods),
            tuple(each for each in self.normalized if each.plugin.reads_pods),
        )
        used = dict.fromkeys((*filters, *scorers))
        self._facts_of = tuple(p for p in used if type(p).cluster_facts is not Plugin.cluster_facts)
        self._facts = self._cluster_facts(every)
        self.feasible: BoolArray = np.zeros(len(columns), dtype=np.bool_)
        """bool (n_nodes,)"""
        self.base: IntArray = np.zeros(len(columns), dtype=np.int64)
        """int64 (n_nodes,): weighted scores of the plugins that do not normalise."""
        self._node_base: IntArray = np.zeros(len(columns), dtype=np.int64)
        """The part of ``base`` by plugins that read no pods, where the node is feasible."""
        self.count = 0
        """How many nodes are feasible."""
        self.epoch = columns.epoch
        self._best: BestRows | None = None
        self._bonus: int | None = None
        self._view: NodesView | None = None
        self._judge(every, None, self._all)
        for each in self.normalized:
            raw = self.view().take(each.raw)
            if len(raw) and raw.min() == raw.max():
                each.uniform = int(raw[0])
        self._position = columns.change_count
        self._node_version = columns.node_version

    # --- following the cluster ----------------------------------------------------------------

    def follow(self, budget: AttemptBudget = UNLIMITED) -> bool:
        """Ask again about the rows that changed; return False when all must be asked anew.

        What is asked until the next call is paid from ``budget``.

        Raises
        ------
        BaseException
            Whatever a plugin raises. Some rows have been judged anew then and others have not, so
            the object must be dropped.

        *Cost*: some 15 us for a changed row, less when there are many.
        """
        self._state.budget = budget
        columns = self.columns
        if self.epoch != columns.epoch:
            return False
        same_nodes = self._node_version == columns.node_version
        facts_hold = same_nodes or not self._facts_of
        if not facts_hold and self._cluster_facts(NodesView(columns)) != self._facts:
            return False
        position, node_version = columns.change_count, columns.node_version
        if position == self._position:
            self._node_version = node_version
            return True
        changed = columns.changed_since(self._position)
        if changed is None or len(changed) * 4 > len(columns) + MAX_ONE_BY_ONE:
            return False
        if len(changed) <= MAX_ONE_BY_ONE:
            for row in changed:
                self._judge_row(row, same_nodes)
        else:
            self._judge_rows(np.fromiter(sorted(changed), np.intp, len(changed)), same_nodes)
        # Only now: a plugin that fails on the way must not leave rows that count as judged.
        self._position, self._node_version = position, node_version
        return True

    def _judge_rows(self, rows: RowArray, same_nodes: bool) -> None:
        """Ask the vector forms about some rows."""
        known = self.feasible[rows] if same_nodes else np.zeros(len(rows), dtype=np.bool_)
        if known.all():
            self._judge(NodesView(self.columns, rows), rows, self._of_pods)
        else:
            for these, judges in ((rows[known], self._of_pods), (rows[~known], self._all)):
                if len(these):
                    self._judge(NodesView(self.columns, these), these, judges)

    def _judge_row(self, row: int, same_node: bool) -> None:
        """Ask the scalar twins about one row."""
        node_info, state, info = self.columns.node_infos[row], self._state, self._info
        state.budget.check()
        was = bool(self.feasible[row])
        # What only the Node object decides stands as long as that does.
        judges = self._of_pods if was and same_node else self._all
        now = all(p.filter_one(state, info, node_info).is_success for p in judges.filters)
        if not now:
            if was:
                self.feasible[row] = False
                self.count -= 1
                self._view = None
                self._changed(row, INFEASIBLE)
            return
        base = of_node = int(self._node_base[row]) if judges is self._of_pods else 0
        for plugin, weight in judges.plain:
            score = plugin.score_one(state, info, node_info)
            if not MIN_NODE_SCORE <= score <= MAX_NODE_SCORE:
                raise NotShareableError(f"{plugin.name} scores {score}")
            base += weight * score
            if not plugin.reads_pods:
                of_node += weight * score
        self._node_base[row] = of_node
        self.base[row] = base
        for each in judges.normalized:
            raw = each.plugin.score_one(state, info, node_info)
            if each.uniform != raw:
                each.uniform = None
            each.raw[row] = raw
        if not was:
            self.feasible[row] = True
            self.count += 1
            self._view = None
        self._changed(row, base)

    def _changed(self, row: int, base: int) -> None:
        if self._best is None:
            return
        if self._is_relative:
            self._best = None
        else:
            bonus = 0 if base == INFEASIBLE else self._uniform_bonus()
            self._best.change(row, base + bonus)

    def _judge(self, view: NodesView, rows: RowArray | None, judges: _Judges) -> None:
        """Ask the vector forms about a view; ``rows`` are its rows, None for all.

        Those that read no pods may be left out where the nodes were feasible and are the same.
        """
        state, info = self._state, self._info
        feasible: BoolArray = np.ones(len(view), dtype=np.bool_)
        for plugin in judges.filters:
            state.budget.check()
            passed = plugin.filter(state, info, view).passed
            if passed is not None:
                feasible &= passed
        if rows is None:
            self.feasible = feasible
        else:
            self.feasible[rows] = feasible
        self.count = int(np.count_nonzero(self.feasible))
        self._view = None
        if len(view) and feasible.all():
            self._score(view, judges)
        elif len(indices := np.flatnonzero(feasible)):
            self._score(view.subset(indices), judges)
        if rows is None:
            self._best = None
        elif self._best is not None:
            if self._is_relative:
                self._best = None
            else:
                scores = self.base[rows] + self._uniform_bonus()
                self._best.change_all(rows, np.where(feasible, scores, INFEASIBLE))

    def _score(self, good: NodesView, judges: _Judges) -> None:
        """Ask the vector forms of the scores about feasible nodes."""
        state, info = self._state, self._info
        where = slice(None) if good.rows is None else good.rows
        of_pods = np.zeros(len(good), dtype=np.int64)
        of_node = self._node_base[where] if judges is self._of_pods else of_pods.copy()
        for scorer, weight in judges.plain:
            state.budget.check()
            scores = scorer.score(state, info, good)
            check_scores(scorer, scores, len(good))
            part = of_pods if scorer.reads_pods else of_node
            part += scores * weight
        self._node_base[where] = of_node
        self.base[where] = of_node + of_pods
        for each in judges.normalized:
            state.budget.check()
            raw = each.plugin.score(state, info, good)
            each.raw[where] = raw
            if each.uniform is not None and not (raw == each.uniform).all():
                each.uniform = None

    # --- answers ------------------------------------------------------------------------------

    def best(self) -> BestRows:
        """Return the best of all feasible rows, by the signing plugins alone."""
        if self._best is None:
            scores = np.full(len(self.feasible), INFEASIBLE, dtype=np.int64)
            view = self.view()
            scores[slice(None) if view.rows is None else view.rows] = self.scores(view)
            self._best = BestRows(scores)
        return self._best

    def view(self) -> NodesView:
        """Return the feasible nodes."""
        if self._view is None:
            self._view = NodesView(self.columns)
            if self.count < len(self.feasible):
                self._view = self._view.subset(np.flatnonzero(self.feasible))
        return self._view

    def scores(self, view: NodesView) -> IntArray:
        """Return the weighted scores of feasible nodes, normalised among them: a new array."""
        total = self.base.copy() if view.rows is None else np.take(self.base, view.rows)
        if not self._is_relative:
            total += self._uniform_bonus()
            return total
        for each in self.normalized:
            scores = each.plugin.normalize(self._state, self._info, view.take(each.raw))
            check_scores(each.plugin, scores, len(total))
            total += scores * each.weight
        return total

    @property
    def _is_relative(self) -> bool:
        return any(each.uniform is None for each in self.normalized)

    def _uniform_bonus(self) -> int:
        """Return what the normalising plugins give every node while their raw scores are equal."""
        if self._bonus is None:
            bonus = 0
            for each in self.normalized:
                raw = np.array([each.uniform], dtype=np.int64)
                score = int(each.plugin.normalize(self._state, self._info, raw)[0])
                bonus += score * each.weight
            self._bonus = bonus
        return self._bonus

    # --- once ---------------------------------------------------------------------------------

    def _pre_filter(self, plugins: Sequence[Plugin], every: NodesView) -> None:
        for plugin in plugins:
            if not isinstance(plugin, PreFilterPlugin):
                continue
            self._state.budget.check()
            result = plugin.pre_filter(self._state, self._info, every)
            if result.status.code is Code.SKIP:
                self._state.skip_filter.add(plugin.name)
            elif not result.status.is_success or result.node_names is not None:
                raise NotShareableError(f"{plugin.name} rejects the pod or narrows the search")

    def _pre_score(self, plugins: Sequence[Plugin], every: NodesView) -> None:
        for plugin in plugins:
            if not isinstance(plugin, PreScorePlugin):
                continue
            self._state.budget.check()
            status = plugin.pre_score(self._state, self._info, every)
            if status.code is Code.SKIP:
                self._state.skip_score.add(plugin.name)
            elif not status.is_success:
                raise NotShareableError(f"PreScore of {plugin.name}: {status.message}")

    def _cluster_facts(self, every: NodesView) -> tuple[Hashable, ...]:
        return tuple(p.cluster_facts(self._info, every) for p in self._facts_of)


def _normalizes(plugin: ScorePlugin) -> bool:
    return type(plugin).normalize is not ScorePlugin.normalize
