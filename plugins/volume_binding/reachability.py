"""Finds the nodes that can reach a volume, over columns and for one node.

*Source*: k8s.io/component-helpers storage/volume/helpers.go, CheckNodeAffinity (0.36);
kube-scheduler 1.36, pkg/scheduler/framework/plugins/volumebinding/binder.go, tryTranslatePVToCSI.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from cache.byte_bounded import remembered
from cache.csi_translation import (
    AWS_EBS,
    AZURE_DISK,
    CINDER,
    GCE_PD,
    PORTWORX,
    csi_node_affinity,
    in_tree_plugin,
    migrated_plugins,
)
from cache.label_selectors import compile_node_selector
from plugins.label_masks import requirements_mask

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cache.columns import NodesView
    from cache.label_selectors import NodeSelectorMatcher
    from cache.objects import NodeSelector
    from cache.storage import Storage
    from cache.storage_objects import PersistentVolume, VolumeNodeAffinity
    from plugins.framework.results import BoolArray

MAX_COMPILED_BYTES: Final = 1 << 25
"""32 MiB: more than the distinct node affinities of volumes that compete for pods at one time."""

_TRANSLATED: Final = frozenset((AWS_EBS, GCE_PD, AZURE_DISK, CINDER, PORTWORX))
"""The in-tree plugins whose volumes are translated to those of CSI drivers."""


@remembered(MAX_COMPILED_BYTES)
def _compiled(required: NodeSelector) -> NodeSelectorMatcher:
    return compile_node_selector(required, "spec.nodeAffinity.required")


def compiled_affinity(affinity: VolumeNodeAffinity | None) -> NodeSelectorMatcher | None:
    """Return the compiled node affinity of a volume, or None if it allows every node."""
    if affinity is None or affinity.required is None:
        return None
    return _compiled(affinity.required)


def matches(matcher: NodeSelectorMatcher | None, labels: Mapping[str, str]) -> bool:
    """Return whether a node with these labels satisfies a volume's node affinity.

    A requirement on the node's name is skipped, as in kube-scheduler: it builds a node from the
    labels alone, and does not check fields where a node has none.
    """
    return matcher is None or any(term.matches_labels(labels) for term in matcher.terms)


def mask(matcher: NodeSelectorMatcher | None, nodes: NodesView) -> BoolArray | None:
    """Return bool (n_nodes,): the nodes that satisfy a volume's node affinity; None for all."""
    if matcher is None:
        return None
    union: BoolArray = np.zeros(len(nodes), dtype=np.bool_)
    for term in matcher.terms:
        if term.nothing:
            continue
        one = requirements_mask(term.requirements, nodes)
        if one is None:
            return None
        union = union | one
    return union


def reachable(
    volume: PersistentVolume, labels: Mapping[str, str], node_name: str, storage: Storage
) -> bool:
    """Return whether a node can reach a bound volume.

    Raises
    ------
    MalformedObjectError
        When an in-tree volume that the node serves through a driver cannot be translated.
    """
    affinity = volume.spec.node_affinity
    plugin = in_tree_plugin(volume)
    if plugin in _TRANSLATED and plugin.name in migrated_plugins(storage.csi_nodes.get(node_name)):
        affinity = csi_node_affinity(volume)
    return matches(compiled_affinity(affinity), labels)


def reachable_mask(
    volume: PersistentVolume, nodes: NodesView, storage: Storage, among: BoolArray | None
) -> BoolArray | None:
    """Return bool (n_nodes,): the nodes that can reach a bound volume; None for all of them.

    Raises
    ------
    MalformedObjectError
        When an in-tree volume cannot be translated that one of the nodes ``among`` (None: all)
        serves through a driver.

    *Cost*: a pass over the labels that the volume requires; for an in-tree volume a Python loop
    over the CSINodes as well.
    """
    of_nodes = mask(compiled_affinity(volume.spec.node_affinity), nodes)
    plugin = in_tree_plugin(volume)
    if plugin not in _TRANSLATED:
        return of_nodes
    migrated = np.zeros(len(nodes.columns), dtype=np.bool_)
    row_of = nodes.columns.row_of
    for name, csi_node in storage.csi_nodes.all().items():
        row = row_of.get(name)
        if row is not None:
            migrated[row] = plugin.name in migrated_plugins(csi_node)
    here = nodes.take(migrated)
    if not (here if among is None else here & among).any():
        return of_nodes
    translated = mask(compiled_affinity(csi_node_affinity(volume)), nodes)
    everywhere = np.ones(len(nodes), dtype=np.bool_)
    return np.where(
        here,
        everywhere if translated is None else translated,
        everywhere if of_nodes is None else of_nodes,
    )
