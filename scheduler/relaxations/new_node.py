"""The node that does not exist yet: one more like another, or of a shape that no node has."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from msgspec.structs import replace

from cache.columns import ColumnSpec
from cache.node_info import NodeInfo
from cache.objects import Node, NodeMeta, NodeSpec, NodeStatus
from cache.resources import PODS
from plugins.node_resources_fit.needs import filter_needs
from plugins.required_node_affinity import required_node_selector
from scheduler.relaxations.costs import SYSTEM_TAINT_PREFIX
from scheduler.relaxations.relaxation import NewNode
from scheduler.relaxations.requests import amount_text
from scheduler.runtime.filter_outcome import PluginError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cache.objects import (
        NodeSelectorRequirement,
        NodeSelectorTerm,
        OwnerReference,
        Taint,
    )
    from cache.pod_info import PodInfo
    from cache.snapshot import Snapshot
    from scheduler.relaxations.verifier import Verifier

    Shape: TypeAlias = tuple[
        frozenset[tuple[str, int]], frozenset[tuple[str, str]], tuple[Taint, ...]
    ]

HOSTNAME: Final = "kubernetes.io/hostname"
_ZONE_KEYS: Final = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
)

MAX_SHAPES: Final = 12
"""Shapes of nodes that are tried: the most frequent ones."""

MAX_PLACES: Final = 12
"""Combinations of zones, regions and other topologies that are tried for a new shape."""

MAX_TERMS: Final = 4
MAX_LABELS: Final = 64
"""Labels that a new shape may need: a pod with more is not helped by a node that somebody adds."""

_NAME: Final = "berth-new-node"


def find_new_node(verifier: Verifier) -> NewNode | None:
    """Return a node that could run the pod if it existed; the filters have judged it.

    An empty copy of a node comes first, with the requests of the DaemonSet pods on that node taken
    off. Next comes a node with just what the pod requests and the labels that it demands.

    Raises
    ------
    BudgetSpentError
        When the budget is used up.

    *Cost*: a judgement for each shape that is tried; the snapshot is as it was afterwards.
    """
    name = _free_name(verifier.snapshot)
    for like in islice(_shapes(verifier), MAX_SHAPES):
        if _runs(verifier, _copy(like, name)):
            return NewNode(like.name)
    return _new_shape(verifier, name)


def _free_name(snapshot: Snapshot) -> str:
    name, number = _NAME, 0
    while name in snapshot:
        number += 1
        name = f"{_NAME}-{number}"
    return name


def _runs(verifier: Verifier, node_info: NodeInfo) -> bool:
    with _added(verifier.snapshot, node_info):
        try:
            judged = verifier.judged(verifier.info, verifier.state())
        except PluginError:
            return False
        return bool(judged.feasible[verifier.snapshot.columns.row_of[node_info.name]])


@contextmanager
def _added(snapshot: Snapshot, node_info: NodeInfo) -> Iterator[None]:
    snapshot.put(node_info)
    try:
        yield
    finally:
        snapshot.remove(node_info.name)


# --- one more of a kind ---------------------------------------------------------------------------


def _shapes(verifier: Verifier) -> Iterator[NodeInfo]:
    """Yield one node of each shape, the most frequent shapes first."""
    verifier.budget.check()
    columns = verifier.snapshot.columns
    shapes: list[Shape] = columns.derived(_SHAPES).tolist()
    # The first node of each shape, as the last one of a dict's equal keys stays.
    examples = dict(zip(reversed(shapes), reversed(columns.node_infos), strict=True))
    for shape, _ in Counter(shapes).most_common():
        yield examples[shape]


def _shape_of(node_info: NodeInfo) -> Shape:
    node = node_info.node or Node()
    labels = frozenset(item for item in node.metadata.labels.items() if item[0] != HOSTNAME)
    taints = tuple(each for each in node.spec.taints if not _is_systems(each.key))
    return frozenset(node_info.allocatable.items()), labels, taints


_SHAPES: Final = ColumnSpec(("shape",), _shape_of, np.object_)
"""What nodes of a kind have in common."""


def _copy(like: NodeInfo, name: str) -> NodeInfo:
    """Return an empty node like another: not cordoned, without the taints of its troubles."""
    node = like.node or Node()
    labels = {**node.metadata.labels}
    if HOSTNAME in labels:
        labels[HOSTNAME] = name
    taints = tuple(each for each in node.spec.taints if not _is_systems(each.key))
    made = NodeInfo(name)
    made.set_node(
        replace(
            node,
            metadata=replace(node.metadata, name=name, uid=name, labels=labels),
            spec=NodeSpec(taints=taints),
        )
    )
    left = dict(made.allocatable)
    for info in like.pods.values():
        if any(each.controller and each.kind == "DaemonSet" for each in _owners(info)):
            for resource, amount in info.requests.items():
                left[resource] = max(left.get(resource, 0) - amount, 0)
            left[PODS] = max(left.get(PODS, 0) - 1, 0)
    made.allocatable = left
    return made


def _owners(info: PodInfo) -> tuple[OwnerReference, ...]:
    return info.pod.metadata.owner_references


def _is_systems(taint_key: str) -> bool:
    return taint_key.startswith(SYSTEM_TAINT_PREFIX)


# --- a shape that no node has ---------------------------------------------------------------------


def _new_shape(verifier: Verifier, name: str) -> NewNode | None:
    needs = filter_needs(verifier.info)
    texts = {resource: amount_text(resource, amount) for resource, amount in needs}
    for labels in _demanded_labels(verifier.info, name):
        if len(labels) > MAX_LABELS:
            return None
        for place in _places(verifier, name):
            verifier.budget.check()
            every = {**place, **labels}
            if _runs(verifier, _node(name, texts, every)):
                shown = {key: value for key, value in every.items() if value != name}
                return NewNode("", texts, shown)
    return None


def _node(name: str, allocatable: Mapping[str, str], labels: Mapping[str, str]) -> NodeInfo:
    made = NodeInfo(name)
    status = NodeStatus(allocatable={**allocatable, PODS: "1"})
    made.set_node(Node(NodeMeta(name, name, labels=labels), NodeSpec(), status))
    return made


def _demanded_labels(info: PodInfo, name: str) -> Iterator[dict[str, str]]:
    """Yield the labels that satisfy the nodeSelector and a term of the node affinity."""
    labels = {HOSTNAME: name, **info.pod.spec.node_selector}
    required = required_node_selector(info.pod.spec)
    if required is None:
        yield labels
        return
    for term in required.node_selector_terms[:MAX_TERMS]:
        if not term.match_fields:
            yield _satisfying(labels, term)


def _satisfying(labels: Mapping[str, str], term: NodeSelectorTerm) -> dict[str, str]:
    satisfying = dict(labels)
    for each in term.match_expressions[:MAX_LABELS]:
        value = _value_for(each)
        if value is not None:
            satisfying.setdefault(each.key, value)
    return satisfying


def _value_for(expression: NodeSelectorRequirement) -> str | None:
    """Return a value that satisfies an expression; None where the label may be absent."""
    values = expression.values
    match expression.operator:
        case "In" if values:
            return values[0]
        case "Exists":
            return "true"
        case "Gt" | "Lt" if values and values[0].isdigit():
            return str(int(values[0]) + (1 if expression.operator == "Gt" else -1))
        case _:
            return None


def _places(verifier: Verifier, name: str) -> Iterator[dict[str, str]]:
    """Yield values for the topologies that the pod mentions: those of nodes, then new ones."""
    spec = verifier.info.pod.spec
    keys = {each.topology_key for each in spec.topology_spread_constraints[:MAX_LABELS]}
    if spec.affinity is not None:
        for terms in (spec.affinity.pod_affinity, spec.affinity.pod_anti_affinity):
            if terms is not None:
                required = terms.required_during_scheduling_ignored_during_execution
                keys.update(each.topology_key for each in required[:MAX_LABELS])
    if any(each.persistent_volume_claim or each.ephemeral for each in spec.volumes):
        keys.update(_ZONE_KEYS)
    keys -= {HOSTNAME, ""}
    yield {}
    if not keys:
        return
    seen: Counter[frozenset[tuple[str, str]]] = Counter()
    for node_info in verifier.snapshot.all_nodes().node_infos():
        labels = node_info.labels
        seen[frozenset((key, labels[key]) for key in keys if key in labels)] += 1
    for place, _ in seen.most_common(MAX_PLACES):
        yield dict(place)
    yield dict.fromkeys(sorted(keys), f"{name}-place")
