"""InterPodAffinity as the words say it: every pod of every node is looked at, one by one."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from cache.label_selectors import compile_label_selector
from plugins.framework.status import SUCCESS, Status, unresolvable, unschedulable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cache.objects import Namespace, Node, Pod, PodAffinity, PodAffinityTerm

AFFINITY = unresolvable("node(s) didn't match pod affinity rules")
ANTI_AFFINITY = unschedulable("node(s) didn't match pod anti-affinity rules")
EXISTING = unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")


class Naive:
    """Answers about one pod in one cluster."""

    def __init__(
        self,
        pod: Pod,
        nodes: Sequence[Node],
        pods: Iterable[Pod],
        namespaces: Iterable[Namespace],
    ) -> None:
        self.pod = pod
        self.nodes = nodes
        self.namespaces = {each.metadata.name: each.metadata.labels for each in namespaces}
        by_name = {node.metadata.name: node for node in nodes}
        self.placed = [(each, by_name[each.spec.node_name]) for each in pods]

    # --- what a term means --------------------------------------------------------------------

    def own_term_means(self, term: PodAffinityTerm, other: Pod) -> bool:
        """A term of the pod to be placed; its namespaces are listed first."""
        names = _names(term, self.pod)
        selector = compile_label_selector(term.namespace_selector)
        if not selector.empty:
            names |= {name for name, labels in self.namespaces.items() if selector.matches(labels)}
        reached = other.metadata.namespace in names or selector.matches({})
        return reached and compile_label_selector(term.label_selector).matches(
            other.metadata.labels
        )

    def term_means_pod(self, term: PodAffinityTerm, owner: Pod) -> bool:
        """A term of another pod, about the pod to be placed."""
        namespace = self.pod.metadata.namespace
        labels = self.namespaces.get(namespace, {})
        selector = compile_label_selector(term.namespace_selector)
        reached = namespace in _names(term, owner) or selector.matches(labels)
        return reached and compile_label_selector(term.label_selector).matches(
            self.pod.metadata.labels
        )

    def all_own_terms_mean(self, terms: Sequence[PodAffinityTerm], other: Pod) -> bool:
        return bool(terms) and all(self.own_term_means(term, other) for term in terms)

    # --- filter -------------------------------------------------------------------------------

    def statuses(self) -> dict[str, Status] | None:
        """By node name; None where the filter is skipped."""
        affinity = _required(self.pod, "pod_affinity")
        anti_affinity = _required(self.pod, "pod_anti_affinity")
        together: Counter[tuple[str, str]] = Counter()
        apart: Counter[tuple[str, str]] = Counter()
        existing: Counter[tuple[str, str]] = Counter()
        for other, node in self.placed:
            labels = node.metadata.labels
            if self.all_own_terms_mean(affinity, other):
                _count(together, affinity, labels)
            _count(apart, [t for t in anti_affinity if self.own_term_means(t, other)], labels)
            theirs = _required(other, "pod_anti_affinity")
            _count(existing, [t for t in theirs if self.term_means_pod(t, other)], labels)
        if not affinity and not anti_affinity and not existing:
            return None
        first = not together and self.all_own_terms_mean(affinity, self.pod)
        return {
            node.metadata.name: self._status(
                node.metadata.labels, affinity, together, first, anti_affinity, apart, existing
            )
            for node in self.nodes
        }

    def _status(
        self,
        labels: Mapping[str, str],
        affinity: Sequence[PodAffinityTerm],
        together: Counter[tuple[str, str]],
        first: bool,
        anti_affinity: Sequence[PodAffinityTerm],
        apart: Counter[tuple[str, str]],
        existing: Counter[tuple[str, str]],
    ) -> Status:
        if any(term.topology_key not in labels for term in affinity):
            return AFFINITY
        met = all(together[(t.topology_key, labels[t.topology_key])] > 0 for t in affinity)
        if not met and not first:
            return AFFINITY
        if any(
            apart[(t.topology_key, labels[t.topology_key])] > 0
            for t in anti_affinity
            if t.topology_key in labels
        ):
            return ANTI_AFFINITY
        if any(existing[pair] > 0 for pair in labels.items()):
            return EXISTING
        return SUCCESS

    # --- score --------------------------------------------------------------------------------

    def scores(
        self, *, hard_weight: int = 1, ignore_existing: bool = False
    ) -> dict[str, int] | None:
        """Raw scores by node name; None where scoring is skipped."""
        attract = _preferred(self.pod, "pod_affinity")
        repel = _preferred(self.pod, "pod_anti_affinity")
        if ignore_existing and not attract and not repel:
            return None
        worth: dict[tuple[str, str], int] = {}

        def add(term: PodAffinityTerm, node: Node, weight: int) -> None:
            value = node.metadata.labels.get(term.topology_key)
            if value is not None:
                pair = (term.topology_key, value)
                worth[pair] = worth.get(pair, 0) + weight

        for other, node in self.placed:
            for weight, term in attract:
                if self.own_term_means(term, other):
                    add(term, node, weight)
            for weight, term in repel:
                if self.own_term_means(term, other):
                    add(term, node, -weight)
            if hard_weight:
                for term in _required(other, "pod_affinity"):
                    if self.term_means_pod(term, other):
                        add(term, node, hard_weight)
            for weight, term in _preferred(other, "pod_affinity"):
                if self.term_means_pod(term, other):
                    add(term, node, weight)
            for weight, term in _preferred(other, "pod_anti_affinity"):
                if self.term_means_pod(term, other):
                    add(term, node, -weight)
        if not worth:
            return None
        return {
            node.metadata.name: sum(worth.get(pair, 0) for pair in node.metadata.labels.items())
            for node in self.nodes
        }


def normalized(scores: Mapping[str, int]) -> dict[str, int]:
    """The lowest becomes 0, the highest 100."""
    low, high = min(scores.values()), max(scores.values())
    if high == low:
        return dict.fromkeys(scores, 0)
    return {
        name: int(100.0 * (float(score - low) / float(high - low)))
        for name, score in scores.items()
    }


def _names(term: PodAffinityTerm, owner: Pod) -> set[str]:
    if not term.namespaces and term.namespace_selector is None:
        return {owner.metadata.namespace}
    return set(term.namespaces)


def _count(
    counter: Counter[tuple[str, str]], terms: Iterable[PodAffinityTerm], labels: Mapping[str, str]
) -> None:
    for term in terms:
        if term.topology_key in labels:
            counter[(term.topology_key, labels[term.topology_key])] += 1


def _affinity(pod: Pod, kind: str) -> PodAffinity | None:
    return None if pod.spec.affinity is None else getattr(pod.spec.affinity, kind)


def _required(pod: Pod, kind: str) -> tuple[PodAffinityTerm, ...]:
    found = _affinity(pod, kind)
    if found is None:
        return ()
    return found.required_during_scheduling_ignored_during_execution


def _preferred(pod: Pod, kind: str) -> list[tuple[int, PodAffinityTerm]]:
    found = _affinity(pod, kind)
    if found is None:
        return []
    preferred = found.preferred_during_scheduling_ignored_during_execution
    return [(each.weight, each.pod_affinity_term) for each in preferred]
