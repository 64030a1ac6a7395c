"""Inter-pod affinity terms compiled to matchers, grouped by kind for each pod.

A term selects pods by their labels and namespaces, and names the topology key of its domains.
The API server merges ``matchLabelKeys`` and ``mismatchLabelKeys`` into the label selector when
the pod is created, so this module does not read them.

*Concurrency*: all objects are immutable and may be shared between threads.

*Source*: k8s.io/kube-scheduler framework/types.go, AffinityTerm and newAffinityTerm (0.36);
pkg/scheduler/framework/types.go, PodInfo.Update (1.36).
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final, TypeVar

from cache.byte_bounded import remembered
from cache.label_selectors import EVERYTHING, NOTHING, Selector, compile_label_selector
from cache.objects import LabelSelector
from cache.resources import MalformedObjectError
from cache.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from cache.objects import (
        LabelSelectorRequirement,
        Pod,
        PodAffinity,
        PodAffinityTerm,
        WeightedPodAffinityTerm,
    )

A = TypeVar("A")
B = TypeVar("B")

MAX_COMPILED_BYTES: Final = 1 << 24
"""16 MiB: more than the distinct selectors of all pods of a large cluster that have affinity."""


_SOME: Final = 64
"""Terms that are compiled between two calls of ``check``: ordinary pods have fewer."""


class TermKind(IntEnum):
    """The kind of a term: affinity or anti-affinity, required or preferred."""

    REQUIRED_AFFINITY = 0
    REQUIRED_ANTI_AFFINITY = 1
    PREFERRED_AFFINITY = 2
    PREFERRED_ANTI_AFFINITY = 3


class AffinityTerm(Value, frozen=True):
    """A compiled term.

    Parameters
    ----------
    topology_key
        The node label whose values are the domains.
    namespaces
        The namespaces whose pods are selected; if the term names none, that of the pod that has it.
    namespace_selector
        Selects further namespaces by their labels; NOTHING when there is none.
    selector
        Selects pods by their labels.
    """

    topology_key: str
    namespaces: frozenset[str]
    namespace_selector: Selector
    selector: Selector

    def matches(
        self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]
    ) -> bool:
        """Return whether the term selects a pod of a namespace."""
        if namespace in self.namespaces or self.namespace_selector.matches(namespace_labels):
            return self.selector.matches(labels)
        return False


class WeightedTerm(Value, frozen=True):
    """A preference: ``weight`` (1-100) for or against each pod that the term selects."""

    weight: int
    term: AffinityTerm


NO_TERMS: Final[tuple[AffinityTerm, ...]] = ()
NO_PREFERENCES: Final[tuple[WeightedTerm, ...]] = ()


class PodTerms(Value, frozen=True):
    """All terms of a pod, each kind in the order of its spec.

    ``errors`` lists the malformed selectors: a kind with a malformed selector has no terms at all.
    """

    required_affinity: tuple[AffinityTerm, ...] = NO_TERMS
    required_anti_affinity: tuple[AffinityTerm, ...] = NO_TERMS
    preferred_affinity: tuple[WeightedTerm, ...] = NO_PREFERENCES
    preferred_anti_affinity: tuple[WeightedTerm, ...] = NO_PREFERENCES
    errors: tuple[MalformedObjectError, ...] = ()

    def __iter__(self) -> Iterator[tuple[TermKind, int, AffinityTerm]]:
        """Yield the kind, the weight (0 for a required term) and the term, for each term."""
        for term in self.required_affinity:
            yield TermKind.REQUIRED_AFFINITY, 0, term
        for term in self.required_anti_affinity:
            yield TermKind.REQUIRED_ANTI_AFFINITY, 0, term
        for each in self.preferred_affinity:
            yield TermKind.PREFERRED_AFFINITY, each.weight, each.term
        for each in self.preferred_anti_affinity:
            yield TermKind.PREFERRED_ANTI_AFFINITY, each.weight, each.term


NO_POD_TERMS: Final = PodTerms()


def pod_terms(pod: Pod, check: Callable[[], None] | None = None) -> PodTerms:
    """Return the terms of a pod.

    Parameters
    ----------
    check
        Called at intervals while many terms are compiled; its exceptions propagate.

    *Cost*: some microseconds for each term; cached selectors are not compiled again.
    """
    affinity = pod.spec.affinity
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return NO_POD_TERMS
    errors: list[MalformedObjectError] = []
    compiler = _Compiler(pod.metadata.namespace, errors, check)
    attract, repel = affinity.pod_affinity, affinity.pod_anti_affinity
    return PodTerms(
        compiler.required(attract, "spec.affinity.podAffinity"),
        compiler.required(repel, "spec.affinity.podAntiAffinity"),
        compiler.preferred(attract, "spec.affinity.podAffinity"),
        compiler.preferred(repel, "spec.affinity.podAntiAffinity"),
        tuple(errors),
    )


def compile_selector_once(
    selector: LabelSelector | None,
    path: str = "labelSelector",
    check: Callable[[], None] | None = None,
) -> Selector:
    """Return the result of :func:`compile_label_selector`, which is cached.

    Raises
    ------
    MalformedObjectError
        When the selector is malformed.
    """
    if selector is None:
        return NOTHING
    labels, expressions = selector.match_labels, selector.match_expressions
    if not labels and not expressions:
        return EVERYTHING
    return _compiled(tuple(labels.items()), expressions, path, check=check)


@remembered(MAX_COMPILED_BYTES)
def _compiled(
    labels: tuple[tuple[str, str], ...],
    expressions: tuple[LabelSelectorRequirement, ...],
    path: str,
    *,
    check: Callable[[], None] | None,
) -> Selector:
    return compile_label_selector(LabelSelector(dict(labels), expressions), path, check=check)


class _Compiler:
    """Compiles the terms of one pod; an error drops all terms of its kind."""

    def __init__(
        self,
        namespace: str,
        errors: list[MalformedObjectError],
        check: Callable[[], None] | None,
    ) -> None:
        self._own = frozenset((namespace,))
        self._errors = errors
        self._check = check
        self._compiled = 0

    def required(self, affinity: PodAffinity | None, path: str) -> tuple[AffinityTerm, ...]:
        if affinity is None:
            return NO_TERMS
        where = f"{path}.requiredDuringSchedulingIgnoredDuringExecution"
        terms = affinity.required_during_scheduling_ignored_during_execution
        return self._of_kind(self._term, terms, where)

    def preferred(self, affinity: PodAffinity | None, path: str) -> tuple[WeightedTerm, ...]:
        if affinity is None:
            return NO_PREFERENCES
        where = f"{path}.preferredDuringSchedulingIgnoredDuringExecution"
        terms = affinity.preferred_during_scheduling_ignored_during_execution
        return self._of_kind(self._weighted, terms, where)

    def _of_kind(
        self, compiled: Callable[[A, str], B], terms: Iterable[A], path: str
    ) -> tuple[B, ...]:
        try:
            return tuple(compiled(term, path) for term in terms)
        except MalformedObjectError as error:
            self._errors.append(error)
            return ()

    def _weighted(self, weighted: WeightedPodAffinityTerm, path: str) -> WeightedTerm:
        return WeightedTerm(weighted.weight, self._term(weighted.pod_affinity_term, path))

    def _term(self, term: PodAffinityTerm, path: str) -> AffinityTerm:
        self._compiled += 1
        if self._check is not None and not self._compiled % _SOME:
            self._check()
        own = not term.namespaces and term.namespace_selector is None
        return AffinityTerm(
            term.topology_key,
            self._own if own else frozenset(term.namespaces),
            compile_selector_once(
                term.namespace_selector, f"{path}.namespaceSelector", self._check
            ),
            compile_selector_once(term.label_selector, f"{path}.labelSelector", self._check),
        )
