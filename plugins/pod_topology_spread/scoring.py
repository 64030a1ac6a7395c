"""Scores nodes by the matching pods in their domains, for the soft constraints of one pod.

*Source*: kube-scheduler 1.36, plugins/podtopologyspread/scoring.go.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from cache.columns import NodesView
from cache.value import MutableValue
from plugins.domain_counts import ABSENT, DomainCounts, sum_by_domain
from plugins.framework.attempt_budget import UNLIMITED
from plugins.framework.normalize import MAX_NODE_SCORE
from plugins.pod_topology_spread.constraints import HOSTNAME
from plugins.pod_topology_spread.inclusion import Inclusion, with_all_labels

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from cache.node_info import NodeInfo
    from cache.pod_info import PodInfo
    from plugins.framework.attempt_budget import AttemptBudget
    from plugins.framework.results import BoolArray, IntArray
    from plugins.pod_topology_spread.constraints import Constraint
    from plugins.taint_tables import TaintTables


class CrowdedDomains(MutableValue, eq=False):
    """One soft constraint: the matching pods of each domain, and the weight of a pod.

    Parameters
    ----------
    constraint
        The constraint.
    weight
        The logarithm of the number of domains plus 2: it keeps topologies with few domains from
        losing their influence to those with many.
    counts
        Matching pods by domain; None where each node is a domain of its own and is counted for
        itself.
    """

    constraint: Constraint
    weight: float
    counts: DomainCounts | None

    def of(self, node_info: NodeInfo) -> float:
        """Return the amount that the constraint adds to the score of one node."""
        value = node_info.labels.get(self.constraint.topology_key)
        if value is None:
            return 0.0
        if self.counts is not None:
            count = self.counts.of(value)
        elif self.constraint.query is None:
            count = 0
        else:
            matches = self.constraint.query.matches
            count = sum(matches(info.pod) for info in node_info.pods.values())
        return float(count) * self.weight + float(self.constraint.max_skew - 1)

    def at(self, nodes: NodesView) -> npt.NDArray[np.float64]:
        """Return float64 (n_nodes,): the amount that the constraint adds to each node's score."""
        constraint = self.constraint
        column, ids = nodes.label(constraint.topology_key)
        extra = float(constraint.max_skew - 1)
        if self.counts is not None:
            by_id = self.counts.by_id(column).astype(np.float64) * self.weight + extra
            by_id[ABSENT] = 0.0
            return by_id.take(ids)
        if constraint.query is None:
            counts: npt.NDArray[np.float64] = np.zeros(len(nodes), dtype=np.float64)
        else:
            counts = nodes.take(nodes.columns.terms.count(constraint.query)).astype(np.float64)
        scores = counts * self.weight + extra
        scores[ids == ABSENT] = 0.0
        return scores


class SpreadScores:
    """All soft constraints of one pod.

    Parameters
    ----------
    domains
        In the order of the constraints.
    ignored
        bool (number of feasible nodes,): those that lack a label and get no score; None for
        none of them.
    required_keys
        The labels that a node must have to be scored.
    """

    __slots__ = ("_domains", "_ignored", "_required_keys")

    def __init__(
        self,
        domains: Sequence[CrowdedDomains],
        ignored: BoolArray | None,
        required_keys: tuple[str, ...],
    ) -> None:
        self._domains = domains
        self._ignored = ignored
        self._required_keys = required_keys

    def of(self, node_info: NodeInfo) -> int:
        """Return the raw score of one node: the more crowded, the higher."""
        labels = node_info.labels
        if any(key not in labels for key in self._required_keys):
            return 0
        score = 0.0
        for each in self._domains:
            score += each.of(node_info)
        whole = math.floor(score)
        return whole + (score - whole >= 0.5)

    def at(self, nodes: NodesView) -> IntArray:
        """Return int64 (n_nodes,): the raw score of each node.

        *Cost*: a few passes over a column for each constraint.
        """
        score = np.zeros(len(nodes), dtype=np.float64)
        for each in self._domains:
            score += each.at(nodes)
        # Halves are rounded up, as Go rounds them; numpy would round them to the even number.
        whole = np.floor(score)
        whole += score - whole >= 0.5
        for key in self._required_keys:
            whole[nodes.label(key)[1] == ABSENT] = 0.0
        return whole.astype(np.int64)

    def normalized(self, scores: IntArray) -> IntArray:
        """Return 0..100 for the raw scores of the feasible nodes, highest for the least crowded."""
        if not len(scores):
            return scores.copy()
        kept = scores if self._ignored is None else scores[~self._ignored]
        if not len(kept):
            return np.zeros(len(scores), dtype=np.int64)
        lowest, highest = int(kept.min()), int(kept.max())
        if highest == 0:
            result = np.full(len(scores), MAX_NODE_SCORE, dtype=np.int64)
        else:
            result = MAX_NODE_SCORE * (highest + lowest - scores) // highest
        if self._ignored is not None:
            result[self._ignored] = 0
        return result


def crowded_domains(
    info: PodInfo,
    constraints: Sequence[Constraint],
    feasible: NodesView,
    taint_tables: TaintTables,
    *,
    requires_all: bool,
    budget: AttemptBudget = UNLIMITED,
) -> SpreadScores:
    """Count the pods that soft constraints spread, in the domains of feasible nodes.

    Parameters
    ----------
    requires_all
        Whether nodes without the labels of all constraints neither count nor get a score.
    """
    columns = feasible.columns
    everywhere = NodesView(columns)
    labelled = with_all_labels(everywhere, constraints) if requires_all else None
    if labelled is not None and not labelled.any():
        return SpreadScores((), np.ones(len(feasible), dtype=np.bool_), ())
    scored = None if labelled is None else feasible.take(labelled)
    num_scored = len(feasible) if scored is None else int(np.count_nonzero(scored))
    inclusion = Inclusion(columns, info.pod.spec, taint_tables, budget=budget)
    domains = []
    for at, constraint in enumerate(constraints):
        if at:
            budget.check()
        if constraint.topology_key == HOSTNAME:
            domains.append(CrowdedDomains(constraint, _weight(num_scored), None))
            continue
        column, ids = columns.labels.get(constraint.topology_key)
        # A node without the label is in the domain of the empty value.
        empty = column.id_of("")
        if empty is not None:
            ids = np.where(ids == ABSENT, np.int32(empty), ids)
        offered = feasible.take(ids)
        if scored is not None:
            offered = offered[scored]
        present = np.bincount(offered, minlength=len(column.values)) > 0
        mask = inclusion.mask(constraint, labelled)
        sums = np.zeros(len(column.values), dtype=np.int64)
        if constraint.query is not None:
            matching = columns.terms.count(constraint.query)
            if mask is not None:
                ids, matching = ids[mask], matching[mask]
            sums = sum_by_domain(column, ids, matching)
            sums[~present] = 0
            sums[ABSENT] = 0
        weight = _weight(int(np.count_nonzero(present)))
        counts = DomainCounts(constraint.topology_key, column, sums)
        domains.append(CrowdedDomains(constraint, weight, counts))
    keys = dict.fromkeys(each.topology_key for each in constraints) if requires_all else ()
    return SpreadScores(domains, None if scored is None else ~scored, tuple(keys))


def _weight(num_domains: int) -> float:
    return math.log(float(num_domains + 2))
