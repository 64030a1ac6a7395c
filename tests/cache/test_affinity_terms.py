from __future__ import annotations

from msgspec.structs import replace

from cache.affinity_terms import TermKind, pod_terms
from cache.label_selectors import EVERYTHING, NOTHING, selector_of_labels
from cache.objects import (
    Affinity,
    LabelSelector,
    LabelSelectorRequirement,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodMeta,
    PodSpec,
    WeightedPodAffinityTerm,
)
from tests.builders import pod

MALFORMED = LabelSelector(match_expressions=(LabelSelectorRequirement("app", "Around"),))


def one(term: PodAffinityTerm) -> Pod:
    attract = PodAffinity(required_during_scheduling_ignored_during_execution=(term,))
    return Pod(
        PodMeta(name="p", namespace="home"), PodSpec(affinity=Affinity(pod_affinity=attract))
    )


def test_a_term_without_namespaces_means_those_of_its_own_pod() -> None:
    (term,) = pod_terms(one(PodAffinityTerm("zone", LabelSelector()))).required_affinity
    assert term.namespaces == {"home"}
    assert term.matches("home", {}, {})
    assert not term.matches("away", {}, {})


def test_a_term_with_a_namespace_selector_does_not() -> None:
    selector = LabelSelector(match_labels={"team": "x"})
    wanted = PodAffinityTerm("zone", LabelSelector(), namespace_selector=selector)
    (term,) = pod_terms(one(wanted)).required_affinity
    assert not term.matches("home", {}, {})
    assert term.matches("away", {}, {"team": "x"})


def test_a_term_without_a_label_selector_means_no_pod() -> None:
    (term,) = pod_terms(one(PodAffinityTerm("zone"))).required_affinity
    assert term.selector == NOTHING


def test_an_empty_namespace_selector_means_every_namespace() -> None:
    wanted = PodAffinityTerm("zone", LabelSelector(), namespace_selector=LabelSelector())
    (term,) = pod_terms(one(wanted)).required_affinity
    assert term.namespace_selector == EVERYTHING
    assert term.matches("anywhere", {}, {})


def test_terms_come_with_their_kind_and_weight() -> None:
    built = pod().pod_anti_affinity("zone", app="a").prefers_pods(7, "host", app="b").build()
    assert [(kind, weight, term.selector) for kind, weight, term in pod_terms(built)] == [
        (TermKind.REQUIRED_ANTI_AFFINITY, 0, selector_of_labels({"app": "a"})),
        (TermKind.PREFERRED_AFFINITY, 7, selector_of_labels({"app": "b"})),
    ]


def test_a_malformed_selector_costs_the_terms_of_its_kind() -> None:
    bad = PodAffinityTerm("zone", MALFORMED)
    good = WeightedPodAffinityTerm(1, PodAffinityTerm("zone", LabelSelector()))
    built = one(bad)
    attract = PodAffinity((PodAffinityTerm("zone", LabelSelector()), bad), (good,))
    spec = replace(built.spec, affinity=Affinity(pod_affinity=attract))
    terms = pod_terms(replace(built, spec=spec))
    assert terms.required_affinity == ()
    assert len(terms.preferred_affinity) == 1
    assert [error.path for error in terms.errors] == [
        "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution"
        ".labelSelector.matchExpressions[0].operator"
    ]
