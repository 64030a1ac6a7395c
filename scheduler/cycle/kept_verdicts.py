"""Kept verdicts: the results of signing plugins for every node, for the next alike pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from cache.columns import NodesView
from plugins.framework.attempt_budget import UNLIMITED
from plugins.framework.cycle_state import CycleState
from plugins.framework.interfaces import Plugin
from plugins.framework.normalize import MAX_NODE_SCORE, MIN_NODE_SCORE
from scheduler.cycle.best_rows import INFEASIBLE, BestRows
from scheduler.runtime.filter_outcome import PluginError
from scheduler.runtime.plugin_set import Mask

if TYPE_CHECKING:
    from collections.abc import Hashable

    from cache.columns import Columns
    from cache.pod_info import PodInfo
    from plugins.framework.attempt_budget import AttemptBudget
    from plugins.framework.results import BoolArray, IntArray, RowArray
    from scheduler.runtime.plugin_set import PluginSet, Scorer

MAX_ONE_BY_ONE: Final = 8
"""Changed rows up to which the scalar twins are the quicker way."""


class NotShareableError(Exception):
    """The results cannot be kept: a plugin rejects the pod, narrows the search or fails."""


class Normalized:
    """The raw scores of a plugin, which are normalized over the feasible nodes."""

    __slots__ = ("raw", "scorer", "uniform")

    def __init__(self, scorer: Scorer, num_nodes: int) -> None:
        self.scorer = scorer
        self.raw: IntArray = np.zeros(num_nodes, dtype=np.int64)
        """Raw scores by row; without a meaning where the node is not feasible."""
        self.uniform: int | None = None
        """The raw score that every row has had so far; None once they differ."""


class Signers:
    """The plugins that signed a pod.

    Parameters
    ----------
    plugins
        All of these plugins.
    """

    __slots__ = ("every", "facts_of", "of_pods")

    def __init__(self, plugins: PluginSet) -> None:
        self.every = plugins
        self.of_pods = plugins.where(lambda plugin: plugin.reads_pods)
        """Those that look at the pods of a node: others need not look twice at the same Node."""
        judges = (*plugins.filters, *(scorer.plugin for scorer in plugins.scorers))
        self.facts_of: tuple[Plugin, ...] = tuple(
            p for p in dict.fromkeys(judges) if type(p).cluster_facts is not Plugin.cluster_facts
        )


class KeptVerdicts:
    """Store feasibility and scores of all nodes by the plugins that signed one pod.

    Parameters
    ----------
    signers
        The plugins that signed.
    info
        The pod that they signed, or any other with the same signature.
    columns
        The columns of the snapshot.
    budget
        The budget of the attempt that needs the verdicts.

    Raises
    ------
    NotShareableError
        When the results cannot be kept.
    PluginError
        When a plugin fails, or scores are out of bounds.

    Notes
    -----
    *Concurrency*: confined to the scheduling thread.

    Invariant: after :meth:`follow` everything equals what a new object would hold. After a call
    that raised, the object is invalid and must be dropped.
    """

    __slots__ = (
        "_best",
        "_bonus",
        "_cursor",
        "_facts",
        "_facts_of",
        "_info",
        "_node_base",
        "_node_cursor",
        "_signers",
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
        signers: Signers,
        info: PodInfo,
        columns: Columns,
        budget: AttemptBudget = UNLIMITED,
    ) -> None:
        self.columns = columns
        self._info = info
        self._signers = signers
        self._state = state = CycleState(budget)
        every = NodesView(columns)
        pre = signers.every.run_pre_filters(state, info, every)
        if pre.status.error is not None:
            raise PluginError(pre.status)
        if not pre.status.is_success or pre.node_names is not None:
            raise NotShareableError("a PreFilter rejects the pod or narrows the search")
        signers.every.run_pre_scores(state, info, every)
        self.normalized = {
            scorer.name: Normalized(scorer, len(columns))
            for scorer in signers.every.scorers
            if scorer.normalizes and scorer.name not in state.skip_score
        }
        self._facts_of = signers.facts_of
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
        self._judge(every, None, signers.every)
        for each in self.normalized.values():
            raw = self.view().take(each.raw)
            if len(raw) and raw.min() == raw.max():
                each.uniform = int(raw[0])
        self._cursor = columns.cursor
        self._node_cursor = columns.node_cursor

    # --- following the cluster ----------------------------------------------------------------

    def follow(self, budget: AttemptBudget = UNLIMITED, *, by_columns: bool = False) -> bool:
        """Update the rows that changed; return False when all rows must be computed again.

        What is asked until the next call is paid from ``budget``.

        Parameters
        ----------
        by_columns
            Whether only the vector forms are asked, even about a single row: see
            :meth:`cache.columns.Columns.add_amounts`.

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
        same_nodes = self._node_cursor == columns.node_cursor
        facts_hold = same_nodes or not self._facts_of
        if not facts_hold and self._cluster_facts(NodesView(columns)) != self._facts:
            return False
        cursor, rows = columns.follow(self._cursor)
        changed = [row for row in rows if row < len(columns)]
        if len(changed) * 4 > len(columns) + MAX_ONE_BY_ONE:
            return False
        if len(changed) <= MAX_ONE_BY_ONE and not by_columns:
            for row in changed:
                self._judge_row(row, same_nodes)
        elif changed:
            self._judge_rows(np.fromiter(sorted(changed), np.intp, len(changed)), same_nodes)
        # Only now: a plugin that fails on the way must not leave rows that count as judged.
        self._cursor, self._node_cursor = cursor, columns.node_cursor
        return True

    def _judge_rows(self, rows: RowArray, same_nodes: bool) -> None:
        """Ask the vector forms about some rows."""
        known = self.feasible[rows] if same_nodes else np.zeros(len(rows), dtype=np.bool_)
        if known.all():
            self._judge(NodesView(self.columns, rows), rows, self._signers.of_pods)
        else:
            signers = self._signers
            for these, judges in ((rows[known], signers.of_pods), (rows[~known], signers.every)):
                if len(these):
                    self._judge(NodesView(self.columns, these), these, judges)

    def _judge_row(self, row: int, same_node: bool) -> None:
        """Ask the scalar twins about one row."""
        node_info, state, info = self.columns.node_infos[row], self._state, self._info
        was = bool(self.feasible[row])
        # What only the Node object decides stands as long as that does.
        is_of_pods = was and same_node
        judges = self._signers.of_pods if is_of_pods else self._signers.every
        status = judges.filter_one(state, info, node_info)
        if not status.is_success:
            if status.error is not None:
                raise PluginError(status)
            if was:
                self.feasible[row] = False
                self.count -= 1
                self._view = None
                self._changed(row, INFEASIBLE)
            return
        base = of_node = int(self._node_base[row]) if is_of_pods else 0
        skipped = state.skip_score
        for scorer in judges.scorers:
            if scorer.name in skipped:
                continue
            score = scorer.score_one(state, info, node_info)
            if scorer.normalizes:
                each = self.normalized[scorer.name]
                if each.uniform != score:
                    each.uniform = None
                each.raw[row] = score
                continue
            if not MIN_NODE_SCORE <= score <= MAX_NODE_SCORE:
                raise NotShareableError(f"{scorer.name} scores {score}")
            base += scorer.weight * score
            if not scorer.reads_pods:
                of_node += scorer.weight * score
        self._node_base[row] = of_node
        self.base[row] = base
        if not was:
            self.feasible[row] = True
            self.count += 1
            self._view = None
        self._changed(row, base)

    def _changed(self, row: int, base: int) -> None:
        if self._best is None:
            return
        if self.is_relative:
            self._best = None
        else:
            bonus = 0 if base == INFEASIBLE else self._uniform_bonus()
            self._best.change(row, base + bonus)

    def _judge(self, view: NodesView, rows: RowArray | None, judges: PluginSet) -> None:
        """Ask the vector forms about a view; ``rows`` are its rows, None for all.

        Those that read no pods may be left out where the nodes were feasible and are the same.
        """
        mask = Mask(np.ones(len(view), dtype=np.bool_))
        judges.run_filters(self._state, self._info, view, mask)
        feasible = mask.feasible
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
            if self.is_relative:
                self._best = None
            else:
                scores = self.base[rows] + self._uniform_bonus()
                self._best.change_all(rows, np.where(feasible, scores, INFEASIBLE))

    def _score(self, good: NodesView, judges: PluginSet) -> None:
        """Ask the vector forms of the scores about feasible nodes."""
        state, info = self._state, self._info
        where = slice(None) if good.rows is None else good.rows
        of_pods = np.zeros(len(good), dtype=np.int64)
        is_of_pods = judges is self._signers.of_pods
        of_node = self._node_base[where] if is_of_pods else of_pods.copy()
        for scorer, raw in judges.raw_scores(state, info, good):
            if scorer.normalizes:
                each = self.normalized[scorer.name]
                each.raw[where] = raw
                if each.uniform is not None and not (raw == each.uniform).all():
                    each.uniform = None
            else:
                part = of_pods if scorer.reads_pods else of_node
                part += scorer.weighted(state, info, raw, len(good))
        self._node_base[where] = of_node
        self.base[where] = of_node + of_pods

    # --- answers ------------------------------------------------------------------------------

    def best(self) -> BestRows:
        """Return the best of all feasible rows, by the signing plugins alone."""
        if self._best is None:
            scores = np.full(len(self.feasible), INFEASIBLE, dtype=np.int64)
            view = self.view()
            scores[slice(None) if view.rows is None else view.rows] = self.scores(view)
            self._best = BestRows(scores)
        return self._best

    def forget_best(self) -> None:
        """Let the next choice among equals depend on the rows, not on what was chosen before."""
        self._best = None

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
        if not self.is_relative:
            total += self._uniform_bonus()
            return total
        for each in self.normalized.values():
            raw = view.take(each.raw)
            total += each.scorer.weighted(self._state, self._info, raw, len(total))
        return total

    @property
    def is_relative(self) -> bool:
        """Whether the score of a node depends on which other nodes are feasible."""
        return any(each.uniform is None for each in self.normalized.values())

    def _uniform_bonus(self) -> int:
        """Return the score of the normalizing plugins for every node while raw scores are equal."""
        if self._bonus is None:
            bonus = 0
            for each in self.normalized.values():
                raw = np.array([each.uniform], dtype=np.int64)
                bonus += int(each.scorer.weighted(self._state, self._info, raw, 1)[0])
            self._bonus = bonus
        return self._bonus

    def _cluster_facts(self, every: NodesView) -> tuple[Hashable, ...]:
        return tuple(p.cluster_facts(self._info, every) for p in self._facts_of)
