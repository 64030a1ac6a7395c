"""The filter state of InterPodAffinity for one pod: counts by domain, and their changes.

*Source*: kube-scheduler 1.36, plugins/interpodaffinity/filtering.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from cache.affinity_terms import TermKind, pod_terms
from cache.label_columns import ABSENT
from cache.term_group import AskedPod
from cache.value import Value
from plugins.domain_counts import DomainCounts
from plugins.framework.attempt_budget import UNLIMITED
from plugins.framework.results import ALL_PASS, NodeVerdicts
from plugins.framework.status import SUCCESS, unresolvable, unschedulable
from plugins.inter_pod_affinity.pod_queries import query_of_all, weights_by_query

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from cache.affinity_terms import AffinityTerm, PodTerms
    from cache.columns import Columns, NodesView
    from cache.namespaces import Namespaces
    from cache.node_info import NodeInfo
    from cache.pod_info import PodInfo
    from cache.pod_table import PodQuery
    from plugins.framework.attempt_budget import AttemptBudget
    from plugins.framework.results import BoolArray
    from plugins.framework.status import Status

REJECTED_BY_AFFINITY: Final = unresolvable("node(s) didn't match pod affinity rules")
REJECTED_BY_ANTI_AFFINITY: Final = unschedulable("node(s) didn't match pod anti-affinity rules")
REJECTED_BY_EXISTING: Final = unschedulable(
    "node(s) didn't satisfy existing pods anti-affinity rules"
)

_STATUSES: Final = (REJECTED_BY_AFFINITY, REJECTED_BY_ANTI_AFFINITY, REJECTED_BY_EXISTING)


class _Meaning(Value, frozen=True):
    """How another pod relates to the terms of the pod to be placed.

    Parameters
    ----------
    info
        The other pod.
    is_company
        Whether all affinity terms select it.
    unwanted
        How many anti-affinity terms of each topology select it.
    existing
        How many of its own anti-affinity terms of each topology select the pod to be placed.
    """

    info: PodInfo
    is_company: bool
    unwanted: Mapping[str, int]
    existing: Mapping[str, int]


class AffinityCounts:
    """Counts by domain for the terms of one pod and for the terms that select it.

    Parameters
    ----------
    info
        The pod to be placed.
    namespace_labels
        The labels of its namespace.

    Attributes
    ----------
    affinity
        For each topology of the pod's affinity terms: the pods that all terms select, once
        for each term with that topology.
    anti_affinity
        For each topology of its anti-affinity terms: the pods that each of these selects, summed.
    existing
        For each topology: how many anti-affinity terms of other pods select the pod.
    """

    def __init__(self, info: PodInfo, terms: PodTerms, namespace_labels: Mapping[str, str]) -> None:
        self._info = info
        self._terms = terms
        self._namespace_labels = namespace_labels
        self._query: PodQuery | None = None
        self._anti_queries: Mapping[PodQuery, Mapping[str, int]] = {}
        self._meanings: dict[str, _Meaning] = {}
        self.affinity: dict[str, DomainCounts] = {}
        self.anti_affinity: dict[str, DomainCounts] = {}
        self.existing: dict[str, DomainCounts] = {}
        self.is_self_affine = False
        """Whether the pod's affinity terms select the pod itself."""

    def count(
        self, columns: Columns, namespaces: Namespaces, budget: AttemptBudget = UNLIMITED
    ) -> None:
        """Count over all nodes.

        A topology that no node has is left out: with such an affinity term no node is feasible,
        and such an anti-affinity term excludes no pod.

        *Cost*: a few passes over columns for each distinct term; for more than a few terms of one
        topology a few microseconds for each and for each pod that they select.
        """
        affinity, anti_affinity = self._terms.required_affinity, self._terms.required_anti_affinity
        known = columns.label_keys
        for term in affinity:
            if term.topology_key not in known:
                self.affinity = {term.topology_key: DomainCounts(term.topology_key)}
                return
        self._count_existing(columns)
        if affinity:
            self._query = query_of_all(affinity, namespaces, budget)
            self.is_self_affine = self._query.matches(self._info.pod)
            for key, times in _times(affinity).items():
                self.affinity[key] = DomainCounts.of_pods(columns, key, self._query, times)
        if anti_affinity:
            unweighted = ((1, term) for term in anti_affinity)
            weights = weights_by_query(unweighted, namespaces, known, budget)
            for key, wanted in weights.items():
                self.anti_affinity[key] = _weighed(columns, key, wanted, budget)
            self._anti_queries = _by_query(weights)

    def _count_existing(self, columns: Columns) -> None:
        metadata = self._info.pod.metadata
        asked = AskedPod(metadata.namespace, metadata.labels, self._namespace_labels)
        kind = TermKind.REQUIRED_ANTI_AFFINITY
        sums: dict[str, npt.NDArray[np.int64]] = {}
        for each in columns.terms.term_sums(kind, asked, columns.label_keys):
            _add(sums, each.topology_key, each.counts)
        for key, amounts in sums.items():
            counts = DomainCounts.summed(columns, key, amounts)
            if counts.total:
                self.existing[key] = counts

    @property
    def is_idle(self) -> bool:
        """Whether no term applies to the pod."""
        return not (
            self.existing or self._terms.required_affinity or self._terms.required_anti_affinity
        )

    def copy(self) -> AffinityCounts:
        """Return counts for a what-if."""
        twin = AffinityCounts(self._info, self._terms, self._namespace_labels)
        twin._query = self._query
        twin._anti_queries = self._anti_queries
        twin._meanings = self._meanings
        twin.is_self_affine = self.is_self_affine
        twin.affinity = _copies(self.affinity)
        twin.anti_affinity = _copies(self.anti_affinity)
        twin.existing = _copies(self.existing)
        return twin

    # --- what-ifs -----------------------------------------------------------------------------

    def change(self, other: PodInfo, labels: Mapping[str, str], by: int) -> None:
        """Add (``by`` 1) or subtract (-1) a pod on a node with these labels."""
        meaning = self._meaning_of(other)
        for key, times in meaning.existing.items():
            if key not in self.existing:
                self.existing[key] = DomainCounts(key)
            _change(self.existing[key], labels, by * times)
        if meaning.is_company:
            for term in self._terms.required_affinity:
                _change(self.affinity[term.topology_key], labels, by)
        for key, times in meaning.unwanted.items():
            _change(self.anti_affinity[key], labels, by * times)

    def is_concerned_by(self, other: PodInfo) -> bool:
        """Return whether :meth:`change` may count anything for a pod."""
        meaning = self._meaning_of(other)
        return meaning.is_company or bool(meaning.unwanted) or bool(meaning.existing)

    def _meaning_of(self, other: PodInfo) -> _Meaning:
        """Return what :meth:`change` counts for a pod.

        *Cost*: that of its terms and of the pod's own, once for all what-ifs about the pod.
        """
        known = self._meanings.get(other.uid)
        if known is not None and known.info is other:
            return known
        pod, metadata = other.pod, self._info.pod.metadata
        unwanted: dict[str, int] = {}
        for query, topologies in self._anti_queries.items():
            if query.matches(pod):
                for key, times in topologies.items():
                    unwanted[key] = unwanted.get(key, 0) + times
        existing: dict[str, int] = {}
        for term in pod_terms(pod).required_anti_affinity:
            if term.matches(metadata.namespace, metadata.labels, self._namespace_labels):
                existing[term.topology_key] = existing.get(term.topology_key, 0) + 1
        is_company = self._query is not None and self._query.matches(pod)
        meaning = self._meanings[other.uid] = _Meaning(other, is_company, unwanted, existing)
        return meaning

    # --- verdicts -----------------------------------------------------------------------------

    @property
    def _is_first_of_its_kind(self) -> bool:
        """Whether the affinity terms select no other pod, but would select the pod itself.

        Without this rule the first pod of a group with affinity to itself would never start.
        """
        return self.is_self_affine and not any(each.total for each in self.affinity.values())

    def verdict(self, node_info: NodeInfo) -> Status:
        """Judge one node."""
        labels = node_info.labels
        if not self._satisfies_affinity(labels):
            return REJECTED_BY_AFFINITY
        if _any_in_domain(self.anti_affinity.values(), labels):
            return REJECTED_BY_ANTI_AFFINITY
        if _any_in_domain(self.existing.values(), labels):
            return REJECTED_BY_EXISTING
        return SUCCESS

    def _satisfies_affinity(self, labels: Mapping[str, str]) -> bool:
        together = True
        for key, counts in self.affinity.items():
            value = labels.get(key)
            if value is None:
                return False
            together = together and counts.of(value) > 0
        return together or self._is_first_of_its_kind

    def verdicts(self, nodes: NodesView) -> NodeVerdicts:
        """Judge all nodes of a view. *Cost*: a few passes over a column for each topology."""
        masks = (
            self._affinity_mask(nodes),
            _mask_without(self.anti_affinity.values(), nodes),
            _mask_without(self.existing.values(), nodes),
        )
        used = [(mask, at) for at, mask in enumerate(masks) if mask is not None]
        if not used:
            return ALL_PASS
        passed, only = used[0]
        if len(used) == 1:
            return NodeVerdicts(passed, status=_STATUSES[only])
        for mask, _ in used[1:]:
            passed = passed & mask

        def detail() -> tuple[npt.NDArray[np.integer], Sequence[Status]]:
            which = np.zeros(len(nodes), dtype=np.intp)
            # The first check that rejects is written last.
            for mask, at in reversed(used):
                which[~mask] = at
            return which, _STATUSES

        return NodeVerdicts(passed, detail=detail)

    def _affinity_mask(self, nodes: NodesView) -> BoolArray | None:
        mask: BoolArray | None = None
        first_of_its_kind = self._is_first_of_its_kind
        for key, counts in self.affinity.items():
            if key not in nodes.columns.label_keys:
                return np.zeros(len(nodes), dtype=np.bool_)
            column, ids = nodes.label(key)
            if first_of_its_kind:
                one: BoolArray = ids != ABSENT
            else:
                one = (counts.by_id(column) > 0).take(ids)
            mask = one if mask is None else mask & one
        return mask


