"""Kept verdicts: the results of some signing plugins for every node, for the next alike pod.

A signature has two halves: that of the plugins that read the pods of nodes, and that of the others.
The verdicts of each half are kept by themselves, so that pods share the half in which they are
alike. :mod:`scheduler.cycle.ranking` adds two of them up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from cache.columns import NodesView
from plugins.framework.attempt_budget import UNLIMITED
from plugins.framework.cycle_state import CycleState
from plugins.framework.interfaces import Plugin
from plugins.framework.normalize import MAX_NODE_SCORE, MIN_NODE_SCORE
from scheduler.runtime.filter_outcome import PluginError
from scheduler.runtime.plugin_set import Mask

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from cache.columns import Columns
    from cache.pod_info import PodInfo
    from plugins.framework.attempt_budget import AttemptBudget
    from plugins.framework.results import IntArray, RowArray
    from scheduler.runtime.plugin_set import PluginSet, Scorer

MAX_ONE_BY_ONE: Final = 8
"""Changed rows up to which the scalar twins are the quicker way."""

MAX_JOINT: Final = 4
"""Kinds of pods that are judged at once: with more of them the last one is judged again on too many
nodes that have changed meanwhile."""

_LISTED: Final = 256
"""Changes up to which it is quicker to go through them than through all rows."""

_IN_INT16: Final = 1 << 14
"""Below this sum of all weighted scores two bytes hold the sum of two rejections, or of a rejection
and scores, below 0."""


class Changed(NamedTuple):
    """The rows that changed between two cursors: a few as a list, else as an array."""

    seen: int
    now: int
    few: list[int]
    many: RowArray | None

    def are_most(self, num_rows: int) -> bool:
        """Return whether so many rows changed that all had better be looked at."""
        count = len(self.few) if self.many is None else len(self.many)
        return count * 4 > num_rows + MAX_ONE_BY_ONE


_NOTHING: Final = Changed(0, 0, [], None)


class NotShareableError(Exception):
    """The results cannot be kept: a plugin rejects the pod, narrows the search or fails."""


class Normalized:
    """The raw scores of a plugin, which are normalized over the feasible nodes."""

    __slots__ = ("_raw", "scorer", "uniform")

    def __init__(self, scorer: Scorer) -> None:
        self.scorer = scorer
        self._raw: IntArray | None = None
        self.uniform: int | None = None
        """The raw score that every row has had so far; None once they differ."""

    def raw(self, view: NodesView) -> IntArray:
        """Return raw scores, int64 (len(view),); without a meaning where the node is rejected."""
        if self._raw is None:
            return np.full(len(view), self.uniform or 0, dtype=np.int64)
        return view.take(self._raw)

    def set_all(self, view: NodesView, raw: IntArray) -> None:
        """Store the raw scores of a view of all rows that count."""
        if not len(raw):
            self.uniform = None
            self._differ(len(view.columns))
        elif raw.min() == raw.max():
            self.uniform = int(raw[0])
        else:
            self._differ(len(view.columns))[_where(view)] = raw

    def set_some(self, view: NodesView, raw: IntArray) -> None:
        """Store raw scores of some rows."""
        if self.uniform is None or not (raw == self.uniform).all():
            self._differ(len(view.columns))[_where(view)] = raw

    def set_one(self, row: int, raw: int, num_rows: int) -> None:
        """Store the raw score of a row."""
        if self.uniform != raw:
            self._differ(num_rows)[row] = raw

    def _differ(self, num_rows: int) -> IntArray:
        if self._raw is None:
            self._raw = np.full(num_rows, self.uniform or 0, dtype=np.int64)
            self.uniform = None
        return self._raw


class Signers:
    """One half of the plugins that signed a pod.

    Parameters
    ----------
    plugins
        These plugins.
    of_pods
        Whether they read the pods of a node. Others need not look twice at the same Node.
    dtype
        Holds the sum of the scores of both halves: see :func:`dtype_of_scores`.
    """

    __slots__ = ("dtype", "facts_of", "normalizing", "of_pods", "plugins", "rejected")

    def __init__(self, plugins: PluginSet, dtype: type[np.int16 | np.int64], *, of_pods: bool):
        self.plugins = plugins
        self.of_pods = of_pods
        self.dtype = dtype
        self.rejected: int = np.iinfo(dtype).min // 2
        """The score of a row that they reject; below 0 also with the other half's score."""
        judges = (*plugins.filters, *(scorer.plugin for scorer in plugins.scorers))
        self.facts_of: tuple[Plugin, ...] = tuple(
            p for p in dict.fromkeys(judges) if type(p).cluster_facts is not Plugin.cluster_facts
        )
        self.normalizing = sum(scorer.normalizes for scorer in plugins.scorers)


