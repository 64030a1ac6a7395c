"""The filter state of PodTopologySpread for one pod: matching pods by domain.

*Source*: kube-scheduler 1.36, plugins/podtopologyspread/filtering.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from cache.label_columns import ABSENT, sum_by_value
from plugins.domain_counts import DomainCounts
from plugins.framework.attempt_budget import UNLIMITED
from plugins.framework.results import ALL_PASS, NodeVerdicts
from plugins.framework.status import SUCCESS, unresolvable, unschedulable
from plugins.pod_topology_spread.inclusion import (
    Inclusion,
    is_on_every_node,
    with_all_labels,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from cache.columns import Columns, NodesView
    from cache.label_columns import LabelColumn
    from cache.node_info import NodeInfo
    from cache.pod_info import PodInfo
    from plugins.framework.attempt_budget import AttemptBudget
    from plugins.framework.results import BoolArray
    from plugins.framework.status import Status
    from plugins.pod_topology_spread.constraints import Constraint
    from plugins.required_node_affinity import RequiredNodeAffinity
    from plugins.taint_tables import TaintTables

_REASON: Final = "node(s) didn't match pod topology spread constraints"
NO_LABEL: Final = unresolvable(f"{_REASON} (missing required label)")
SKEWED: Final = unschedulable(_REASON)

_STATUSES: Final = (NO_LABEL, SKEWED)

_NO_MINIMUM: Final = 2**31 - 1
"""The counts when there is no domain."""


class SpreadDomains:
    """The domains of one constraint and the matching pods in each.

    Parameters
    ----------
    constraint
        The constraint.
    self_match
        1 when the constraint's selector matches the pod to be placed, else 0.
    column
        The values of the topology key.
    sums
        int64 (number of value ids,): matching pods on the nodes that count.
    present
        bool (number of value ids,): the domains of the nodes that count.
    """

    def __init__(
        self,
        constraint: Constraint,
        self_match: int,
        column: LabelColumn,
        sums: npt.NDArray[np.int64],
        present: BoolArray,
    ) -> None:
        self.constraint = constraint
        self.self_match = self_match
        self.counts = DomainCounts(constraint.topology_key, column, sums)
        self._column = column
        self._present = present
        self._num_domains = int(np.count_nonzero(present))
        self._minimum: int | None = None

    def copy(self) -> SpreadDomains:
        """Return domains whose counts change independently."""
        twin = SpreadDomains.__new__(SpreadDomains)
        twin.constraint = self.constraint
        twin.self_match = self.self_match
        twin.counts = self.counts.copy()
        twin._column = self._column
        twin._present = self._present
        twin._num_domains = self._num_domains
        twin._minimum = self._minimum
        return twin

    def change(self, value: str, by: int) -> None:
        """Add or subtract a matching pod of a domain."""
        self.counts.change(value, by)
        self._minimum = None

    @property
    def minimum(self) -> int:
        """The matching pods of the emptiest domain; 0 when there are too few domains."""
        if self._minimum is None:
            if self._num_domains < self.constraint.min_domains:
                self._minimum = 0
            elif not self._num_domains:
                self._minimum = _NO_MINIMUM
            else:
                # There may be new values since: no node that counted has them.
                table = self.counts.by_id(self._column)[: len(self._present)]
                self._minimum = int(table[self._present].min())
        return self._minimum

    @property
    def most(self) -> int:
        """The most matching pods that a domain may have to accept the pod."""
        return self.constraint.max_skew + self.minimum - self.self_match

    def mask(self, nodes: NodesView) -> BoolArray | None:
        """Return bool (n_nodes,): the nodes where the pod keeps within the skew.

        None stands for every node.
        """
        key = self.constraint.topology_key
        column, ids = nodes.columns.labels.get(key)
        fits = self.counts.by_id(column) <= self.most
        if is_on_every_node(nodes.columns, key) and not (column.in_use & ~fits).any():
            return None
        fits[ABSENT] = False
        return fits.take(nodes.take(ids))


class SpreadCounts:
    """All hard constraints of one pod with their domains.

    Parameters
    ----------
    domains
        In the order of the constraints; none where no node has the labels of all constraints, so
        that every node lacks one.
    """

    __slots__ = ("_affinity", "_domains", "_info")

    def __init__(
        self, info: PodInfo, affinity: RequiredNodeAffinity, domains: Sequence[SpreadDomains]
    ) -> None:
        self._info = info
        self._affinity = affinity
        self._domains = domains

    def copy(self) -> SpreadCounts:
        """Return counts for a what-if."""
        return SpreadCounts(self._info, self._affinity, [each.copy() for each in self._domains])

    def change(self, other: PodInfo, node_info: NodeInfo, by: int) -> None:
        """Add (``by`` 1) or subtract (-1) a pod on a node.

        # Differs: a pod that is being deleted and one that only the empty selector selects are
        # left out, as they are when the nodes are counted; kube-scheduler counts both here, so
        # that removing such a pod lowers a count that did not contain it.
        """
        if not self._domains:
            return
        labels, pod = node_info.labels, self._info.pod
        if any(each.constraint.topology_key not in labels for each in self._domains):
            return
        for each in self._domains:
            constraint = each.constraint
            if (
                constraint.query is not None
                and constraint.query.matches(other.pod)
                and constraint.includes(node_info, self._affinity, pod.spec.tolerations)
            ):
                each.change(labels[constraint.topology_key], by)

    def is_concerned_by(self, other: PodInfo) -> bool:
        """Return whether :meth:`change` may count a pod."""
        queries = (each.constraint.query for each in self._domains)
        return any(query is not None and query.matches(other.pod) for query in queries)

    def verdict(self, node_info: NodeInfo) -> Status:
        """Judge one node by the first constraint that it does not satisfy."""
        if not self._domains:
            return NO_LABEL
        labels = node_info.labels
        for each in self._domains:
            value = labels.get(each.constraint.topology_key)
            if value is None:
                return NO_LABEL
            if each.counts.of(value) > each.most:
                return SKEWED
        return SUCCESS

    def verdicts(self, nodes: NodesView) -> NodeVerdicts:
        """Judge all nodes of a view.

        *Cost*: a pass or two over a column for each constraint that some node does not satisfy.
        """
        if not self._domains:
            return NodeVerdicts(np.zeros(len(nodes), dtype=np.bool_), status=NO_LABEL)
        all_masks = ((each, each.mask(nodes)) for each in self._domains)
        masks = [(each, mask) for each, mask in all_masks if mask is not None]
        if not masks:
            return ALL_PASS
        (_, passed), *others = masks
        for _, mask in others:
            passed = passed & mask
        if passed.all():
            return ALL_PASS

        def detail() -> tuple[npt.NDArray[np.integer], Sequence[Status]]:
            which = np.zeros(len(nodes), dtype=np.intp)
            # The first constraint that rejects is written last.
            for each, mask in reversed(masks):
                _, ids = nodes.label(each.constraint.topology_key)
                which[~mask] = (ids != ABSENT)[~mask]
            return which, _STATUSES

        return NodeVerdicts(passed, detail=detail)


def count_spread(
    info: PodInfo,
    affinity: RequiredNodeAffinity,
    constraints: Sequence[Constraint],
    columns: Columns,
    taint_tables: TaintTables,
    budget: AttemptBudget = UNLIMITED,
) -> SpreadCounts:
    """Count the pods that constraints spread, by domain.

    Only nodes with the labels of all constraints count, and of these the ones that a
    constraint's own policies include.

    *Cost*: a few passes over columns for each constraint; next to nothing when no node has the
    labels of all.
    """
    labelled = with_all_labels(columns, constraints)
    if labelled is not None and not labelled.any():
        # No pod counts, so no skew is too large: maxSkew is at least 1. What remains is the label
        # that each node lacks.
        return SpreadCounts(info, affinity, ())
    if len({each.topology_key for each in constraints}) == 1:
        # A node without the one label is in none of the domains anyway.
        labelled = None
    inclusion = Inclusion(columns, info.pod.spec, taint_tables, affinity, budget)
    domains = []
    for at, constraint in enumerate(constraints):
        if at:
            budget.check()
        column, ids = columns.labels.get(constraint.topology_key)
        mask = inclusion.mask(constraint, labelled)
        present = column.in_use if mask is None else column.in_use_at(ids[mask])
        if constraint.query is None:
            sums = np.zeros(len(column.values), dtype=np.int64)
        elif mask is None:
            sums = columns.terms.sum_by_label(constraint.query, column, ids)
        else:
            matching = columns.terms.count(constraint.query)
            sums = sum_by_value(column, ids[mask], matching[mask])
        self_match = int(constraint.selector.matches(info.labels))
        domains.append(SpreadDomains(constraint, self_match, column, sums, present))
    return SpreadCounts(info, affinity, domains)