def _mask_without(counted: Iterable[DomainCounts], nodes: NodesView) -> BoolArray | None:
    """Return bool (n_nodes,): the nodes whose domains all count 0; None for all nodes."""
    mask: BoolArray | None = None
    for counts in counted:
        column, ids = nodes.label(counts.key)
        table = counts.by_id(column) <= 0
        if not table.all():
            one = table.take(ids)
            mask = one if mask is None else mask & one
    return mask


def _any_in_domain(counted: Iterable[DomainCounts], labels: Mapping[str, str]) -> bool:
    for counts in counted:
        value = labels.get(counts.key)
        if value is not None and counts.of(value) > 0:
            return True
    return False


def _change(counts: DomainCounts, labels: Mapping[str, str], by: int) -> None:
    value = labels.get(counts.key)
    if value is not None:
        counts.change(value, by)


def _copies(counted: Mapping[str, DomainCounts]) -> dict[str, DomainCounts]:
    return {key: counts.copy() for key, counts in counted.items()}


def _times(terms: Sequence[AffinityTerm]) -> dict[str, int]:
    times: dict[str, int] = {}
    for term in terms:
        times[term.topology_key] = times.get(term.topology_key, 0) + 1
    return times


def _weighed(
    columns: Columns, key: str, wanted: Mapping[PodQuery, int], budget: AttemptBudget
) -> DomainCounts:
    """Return the sums by domain of the pods that queries match, with the queries' weights."""
    if len(wanted) == 1:
        ((query, weight),) = wanted.items()
        return DomainCounts.of_pods(columns, key, query, weight)
    _, worth = columns.terms.weigh(wanted, budget.check)
    return DomainCounts.summed(columns, key, worth)


def _add(sums: dict[str, npt.NDArray[np.int64]], key: str, amounts: npt.NDArray[np.int64]) -> None:
    known = sums.get(key)
    sums[key] = amounts if known is None else known + amounts


def _by_query(weights: Mapping[str, Mapping[PodQuery, int]]) -> dict[PodQuery, dict[str, int]]:
    """Return how often each query occurs for each topology."""
    turned: dict[PodQuery, dict[str, int]] = {}
    for key, queries in weights.items():
        for query, times in queries.items():
            turned.setdefault(query, {})[key] = times
    return turned
