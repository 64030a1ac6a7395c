"""Which changes of pods and nodes may bring a pod together with, or apart from, other pods.

Source: kube-scheduler 1.36, plugins/interpodaffinity/plugin.go, isSchedulableAfterPodChange and
isSchedulableAfterNodeChange.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cache.affinity_terms import pod_terms
from cache.kept_annotations import EMPTY_MAP
from plugins.framework.cluster_events import Hint
from plugins.inter_pod_affinity.pod_queries import query_of, query_of_all
from plugins.pod_memo import PodMemo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cache.affinity_terms import AffinityTerm, PodTerms
    from cache.namespaces import Namespaces
    from cache.objects import Node, Pod
    from plugins.framework.handle import Handle


class AffinityHints:
    """The hints of InterPodAffinity.

    Parameters
    ----------
    handle
        Lends the namespaces; not used before the first event.
    """

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._terms = PodMemo(pod_terms)

    def after_pod(self, pod: Pod, old: Any, new: Any) -> Hint:
        """Answer for a pod that came, went or was relabelled."""
        return Hint.QUEUE if _pod_helps(self._terms, pod, old, new) else Hint.SKIP

    def after_pod_of_one_term(self, pod: Pod, old: Any, new: Any) -> Hint:
        """Answer where kube-scheduler's hint lets a pod sleep that may have become schedulable.

        # Differs: kube-scheduler's hint takes a namespaceSelector for none unless no labels at
        all satisfy it; here it reaches the namespaces that it reaches in the filter. And where
        several terms keep pods apart, any of them may be the one that counts, while
        kube-scheduler wakes the pod only for a pod that all of them mean.
        """
        terms = self._terms.of(pod)
        simple = len(terms.required_anti_affinity) < 2 and not any(
            _selects_namespaces(each)
            for each in (*terms.required_affinity, *terms.required_anti_affinity)
        )
        if simple and (new is not None or _is_simple(self._terms.of(old))):
            return Hint.SKIP
        return Hint.QUEUE if self._one_term_helps(pod, old, new) else Hint.SKIP

    def _one_term_helps(self, pod: Pod, old: Pod | None, new: Pod | None) -> bool:
        if any(each is not None and _is_nowhere(each) for each in (old, new)):
            return False
        terms = self._terms.of(pod)
        namespaces = self._handle.namespaces
        was_met = old is not None and _all_mean(terms.required_affinity, old, namespaces)
        if new is not None and not was_met and _all_mean(terms.required_affinity, new, namespaces):
            return True
        if old is None:
            return False
        for term in terms.required_anti_affinity:
            query = query_of(term, namespaces)
            if query.matches(old) and (new is None or not query.matches(new)):
                return True
        if new is not None:
            return False
        metadata = pod.metadata
        labels = namespaces.labels_of(metadata.namespace)
        return any(
            term.matches(metadata.namespace, metadata.labels, labels)
            for term in self._terms.of(old).required_anti_affinity
        )

    def after_node(self, pod: Pod, old: Any, new: Any) -> Hint:
        """Answer for a node that came (``old`` is None) or was relabelled."""
        return Hint.QUEUE if self._node_helps(pod, old, new) else Hint.SKIP

    def _node_helps(self, pod: Pod, old: Node | None, new: Node | None) -> bool:
        if new is None:
            return False
        terms = self._terms.of(pod)
        # A new node may have no label, or be the first of its domain: both suit anti-affinity.
        if old is None:
            return bool(terms.required_anti_affinity) or any(
                term.topology_key in new.metadata.labels for term in terms.required_affinity
            )
        before, after = old.metadata.labels, new.metadata.labels
        return any(
            term.topology_key in after and before.get(term.topology_key) != after[term.topology_key]
            for term in terms.required_affinity
        ) or any(
            term.topology_key in before
            and before[term.topology_key] != after.get(term.topology_key)
            for term in terms.required_anti_affinity
        )


def _pod_helps(terms_of: PodMemo[PodTerms], pod: Pod, old: Pod | None, new: Pod | None) -> bool:
    if old is not None and new is not None and pod.metadata.uid == new.metadata.uid:
        return True
    if any(each is not None and _is_nowhere(each) for each in (old, new)):
        return False
    terms = terms_of.of(pod)
    if terms.errors:
        return True
    near, apart = terms.required_affinity, terms.required_anti_affinity
    if new is None:
        if old is None:
            return False
        others = terms_of.of(old)
        return (
            bool(others.errors)
            or _each_means(apart, old)
            or _each_means(others.required_anti_affinity, pod)
        )
    if old is None:
        return _each_means(near, new)
    return (not _each_means(near, old) and _each_means(near, new)) or (
        _each_means(apart, old) and not _each_means(apart, new)
    )


def _each_means(terms: Sequence[AffinityTerm], other: Pod) -> bool:
    """Tell whether there are terms and all of them mean a pod whose namespace has no labels."""
    metadata = other.metadata
    return bool(terms) and all(
        term.matches(metadata.namespace, metadata.labels, EMPTY_MAP) for term in terms
    )


def _selects_namespaces(term: AffinityTerm) -> bool:
    return not term.namespace_selector.nothing


def _is_simple(terms: PodTerms) -> bool:
    apart = terms.required_anti_affinity
    return len(apart) < 2 and not any(_selects_namespaces(each) for each in apart)


def _is_nowhere(pod: Pod) -> bool:
    return not pod.spec.node_name and not pod.status.nominated_node_name


def _all_mean(terms: Sequence[AffinityTerm], other: Pod, namespaces: Namespaces) -> bool:
    return bool(terms) and query_of_all(terms, namespaces).matches(other)
