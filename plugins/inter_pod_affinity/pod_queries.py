"""Compiles the terms of the pod to be placed into queries for the pods that they select.

*Source*: kube-scheduler 1.36, plugins/interpodaffinity/plugin.go
(mergeAffinityTermNamespacesIfNotEmpty) and filtering.go (podMatchesAllAffinityTerms).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cache.kept_annotations import EMPTY_MAP
from cache.label_selectors import Selector
from cache.pod_table import PodQuery
from plugins.framework.attempt_budget import UNLIMITED

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    from cache.affinity_terms import AffinityTerm
    from cache.namespaces import Namespaces
    from plugins.framework.attempt_budget import AttemptBudget

SOME: Final = 16
"""Terms between two checks of the budget: ordinary pods have fewer."""


def query_of(term: AffinityTerm, namespaces: Namespaces) -> PodQuery:
    """Return the query for the pods that a term of the pod to be placed selects.

    A namespace selector that is satisfied by no labels at all (the empty one, and one of nothing
    but ``NotIn`` and ``DoesNotExist``) selects every namespace: kube-scheduler expands the
    selector to names and then still applies it to the absent labels of the other pods'
    namespaces.
    """
    selector = term.namespace_selector
    if selector.matches(EMPTY_MAP):
        return PodQuery(None, term.selector)
    if selector.nothing:
        return PodQuery(term.namespaces, term.selector)
    return PodQuery(term.namespaces | namespaces.matching(selector), term.selector)


def query_of_all(
    terms: Sequence[AffinityTerm], namespaces: Namespaces, budget: AttemptBudget = UNLIMITED
) -> PodQuery:
    """Return the query for the pods that all of the terms select; there is at least one term."""
    queries = []
    for at, term in enumerate(terms):
        if at:
            budget.check()
        queries.append(query_of(term, namespaces))
    if len(queries) == 1:
        return queries[0]
    within: frozenset[str] | None = None
    for query in queries:
        if query.namespaces is not None:
            within = query.namespaces if within is None else within & query.namespaces
    nothing = any(query.selector.nothing for query in queries)
    requirements = [each for query in queries for each in query.selector.requirements]
    return PodQuery(within, Selector(requirements, nothing=nothing))


def weights_by_query(
    weighted: Iterable[tuple[int, AffinityTerm]],
    namespaces: Namespaces,
    topologies: Container[str],
    budget: AttemptBudget,
) -> dict[str, dict[PodQuery, int]]:
    """Return, for each topology, the queries for the pods that its terms select, and the weights.

    Terms that select the same pods become one, with the sum of their weights.

    Parameters
    ----------
    topologies
        Terms of other topologies are left out.
    """
    found: dict[str, dict[PodQuery, int]] = {}
    for at, (weight, term) in enumerate(weighted):
        if at % SOME == SOME - 1:
            budget.check()
        if term.topology_key in topologies:
            weights = found.setdefault(term.topology_key, {})
            query = query_of(term, namespaces)
            weights[query] = weights.get(query, 0) + weight
    return found
