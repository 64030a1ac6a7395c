"""Queueing hints of InterPodAffinity: changes of pods and nodes that may help a rejected pod.

*Source*: kube-scheduler 1.36, plugins/interpodaffinity/plugin.go, isSchedulableAfterPodChange and
isSchedulableAfterNodeChange.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from cache.affinity_terms import AffinityTerm, pod_terms
from cache.kept_annotations import EMPTY_MAP
from plugins.framework.cluster_events import Action, EventRegistration, Resource
from plugins.framework.queueing_hints import (
    AFTER_OWN_CHANGE,
    ANY,
    NO,
    YES,
    GroupHint,
    Likeness,
    Question,
    Sample,
    is_nowhere,
    label_topics,
    selector_topics,
)
from plugins.inter_pod_affinity.pod_queries import query_of, query_of_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cache.namespaces import Namespaces
    from cache.objects import Node, Pod
    from cache.pod_info import PodInfo
    from plugins.framework.handle import Handle
    from plugins.framework.queueing_hints import Topic

_NEAR: Final = "near"
_APART: Final = "apart"


class RequiredTerms(NamedTuple):
    """The required terms of a pod, compiled."""

    near: tuple[AffinityTerm, ...]
    apart: tuple[AffinityTerm, ...]
    malformed: bool
    """Whether some term, required or preferred, cannot be read."""

    @classmethod
    def of(cls, pod: Pod) -> RequiredTerms:
        """Return the required terms of a pod."""
        terms = pod_terms(pod)
        return cls(terms.required_affinity, terms.required_anti_affinity, bool(terms.errors))

    @property
    def are_simple(self) -> bool:
        """Whether kube-scheduler's hint covers all pods that these terms select."""
        return len(self.apart) < 2 and not any(map(_selects_namespaces, (*self.near, *self.apart)))

    def topics(self) -> Iterable[Topic]:
        """Return the topics of pods with such terms."""
        if self.malformed:
            yield ANY
        # All terms have to select the same pod: one of them may represent the others.
        likely = [selector_topics(term.selector) for term in self.near]
        if likely:
            known = [each for each in likely if each is not None]
            yield from _in_role(_NEAR, min(known, key=len) if known else None)
        for term in self.apart:
            yield from _in_role(_APART, selector_topics(term.selector))


TERMS: Final = Likeness[RequiredTerms](
    lambda info: RequiredTerms.of(info.pod), RequiredTerms.topics
)


def _labels_of(info: PodInfo) -> Sample[Pod]:
    metadata = info.pod.metadata
    return Sample((metadata.namespace, frozenset(metadata.labels.items())), info.pod)


LABELS: Final = Likeness[Sample["Pod"]](
    _labels_of, lambda sample: label_topics(sample.value.metadata.labels.items())
)
"""The waiting pod, which the terms of another pod may select."""


class AffinityHints:
    """The hints of InterPodAffinity.

    Parameters
    ----------
    handle
        Gives access to the namespaces; it is not used before the first event.
    """

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def registrations(self) -> Sequence[EventRegistration]:
        """Return the events: pods added, deleted or relabelled; nodes added or relabelled.

        # Differs: kube-scheduler's hint ignores a namespaceSelector unless no labels at all satisfy
        it; here it selects the same namespaces as in the filter. And where several anti-affinity
        terms exist, a pod that any of them selects wakes the waiting pod, while kube-scheduler
        wakes it only for a pod that all of them select. A pod that the anti-affinity of others
        keeps out wakes for a node that joins or changes its labels, while kube-scheduler asks for
        the pod's own terms alone.
        """
        changes = Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE
        by_one_term = GroupHint(TERMS, self._about_one_term, is_addition=True)
        by_one_of_its = GroupHint(LABELS, self._about_one_of_its_terms, is_addition=True)
        to_a_node = Action.ADD | Action.UPDATE_NODE_LABEL
        by_others_terms = GroupHint(TERMS, _about_terms_of_others, is_addition=True)
        return (
            EventRegistration.on(Resource.POD, changes, GroupHint(TERMS, _about_pod)),
            EventRegistration.on(Resource.POD, Action.DELETE, GroupHint(LABELS, _about_terms_of)),
            EventRegistration.on(Resource.POD, Action.UPDATE_POD_LABEL, AFTER_OWN_CHANGE),
            EventRegistration.on(Resource.POD, changes, by_one_term),
            EventRegistration.on(Resource.POD, Action.DELETE, by_one_of_its),
            EventRegistration.on(Resource.NODE, to_a_node, GroupHint(TERMS, _about_node)),
            EventRegistration.on(Resource.NODE, to_a_node, by_others_terms),
        )

    def _about_one_term(self, old: Pod | None, new: Pod | None) -> Question[RequiredTerms]:
        """Return the hint for pods that kube-scheduler's hint skips wrongly."""
        if is_nowhere(old) or is_nowhere(new):
            return NO
        namespaces = self._handle.namespaces

        def answer(terms: RequiredTerms) -> bool:
            if terms.are_simple:
                return False
            was_met = old is not None and _all_mean(terms.near, old, namespaces)
            if new is not None and not was_met and _all_mean(terms.near, new, namespaces):
                return True
            if old is None:
                return False
            queries = (query_of(term, namespaces) for term in terms.apart)
            return any(
                query.matches(old) and (new is None or not query.matches(new)) for query in queries
            )

        return Question(answer, _topics_of(old, new))

    def _about_one_of_its_terms(self, old: Pod, new: Pod | None) -> Question[Sample[Pod]]:
        """Return the hint for a deleted pod: Queue if one of its terms excluded the waiting pod."""
        if is_nowhere(old):
            return NO
        others = RequiredTerms.of(old)
        if len(others.apart) < 2 and not any(map(_selects_namespaces, others.apart)):
            return NO
        namespaces = self._handle.namespaces

        def answer(waiting: Sample[Pod]) -> bool:
            metadata = waiting.value.metadata
            labels = namespaces.labels_of(metadata.namespace)
            return any(
                term.matches(metadata.namespace, metadata.labels, labels) for term in others.apart
            )

        topics: set[Topic] = set()
        for term in others.apart:
            of_term = selector_topics(term.selector)
            if of_term is None:
                return Question(answer)
            topics.update(of_term)
        return Question(answer, topics)


