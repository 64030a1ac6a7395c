"""The arguments of NodeAffinity.

They contain a node affinity as pods do, but are decoded strictly: the API server checks the
fields of a pod, but in a configuration a misspelt field would silently match no node.

*Source*: k8s.io/kube-scheduler config/v1/types_pluginargs.go, NodeAffinityArgs (0.36).
"""

from __future__ import annotations

from cache.objects import (
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
)
from plugins.framework.args import PluginArgs


class AddedRequirement(NodeSelectorRequirement, frozen=True, forbid_unknown_fields=True):
    """A requirement, decoded strictly."""


class AddedTerm(NodeSelectorTerm, frozen=True, forbid_unknown_fields=True):
    """A term, decoded strictly."""

    match_expressions: tuple[AddedRequirement, ...] = ()
    match_fields: tuple[AddedRequirement, ...] = ()


class AddedNodeSelector(NodeSelector, frozen=True, forbid_unknown_fields=True):
    """A node selector, decoded strictly."""

    node_selector_terms: tuple[AddedTerm, ...] = ()


class AddedPreference(PreferredSchedulingTerm, frozen=True, forbid_unknown_fields=True):
    """A preference, decoded strictly."""

    preference: AddedTerm


class AddedAffinity(NodeAffinity, frozen=True, forbid_unknown_fields=True):
    """A node affinity, decoded strictly."""

    required_during_scheduling_ignored_during_execution: AddedNodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[AddedPreference, ...] = ()


class NodeAffinityArgs(PluginArgs, frozen=True):
    """The administrator's node affinity, which applies in addition to that of each pod.

    Parameters
    ----------
    added_affinity
        Holds for every pod of the profile; None adds nothing.
    """

    added_affinity: AddedAffinity | None = None
