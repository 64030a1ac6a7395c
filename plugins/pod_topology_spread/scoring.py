"""Scores nodes by the matching pods in their domains, for the soft constraints of one pod.

*Source*: kube-scheduler 1.36, plugins/podtopologyspread/scoring.go.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from cache.label_columns import ABSENT, sum_by_value
from cache.value import MutableValue
from plugins.domain_counts import DomainCounts
from plugins.framework.attempt_budget import UNLIMITED
from plugins.framework.normalize import MAX_NODE_SCORE
from plugins.pod_topology_spread.constraints import HOSTNAME
from plugins.pod_topology_spread.inclusion import (
    Inclusion,
    is_on_every_node,
    with_all_labels,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from cache.columns import NodesView
    from cache.label_columns import LabelColumn
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

    def by_id(self, column: LabelColumn) -> npt.NDArray[np.float64] | None:
        """Return float64 (number of value ids,): what the constraint adds by domain, 0 for none.

        None where each node is counted for itself.
        """
        if self.counts is None:
            return None
        by_id = self.counts.by_id(column).astype(np.float64)
        by_id *= self.weight
        by_id += float(self.constraint.max_skew - 1)
        by_id[ABSENT] = 0.0
        return by_id

    def at(self, nodes: NodesView) -> npt.NDArray[np.float64]:
        """Return float64 (n_nodes,): the amount that the constraint adds to each node's score."""
        constraint, columns = self.constraint, nodes.columns
        column, ids = columns.labels.get(constraint.topology_key)
        by_id = self.by_id(column)
        if by_id is not None:
            return by_id.take(nodes.take(ids))
        if constraint.query is None:
            scores = np.zeros(len(nodes), dtype=np.float64)
        else:
            scores = nodes.take(columns.terms.count(constraint.query)).astype(np.float64)
            scores *= self.weight
        scores += float(constraint.max_skew - 1)
        if not is_on_every_node(columns, constraint.topology_key):
            scores[nodes.take(ids) == ABSENT] = 0.0
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
        if len(self._domains) == 1:
            (only,) = self._domains
            column, ids = nodes.columns.labels.get(only.constraint.topology_key)
            by_id = only.by_id(column)
            if by_id is not None:
                return _whole(by_id).take(nodes.take(ids))
        score = np.zeros(len(nodes), dtype=np.float64)
        for each in self._domains:
            score += each.at(nodes)
        whole = _whole(score)
        for key in self._required_keys:
            if not is_on_every_node(nodes.columns, key):
                whole[nodes.label(key)[1] == ABSENT] = 0
        return whole

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
    labelled = with_all_labels(columns, constraints) if requires_all else None
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
        mask = inclusion.mask(constraint, labelled)
        domains.append(_by_domain(constraint, feasible, scored, mask))
    keys = dict.fromkeys(each.topology_key for each in constraints) if requires_all else ()
    return SpreadScores(domains, None if scored is None else ~scored, tuple(keys))


def _by_domain(
    constraint: Constraint, feasible: NodesView, scored: BoolArray | None, mask: BoolArray | None
) -> CrowdedDomains:
    """Count the pods of a constraint in the domains of those feasible nodes that are ``scored``.

    Parameters
    ----------
    mask
        bool (n_nodes,): the nodes whose pods count; None for all.
    """
    columns, key = feasible.columns, constraint.topology_key
    column, ids = columns.labels.get(key)
    absent = ABSENT
    everywhere = is_on_every_node(columns, key)
    if not everywhere:
        # A node without the label is in the domain of the empty value.
        absent = column.id_of("") or ABSENT
        ids = np.where(ids == ABSENT, np.int32(absent), ids)
    if scored is None and everywhere and len(feasible) == len(columns):
        present = column.in_use
        num_domains = int(np.count_nonzero(present))
    else:
        offered = feasible.take(ids)
        if scored is not None:
            offered = offered[scored]
        present = column.in_use_at(offered)
        has_nameless = not everywhere and bool((offered == ABSENT).any())
        num_domains = int(np.count_nonzero(present)) + has_nameless
    if constraint.query is None:
        sums = np.zeros(len(column.values), dtype=np.int64)
    elif mask is None and absent == ABSENT:
        sums = columns.terms.sum_by_label(constraint.query, column, ids) * present
    else:
        matching = columns.terms.count(constraint.query)
        if mask is not None:
            ids, matching = ids[mask], matching[mask]
        sums = sum_by_value(column, ids, matching) * present
    return CrowdedDomains(constraint, _weight(num_domains), DomainCounts(key, column, sums))


def _whole(scores: npt.NDArray[np.float64]) -> IntArray:
    """Return int64 of the same shape: halves are rounded up, as Go rounds them."""
    whole = np.floor(scores)
    whole += scores - whole >= 0.5
    return whole.astype(np.int64)


def _weight(num_domains: int) -> float:
    return math.log(float(num_domains + 2))