def _about_pod(old: Pod | None, new: Pod | None) -> Question[RequiredTerms]:
    """Return the hint for a pod that was added, deleted or relabelled."""
    if is_nowhere(old) or is_nowhere(new):
        return NO
    if old is not None and new is None and RequiredTerms.of(old).malformed:
        return YES

    def answer(terms: RequiredTerms) -> bool:
        near, apart = terms.near, terms.apart
        if terms.malformed:
            return True
        if new is None:
            return old is not None and _each_means(apart, old)
        if old is None:
            return _each_means(near, new)
        return (not _each_means(near, old) and _each_means(near, new)) or (
            _each_means(apart, old) and not _each_means(apart, new)
        )

    return Question(answer, _topics_of(old, new))


def _about_terms_of(old: Pod, new: Pod | None) -> Question[Sample[Pod]]:
    """Return the hint for a deleted pod: Queue if all of its terms excluded the waiting pod."""
    if is_nowhere(old):
        return NO
    terms = RequiredTerms.of(old).apart
    if not terms:
        return NO
    return Question(
        lambda waiting: _each_means(terms, waiting.value), selector_topics(terms[0].selector)
    )


def _about_node(old: Node | None, new: Node | None) -> Question[RequiredTerms]:
    """Return the hint for a node that was added (``old`` is None) or relabelled."""
    if new is None:
        return NO
    after = new.metadata.labels
    if old is None:
        # A new node may have no label, or be the first of its domain: both suit anti-affinity.
        return Question(
            lambda terms: bool(terms.apart) or any(t.topology_key in after for t in terms.near)
        )
    before = old.metadata.labels
    return Question(
        lambda terms: (
            any(
                term.topology_key in after
                and before.get(term.topology_key) != after[term.topology_key]
                for term in terms.near
            )
            or any(
                term.topology_key in before
                and before[term.topology_key] != after.get(term.topology_key)
                for term in terms.apart
            )
        )
    )


def _about_terms_of_others(old: Node | None, new: Node | None) -> Question[RequiredTerms]:
    """Return the hint for pods that the anti-affinity of others may have kept from all nodes.

    A new node can be in a domain without those others, and the pod's own affinity has to find its
    topology keys there. A changed label can take one of those others, and with it what it forbids,
    from one domain to another.
    """
    if old is not None:
        return YES
    if new is None:
        return NO
    labels = new.metadata.labels
    return Question(lambda terms: all(term.topology_key in labels for term in terms.near))


def _topics_of(old: Pod | None, new: Pod | None) -> set[Topic]:
    """Return the topics of a change: added pods matter for affinity, deleted for anti-affinity."""
    topics: set[Topic] = {ANY}
    for role, pod in ((_NEAR, new), (_APART, old)):
        if pod is not None:
            topics.update(_in_role(role, label_topics(pod.metadata.labels.items())))
    return topics


def _in_role(role: str, topics: Iterable[tuple[str, ...]] | None) -> Iterable[Topic]:
    return (ANY,) if topics is None else ((role, *topic) for topic in topics)


def _each_means(terms: Sequence[AffinityTerm], other: Pod) -> bool:
    """Return whether there are terms that all select a pod whose namespace has no labels."""
    metadata = other.metadata
    return bool(terms) and all(
        term.matches(metadata.namespace, metadata.labels, EMPTY_MAP) for term in terms
    )


def _selects_namespaces(term: AffinityTerm) -> bool:
    return not term.namespace_selector.nothing


def _all_mean(terms: Sequence[AffinityTerm], other: Pod, namespaces: Namespaces) -> bool:
    return bool(terms) and query_of_all(terms, namespaces).matches(other)