def dtype_of_scores(plugins: PluginSet) -> type[np.int16 | np.int64]:
    """Return the smaller type that holds the sum of all weighted scores of some plugins.

    The scores of a thousand kinds of pods take 2 bytes for each node and kind, not 8, and are
    searched four times as fast.
    """
    most = sum(abs(scorer.weight) for scorer in plugins.scorers) * MAX_NODE_SCORE
    return np.int16 if most < _IN_INT16 else np.int64


class KeptVerdicts:
    """Store feasibility and scores of all nodes by one half of the plugins that signed a pod.

    Parameters
    ----------
    signers
        The plugins.
    info
        The pod that they signed, or any other with the same signature.
    columns
        The columns of the snapshot.
    budget
        The budget of the attempt that needs the verdicts.
    pod_bytes
        What the pod counts for in :attr:`nbytes`.

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
        "__weakref__",
        "_bonus",
        "_cursor",
        "_facts",
        "_info",
        "_node_cursor",
        "_signers",
        "_state",
        "changed",
        "columns",
        "epoch",
        "nbytes",
        "normalized",
        "scores",
    )

    def __init__(
        self,
        signers: Signers,
        info: PodInfo,
        columns: Columns,
        budget: AttemptBudget = UNLIMITED,
        pod_bytes: int = 0,
    ) -> None:
        self.columns = columns
        self._info = info
        self._signers = signers
        self._state = state = CycleState(budget)
        plugins, every = signers.plugins, NodesView(columns)
        pre = plugins.run_pre_filters(state, info, every)
        if pre.status.error is not None:
            raise PluginError(pre.status)
        if not pre.status.is_success or pre.node_names is not None:
            raise NotShareableError("a PreFilter rejects the pod or narrows the search")
        plugins.run_pre_scores(state, info, every)
        self.normalized = {
            scorer.name: Normalized(scorer)
            for scorer in plugins.scorers
            if scorer.normalizes and scorer.name not in state.skip_score
        }
        self._facts = self._cluster_facts(every)
        n = len(columns)
        self.scores: IntArray = np.zeros(n, dtype=signers.dtype)
        """int16 or int64 (n_nodes,): weighted scores of the plugins that do not normalize, below 0
        where the node is rejected."""
        self.nbytes = pod_bytes + n * (self.scores.itemsize + 8 * signers.normalizing)
        """What this takes at most, with the pod."""
        self._bonus: int | None = None
        self.epoch = columns.epoch
        self.changed = _NOTHING
        """The rows that changed before the last call of :meth:`follow`, if pods are read."""
        self._judge(every, is_new=True)
        self._cursor, self._node_cursor = columns.cursor, columns.node_cursor

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
        of_pods, node_cursor = self._signers.of_pods, columns.node_cursor
        facts_hold = self._node_cursor == node_cursor or not self._signers.facts_of
        if not facts_hold and self._cluster_facts(NodesView(columns)) != self._facts:
            return False
        seen, now = self._cursor, columns.cursor
        if not of_pods:
            seen, now = self._node_cursor, node_cursor
        if seen != now:
            changed = changed_rows(columns, seen, now, of_pods=of_pods)
            if of_pods:
                self.changed = changed
            if changed.are_most(len(columns)):
                # To pick so many rows takes longer than to judge all.
                self._judge(NodesView(columns))
            elif changed.many is not None:
                self._judge(NodesView(columns, changed.many))
            elif by_columns and changed.few:
                self._judge(NodesView(columns, np.array(sorted(changed.few), dtype=np.intp)))
            else:
                for row in changed.few:
                    self._judge_row(row)
        # Only now: a plugin that fails on the way must not leave rows that count as judged.
        self._cursor, self._node_cursor = columns.cursor, node_cursor
        return True

    def is_far_behind(self) -> bool:
        """Tell whether many rows have changed, and nothing but rows."""
        columns = self.columns
        return (
            columns.cursor - self._cursor > 2 * MAX_ONE_BY_ONE
            and self.epoch == columns.epoch
            and not self.normalized
            and (self._node_cursor == columns.node_cursor or not self._signers.facts_of)
        )

    def is_like(self, other: KeptVerdicts) -> bool:
        """Tell whether the same plugins judge another kind of pod, which is far behind, too."""
        ours, theirs = self._state, other._state
        return (
            other._signers is self._signers
            and other.is_far_behind()
            and ours.skip_filter == theirs.skip_filter
            and ours.skip_score == theirs.skip_score
        )

    def _judge_row(self, row: int) -> None:
        """Ask the scalar twins about one row."""
        node_info, state, info = self.columns.node_infos[row], self._state, self._info
        plugins = self._signers.plugins
        status = plugins.filter_one(state, info, node_info)
        if not status.is_success:
            if status.error is not None:
                raise PluginError(status)
            self.scores[row] = self._signers.rejected
            return
        total = 0
        skipped = state.skip_score
        for scorer in plugins.scorers:
            if scorer.name in skipped:
                continue
            score = scorer.score_one(state, info, node_info)
            if scorer.normalizes:
                self.normalized[scorer.name].set_one(row, score, len(self.scores))
                continue
            if not MIN_NODE_SCORE <= score <= MAX_NODE_SCORE:
                raise NotShareableError(f"{scorer.name} scores {score}")
            total += scorer.weight * score
        self.scores[row] = total

    def _judge(self, view: NodesView, *, is_new: bool = False) -> None:
        """Ask the vector forms about a view; of all rows if nothing is kept yet."""
        mask = Mask(np.ones(len(view), dtype=np.bool_))
        self._signers.plugins.run_filters(self._state, self._info, view, mask)
        feasible = mask.feasible
        if not feasible.all():
            self.scores[_where(view)] = self._signers.rejected
            view = view.subset(np.flatnonzero(feasible))
            if not len(view) and not is_new:
                return
        state, info = self._state, self._info
        total: IntArray | None = None
        for scorer, raw in self._signers.plugins.raw_scores(state, info, view):
            if scorer.normalizes:
                each = self.normalized[scorer.name]
                (each.set_all if is_new else each.set_some)(view, raw)
                continue
            weighted = scorer.weighted(state, info, raw, len(view))
            total = weighted if total is None else total + weighted
        self.scores[_where(view)] = 0 if total is None else total

    # --- answers ------------------------------------------------------------------------------

    @property
    def bonus(self) -> int | None:
        """The score of the normalizing plugins for every node, as long as raw scores are equal.

        None if the score of a node depends on which other nodes are feasible.
        """
        for each in self.normalized.values():
            if each.uniform is None:
                return None
        if self._bonus is None:
            self._bonus = 0
            for each in self.normalized.values():
                raw = np.array([each.uniform], dtype=np.int64)
                self._bonus += int(each.scorer.weighted(self._state, self._info, raw, 1)[0])
        return self._bonus

    def add_normalized(self, total: IntArray, view: NodesView) -> None:
        """Add the scores of the normalizing plugins to those of the feasible nodes."""
        for each in self.normalized.values():
            total += each.scorer.weighted(self._state, self._info, each.raw(view), len(total))

    def _cluster_facts(self, every: NodesView) -> tuple[Hashable, ...]:
        return tuple(p.cluster_facts(self._info, every) for p in self._signers.facts_of)


def follow_jointly(kinds: Sequence[KeptVerdicts]) -> None:
    """Update the rows that changed, for several kinds of pods that are alike and far behind.

    Nothing is done where plugins cannot tell of several pods, or fail: they are asked about each by
    itself then.

    *Cost*: for four, half again as much as for one.
    """
    first = kinds[0]
    columns, plugins, state = first.columns, first._signers.plugins, first._state
    seen, now = min(each._cursor for each in kinds), columns.cursor
    changed = changed_rows(columns, seen, now)
    view = NodesView(columns)
    if not changed.are_most(len(columns)):
        many = changed.many
        view = NodesView(columns, np.array(sorted(changed.few), np.intp) if many is None else many)
    pods = [(each._state, each._info) for each in kinds]
    try:
        feasible = plugins.filter_jointly(state, pods, view)
        total = None if feasible is None else plugins.score_jointly(state, pods, view)
    except Exception:  # noqa: BLE001 - see above
        return
    if feasible is None or total is None:
        return
    where = _where(view)
    for each, scores in zip(kinds, np.where(feasible, total, first._signers.rejected), strict=True):
        each.scores[where] = scores
        each.changed = _NOTHING
        each._cursor, each._node_cursor = now, columns.node_cursor


def changed_rows(columns: Columns, seen: int, now: int, *, of_pods: bool = True) -> Changed:
    """Return the rows that changed between two cursors.

    *Cost*: 15 ns for each change, at most one pass over the rows.
    """
    many: RowArray
    if now - seen <= _LISTED:
        n = len(columns)
        few = [row for row in columns.follow(seen, of_pods=of_pods)[1] if row < n]
        if len(few) <= MAX_ONE_BY_ONE:
            return Changed(seen, now, few, None)
        few.sort()
        many = np.array(few, dtype=np.intp)
    else:
        many = columns.changed_rows(seen, of_pods=of_pods)
        if len(many) <= MAX_ONE_BY_ONE:
            return Changed(seen, now, many.tolist(), None)
    return Changed(seen, now, [], many)


def _where(view: NodesView) -> Any:
    return slice(None) if view.rows is None else view.rows
