"""The score of a domain for a pod: by its own preferences, and by those of the pods there.

*Source*: kube-scheduler 1.36, plugins/interpodaffinity/scoring.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from cache.affinity_terms import TermKind
from cache.term_group import AskedPod
from plugins.domain_counts import DomainCounts
from plugins.framework.attempt_budget import UNLIMITED
from plugins.framework.normalize import MAX_NODE_SCORE
from plugins.inter_pod_affinity.pod_queries import weights_by_query

if TYPE_CHECKING:
    import numpy.typing as npt

    from cache.affinity_terms import PodTerms
    from cache.columns import Columns, NodesView
    from cache.namespaces import Namespaces
    from cache.node_info import NodeInfo
    from cache.pod_info import PodInfo
    from plugins.framework.attempt_budget import AttemptBudget
    from plugins.framework.results import IntArray

_SIGNS: Final = ((TermKind.PREFERRED_AFFINITY, 1), (TermKind.PREFERRED_ANTI_AFFINITY, -1))


class DomainScores:
    """The sum of weights for and against each domain, by topology."""

    __slots__ = ("_counts",)

    def __init__(self, counts: tuple[DomainCounts, ...]) -> None:
        self._counts = counts

    def of(self, node_info: NodeInfo) -> int:
        """Return the score of one node: the sum over its domains."""
        labels = node_info.labels
        score = 0
        for counts in self._counts:
            value = labels.get(counts.key)
            if value is not None:
                score += counts.of(value)
        return score

    def at(self, nodes: NodesView) -> IntArray:
        """Return int64 (n_nodes,): the score of each node."""
        scores = np.zeros(len(nodes), dtype=np.int64)
        for counts in self._counts:
            scores += counts.at(nodes)
        return scores


def domain_scores(
    info: PodInfo,
    terms: PodTerms,
    columns: Columns,
    namespaces: Namespaces,
    hard_pod_affinity_weight: int,
    budget: AttemptBudget = UNLIMITED,
) -> DomainScores | None:
    """Return the scores of all domains; None when no term selects a pod.

    *Cost*: a few passes over columns for each distinct term that applies to the pod.
    """
    tally = _Tally(columns)
    for preferred, sign in ((terms.preferred_affinity, 1), (terms.preferred_anti_affinity, -1)):
        if preferred:
            weighted = ((each.weight, each.term) for each in preferred)
            weights = weights_by_query(weighted, namespaces, columns.label_keys, budget)
            for key, wanted in weights.items():
                counts, worth = columns.terms.weigh(wanted, budget.check)
                tally.add(key, counts, worth, sign)
    metadata = info.pod.metadata
    namespace_labels = namespaces.labels_of(metadata.namespace)
    asked = AskedPod(metadata.namespace, metadata.labels, namespace_labels)
    if hard_pod_affinity_weight > 0:
        kind = TermKind.REQUIRED_AFFINITY
        for found in columns.terms.term_sums(kind, asked, columns.label_keys):
            tally.add(found.topology_key, found.counts, found.counts, hard_pod_affinity_weight)
    for kind, sign in _SIGNS:
        for found in columns.terms.term_sums(kind, asked, columns.label_keys):
            tally.add(found.topology_key, found.counts, found.weighted, sign)
    return tally.scores()


class _Tally:
    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._sums: dict[str, npt.NDArray[np.int64]] = {}
        self._met = False

    def add(
        self, key: str, counts: npt.NDArray[np.int64], worth: npt.NDArray[np.int64], weight: int
    ) -> None:
        """Add ``weight`` times the value of each node that has the label ``key``.

        Parameters
        ----------
        counts
            int64 (n_nodes,): the matching pods there, whatever their weight.
        """
        if not self._met:
            # Weights may cancel out to 0 although the terms have selected pods.
            self._met = bool(np.logical_and(counts, self._columns.labels.get(key)[1]).any())
        weighted = worth * weight
        known = self._sums.get(key)
        if known is None:
            self._sums[key] = weighted
        else:
            known += weighted

    def scores(self) -> DomainScores | None:
        if not self._met:
            return None
        return DomainScores(
            tuple(DomainCounts.summed(self._columns, key, sums) for key, sums in self._sums.items())
        )


def normalized(scores: IntArray) -> IntArray:
    """Scale scores so that the lowest becomes 0 and the highest 100; all 0 if all are equal."""
    if not len(scores):
        return scores.copy()
    lowest = int(scores.min())
    span = int(scores.max()) - lowest
    if span <= 0:
        return np.zeros(len(scores), dtype=np.int64)
    stretched = float(MAX_NODE_SCORE) * ((scores - lowest).astype(np.float64) / float(span))
    return stretched.astype(np.int64, copy=False)
