"""The nodeSelector and the required node affinity of a pod, compiled.

NodeAffinity filters by them, and topology spreading selects the nodes that count by them.

*Source*: k8s.io/component-helpers scheduling/corev1/nodeaffinity, RequiredNodeAffinity (0.36), and
pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go, PreFilter (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from cache.byte_bounded import remembered
from cache.label_selectors import (
    IN,
    METADATA_NAME,
    compile_node_selector,
)
from cache.node_info import NO_LABELS
from cache.value import Value
from plugins.framework.attempt_budget import UNLIMITED
from plugins.framework.cycle_state import StateKey
from plugins.label_masks import FEW_TERMS, labels_mask, term_mask, together

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cache.columns import NodesView
    from cache.label_selectors import NodeSelectorMatcher, NodeTermSelector
    from cache.node_info import NodeInfo
    from cache.objects import NodeSelector, NodeSelectorTerm, PodSpec
    from cache.pod_info import PodInfo
    from plugins.framework.attempt_budget import AttemptBudget
    from plugins.framework.cycle_state import CycleState
    from plugins.framework.results import BoolArray

MAX_COMPILED_BYTES: Final = 1 << 22
"""4 MiB: more than the distinct node affinities among the pods that are pending at one time."""

_compile = remembered(MAX_COMPILED_BYTES)(compile_node_selector)


class RequiredNodeAffinity(Value, frozen=True):
    """The nodeSelector and the required node affinity of a pod; a node must satisfy both.

    Parameters
    ----------
    labels
        ``spec.nodeSelector``: the labels that a node must have; empty when there is none.
    affinity
        The terms of the required node affinity; None when there is none. A malformed term matches
        no node, and the other terms still count.
    """

    labels: Mapping[str, str]
    affinity: NodeSelectorMatcher | None

    def matches(self, node_info: NodeInfo) -> bool:
        """Return whether the pod may run on the node."""
        labels = node_info.labels
        if not self.labels.items() <= labels.items():
            return False
        return self.affinity is None or self.affinity.matches(labels, node_info.name)

    def mask(self, nodes: NodesView, budget: AttemptBudget = UNLIMITED) -> BoolArray | None:
        """Return bool (n_nodes,): the nodes where the pod may run; None for all of them.

        *Cost*: a pass or two over a column for each requirement, up to the first that no node
        meets.
        """
        mask = labels_mask(self.labels, nodes, budget)
        if self.affinity is None or (mask is not None and not mask.any()):
            return mask
        affine = any_term_mask(self.affinity, nodes, budget)
        return affine if mask is None else mask & affine


def required_of(state: CycleState, info: PodInfo) -> RequiredNodeAffinity:
    """Return the compiled requirements of the attempt's pod, compiled once for each attempt."""
    required = state.get(_REQUIRED)
    if required is None:
        required = required_node_affinity(info.pod.spec, state.budget)
        state.write(_REQUIRED, required)
    return required


def required_node_affinity(
    spec: PodSpec, budget: AttemptBudget = UNLIMITED
) -> RequiredNodeAffinity:
    """Return the compiled requirements of a pod.

    *Cost*: a few microseconds, less for an affinity that another pod had before.
    """
    required = required_node_selector(spec)
    return RequiredNodeAffinity(
        spec.node_selector or NO_LABELS,
        None if required is None else _compile(required, check=budget.glance),
    )


_REQUIRED: Final = StateKey[RequiredNodeAffinity]("required node affinity")


def any_term_mask(
    matcher: NodeSelectorMatcher, nodes: NodesView, budget: AttemptBudget = UNLIMITED
) -> BoolArray:
    """Return bool (n_nodes,): the nodes that satisfy one of the terms; none without terms."""
    mask: BoolArray | None = None
    terms: Iterable[NodeTermSelector] = matcher.terms
    if len(matcher.terms) > FEW_TERMS:
        terms = together(matcher.terms, nodes, budget)
    for term in terms:
        one = term_mask(term, nodes, budget)
        if mask is None:
            mask = one
        else:
            mask |= one
            budget.check()
            if mask.all():
                break
    return np.zeros(len(nodes), dtype=np.bool_) if mask is None else mask


def required_node_selector(spec: PodSpec) -> NodeSelector | None:
    """Return the pod's required node affinity as the API has it, or None."""
    if spec.affinity is None or spec.affinity.node_affinity is None:
        return None
    return spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution


def names_demanded(required: NodeSelector) -> frozenset[str] | None:
    """Return the names of the only nodes that a required affinity allows by name.

    None means that names do not limit it: some term requires no name. An empty set means that
    each term contradicts itself. Labels are ignored, and terms are not checked.
    """
    if not required.node_selector_terms:
        return None
    names: set[str] = set()
    for term in required.node_selector_terms:
        of_term = _names_of_term(term)
        if of_term is None:
            return None
        names |= of_term
    return frozenset(names)


def _names_of_term(term: NodeSelectorTerm) -> frozenset[str] | None:
    names: frozenset[str] | None = None
    for field in term.match_fields:
        if field.key == METADATA_NAME and field.operator == IN:
            wanted = frozenset(field.values)
            names = wanted if names is None else names & wanted
    return names
