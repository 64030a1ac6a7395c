"""The verdicts of one search over all nodes, in the form that PostFilter plugins read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cache.distinct import distinct
from plugins.framework.status import Code, Status, unresolvable

if TYPE_CHECKING:
    from cache.columns import NodesView
    from plugins.framework.results import RowArray
    from scheduler.extenders import Exclusions
    from scheduler.runtime.filter_outcome import FilterOutcome
    from scheduler.runtime.plugin_set import PreFilterOutcome

NARROWED_AWAY = unresolvable("the node was not looked at")


class SearchStatuses:
    """The verdicts of PreFilters, filters and extenders on each node; a ``NodeStatuses``.

    Parameters
    ----------
    nodes
        All nodes of the snapshot.
    pre
        The outcome of PreFilters; a rejection applies to every node.
    outcome
        The outcome of the filters; None when a PreFilter rejected the pod before them.
    excluded
        The feasible nodes that extenders accepted; None if they excluded nothing.

    Notes
    -----
    A node that was neither rejected nor found feasible in the end (a PreFilter narrowed it away,
    or an extender excluded it without a reason) counts as a node that preemption cannot help.

    *Source*: pkg/scheduler/framework/types.go, NodeToStatus, and pkg/scheduler/schedule_one.go,
    findNodesThatFitPod and findNodesThatPassExtenders (1.36).
    """

    def __init__(
        self,
        nodes: NodesView,
        pre: PreFilterOutcome,
        outcome: FilterOutcome | None,
        excluded: Exclusions | None = None,
    ) -> None:
        self._nodes = nodes
        self._pre = pre
        self._outcome = outcome
        self._excluded = excluded

    def helpable_rows(self) -> RowArray:
        """Return the rows of the nodes that were rejected with Unschedulable, ascending.

        *Cost*: proportional to the nodes, in vector operations; a look-up for each node that an
        extender rejected.
        """
        if self._outcome is None:
            helps = self._pre.status.code is Code.UNSCHEDULABLE
            return np.arange(len(self._nodes) if helps else 0, dtype=np.intp)
        indices = self._outcome.indices_with(Code.UNSCHEDULABLE)
        view = self._outcome.view
        rows = indices if view.rows is None else np.sort(view.rows[indices])
        if self._excluded is None:
            return rows
        row_of = self._nodes.columns.row_of
        more = [
            row_of[name]
            for group in self._excluded.rejected
            if group.status.code is Code.UNSCHEDULABLE
            for name in group.node_names
            if name in row_of
        ]
        return distinct(np.concatenate([rows, np.array(more, dtype=np.intp)])).astype(np.intp)

    def status_of(self, node_name: str) -> Status:
        """Return what was said of a node."""
        if self._outcome is None:
            return self._pre.status
        if self._excluded is not None:
            for group in self._excluded.rejected:
                if node_name in group.node_names:
                    return group.status
        index = self._outcome.view.row(node_name)
        if index is None:
            return self._absent()
        status = self._outcome.status_of(index)
        return self._absent() if status.is_success else status

    def _absent(self) -> Status:
        return self._pre.narrowed_away() if self._pre.narrowing_plugins else NARROWED_AWAY
