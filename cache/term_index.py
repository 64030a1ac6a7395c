"""The term index: counts of running pods for affinity and spreading, without visiting the pods.

It belongs to one set of columns and follows their rows: a call compares the pods of the rows that
have changed with those that were counted before. An index that nothing calls costs nothing, and a
cycle pays for the rows that changed since the last one.

Selectors are evaluated on pods. The topology comes from the columns, and the namespaces of a term
from :class:`cache.namespaces.Namespaces`. Relabelled nodes and namespaces therefore need no
handling here: another set of namespaces is another query.

*Source* of the idea: the counts that pkg/scheduler/framework/plugins/interpodaffinity and
podtopologyspread of kube-scheduler 1.36 compute anew for each pod.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from cache.label_columns import sum_by_value
from cache.pod_counts import PodCounts
from cache.term_groups import TermGroups

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from cache.affinity_terms import TermKind
    from cache.change_journal import RowChanges
    from cache.label_columns import LabelColumn
    from cache.node_info import NodeInfo
    from cache.pod_info import PodInfo
    from cache.pod_table import PodQuery
    from cache.term_group import AskedPod
    from cache.term_table import TermSum

_NO_PODS: Mapping[str, PodInfo] = {}

FEW_QUERIES: Final = 8
"""Up to so many queries of one pod are asked one by one, and remembered. Real ones have two."""

FEW_REQUIREMENTS: Final = 16
"""Up to so many label keys of one selector get a column. Real ones have two or three."""


class TermIndex:
    """Counts of pods and of their affinity terms by row.

    Parameters
    ----------
    node_infos
        The nodes by row, as the columns keep them: read, never changed. A NodeInfo in it must
        stay as it is; what changes is another one in its place.
    changes
        Which of them have changed.

    Notes
    -----
    *Concurrency*: confined to the thread of the columns.

    Invariant (I4): after any history every answer equals that of an index made anew.
    """

    def __init__(self, node_infos: Sequence[NodeInfo], changes: RowChanges) -> None:
        self._node_infos = node_infos
        self._changes = changes
        self._groups = TermGroups()
        self._groups_cursor = 0
        self._counts: PodCounts | None = None
        self._counts_cursor = 0

    # --- questions ----------------------------------------------------------------------------

    def count(self, query: PodQuery) -> npt.NDArray[np.int64]:
        """Return int64 (n_nodes,), read-only: the number of pods of each node that match.

        *Cost*: that of the changed rows, see :meth:`cache.pod_counts.PodCounts.count`. The very
        first question takes in all pods, some 0.7 us each.
        """
        counts = self._synced_counts()
        if len(query.selector.requirements) > FEW_REQUIREMENTS:
            found, _ = counts.weigh({query: 1}, len(self._node_infos), _go_on)
            found.flags.writeable = False
            return found
        return counts.count(query, len(self._node_infos))

    def sum_by_label(
        self, query: PodQuery, column: LabelColumn, ids: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.int64]:
        """Return int64 (number of value ids,), read-only: the matching pods by their node's label.

        Parameters
        ----------
        column, ids
            A label of all nodes, see :meth:`cache.label_columns.LabelColumns.get`. Pods of nodes
            without it are left out.

        *Cost*: see :meth:`cache.pod_counts.PodCounts.sum_by_label`.
        """
        if len(query.selector.requirements) > FEW_REQUIREMENTS:
            return sum_by_value(column, ids, self.count(query))
        return self._synced_counts().sum_by_label(query, column, ids)

    def weigh(
        self, wanted: Mapping[PodQuery, int], check: Callable[[], None]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return two int64 (n_nodes,): the pods of each node that queries match, and their weights.

        A pod counts once for each query that matches it, with that query's weight.

        Parameters
        ----------
        check
            Called between queries; its exceptions propagate.

        *Cost*: that of :meth:`count` for each of a few queries; more of them are answered in one
        pass over all pods, and not remembered.
        """
        if len(wanted) > FEW_QUERIES:
            return self._synced_counts().weigh(wanted, len(self._node_infos), check)
        counts = np.zeros(len(self._node_infos), dtype=np.int64)
        worth = counts
        for query, weight in wanted.items():
            matching = self.count(query)
            if len(wanted) == 1:
                return matching, matching if weight == 1 else matching * weight
            counts = counts + matching
            worth = worth + matching * weight
        return counts, worth

    def term_sums(
        self, kind: TermKind, asked: AskedPod, label_keys: Mapping[str, int]
    ) -> list[TermSum]:
        """Return the terms of a kind, among those of all pods, that select a pod.

        Terms of one topology may come as one sum or as several. A topology that is not among
        ``label_keys``, the label keys of the nodes, is left out.
        """
        return self._synced_groups().sums(kind, asked, label_keys, len(self._node_infos))

    @property
    def has_terms(self) -> bool:
        """Whether any pod that runs has a term: else nobody need look for one. *Cost*: 1 us."""
        return len(self._synced_groups()) > 0

    def _synced_counts(self) -> PodCounts:
        if self._counts is None:
            self._counts = PodCounts()
            self._counts.fill(info.pods for info in self._node_infos)
            self._counts_cursor = self._changes.cursor
        for row in self._changes.since(self._counts_cursor):
            info = self._at(row)
            self._counts.set_row(row, _NO_PODS if info is None else info.pods)
        self._counts_cursor = self._changes.cursor
        return self._counts

    def _synced_groups(self) -> TermGroups:
        for row in self._changes.since(self._groups_cursor):
            info = self._at(row)
            self._groups.set_row(row, _NO_PODS if info is None else info.pods_with_affinity)
        self._groups_cursor = self._changes.cursor
        return self._groups

    def _at(self, row: int) -> NodeInfo | None:
        return self._node_infos[row] if row < len(self._node_infos) else None


def _go_on() -> None:
    """Return at once: without a caller's check there is nothing to do between two steps."""
