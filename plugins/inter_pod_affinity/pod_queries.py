"""From the terms of the pod to be placed to queries for the pods that they mean.

Source: kube-scheduler 1.36, plugins/interpodaffinity/plugin.go
(mergeAffinityTermNamespacesIfNotEmpty) and filtering.go (podMatchesAllAffinityTerms).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cache.kept_annotations import EMPTY_MAP
from cache.label_selectors import Selector
from cache.pod_table import PodQuery

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cache.affinity_terms import AffinityTerm
    from cache.namespaces import Namespaces


def query_of(term: AffinityTerm, namespaces: Namespaces) -> PodQuery:
    """Return what finds the pods that a term of the pod to be placed means.

    A namespace selector that is satisfied by no labels at all (the empty one, and one of nothing
    but ``NotIn`` and ``DoesNotExist``) reaches every namespace: kube-scheduler unrolls the
    selector into names and then still asks it about the absent labels of the other pods'
    namespaces.
    """
    selector = term.namespace_selector
    if selector.matches(EMPTY_MAP):
        return PodQuery(None, term.selector)
    if selector.nothing:
        return PodQuery(term.namespaces, term.selector)
    return PodQuery(term.namespaces | namespaces.matching(selector), term.selector)


def query_of_all(terms: Sequence[AffinityTerm], namespaces: Namespaces) -> PodQuery:
    """Return what finds the pods that every one of the terms means; there is at least one."""
    queries = [query_of(term, namespaces) for term in terms]
    if len(queries) == 1:
        return queries[0]
    within: frozenset[str] | None = None
    for query in queries:
        if query.namespaces is not None:
            within = query.namespaces if within is None else within & query.namespaces
    nothing = any(query.selector.nothing for query in queries)
    requirements = [each for query in queries for each in query.selector.requirements]
    return PodQuery(within, Selector(requirements, nothing=nothing))
