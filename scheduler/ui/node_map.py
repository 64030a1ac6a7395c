"""The nodes of a cluster by zone, rack or pool: what is requested, free and fragmented."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from cache.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from scheduler.offline.fragmentation import PODS, fragmentation, usual_requests

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from cache.node_info import NodeInfo
    from cache.objects import Pod

MAX_RESOURCES: Final = 8
MAX_KEYS: Final = 40
MAX_GROUPS: Final = 200
"""How many groups are shown; the rest is one group."""
REST: Final = "(others)"
NO_LABEL: Final = "(no label)"

PREFERRED_KEYS: Final = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/rack",
    "topology.kubernetes.io/region",
    "node.kubernetes.io/instance-type",
    "karpenter.sh/nodepool",
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
)
"""Labels that people group nodes by; they come first in the choice."""

_DIGITS: Final = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True)
class NodeTable:
    """All nodes in the order of their names, and one column for each quantity.

    Parameters
    ----------
    infos
        The nodes, in natural order: ``node-2`` before ``node-10``.
    allocatable, requested, fragmented
        int64 or float64, shape (n_nodes,), by resource. Milli-cores for CPU, else base units.
        ``fragmented`` is the free part that the usual requests of this cluster cannot use.
    shapes
        The number of distinct requests that fragmentation was computed with.
    """

    infos: Sequence[NodeInfo]
    allocatable: Mapping[str, npt.NDArray[np.int64]]
    requested: Mapping[str, npt.NDArray[np.int64]]
    fragmented: Mapping[str, npt.NDArray[np.float64]]
    label_keys: tuple[str, ...]
    shapes: int

    @property
    def resources(self) -> tuple[str, ...]:
        """The resources: CPU, memory, pods, and those that nodes have besides."""
        return tuple(self.allocatable)


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """The nodes with one value of a label.

    Parameters
    ----------
    indices
        Into ``NodeTable.infos``.
    allocatable, requested, fragmented
        Sums of one resource.
    shares
        Of each node, what is requested of what it has; float64 in 0..1.
    fragments
        Of each node, what is fragmented of what it has; float64 in 0..1.
    """

    name: str
    indices: npt.NDArray[np.intp]
    allocatable: int
    requested: int
    fragmented: float
    shares: npt.NDArray[np.float64]
    fragments: npt.NDArray[np.float64]
    unschedulable: int


def node_table(found: Iterable[NodeInfo], waiting: Iterable[Pod]) -> NodeTable:
    """Return the table of some nodes; ``waiting`` are the pods without a node.

    *Cost*: some microseconds for each node and resource, and one comparison of all nodes with
    each of the most frequent requests.
    """
    infos = sorted(
        (info for info in found if info.node is not None),
        key=lambda info: natural(info.name),
    )
    resources = _resources(infos)
    allocatable = {
        name: _column(info.allocatable.get(name, 0) for info in infos) for name in resources
    }
    requested = {
        name: _column(
            len(info.pods) if name == PODS else info.requested.get(name, 0) for info in infos
        )
        for name in resources
    }
    shapes = usual_requests(infos, waiting)
    free = {name: np.maximum(allocatable[name] - requested[name], 0) for name in resources}
    return NodeTable(
        infos,
        allocatable,
        requested,
        fragmentation(free, shapes),
        _label_keys(infos),
        len(shapes),
    )


def _column(values: Iterable[int]) -> npt.NDArray[np.int64]:
    return np.fromiter(values, dtype=np.int64)


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key with which ``node-2`` comes before ``node-10``."""
    return tuple(
        (0, int(part[:18]), part) if part.isdecimal() else (1, 0, part)
        for part in _DIGITS.split(name[:253])
        if part
    )


def _resources(infos: Sequence[NodeInfo]) -> tuple[str, ...]:
    """Return CPU, memory, pods, and the other resources that most nodes have."""
    counts = Counter(name for info in infos for name, amount in info.allocatable.items() if amount)
    usual = (CPU, MEMORY, PODS)
    others = [
        name
        for name, _ in counts.most_common(MAX_RESOURCES + len(usual))
        if name not in usual and name != EPHEMERAL_STORAGE and not name.startswith("hugepages-")
    ]
    return usual + tuple(others[: MAX_RESOURCES - len(usual)])


def _label_keys(infos: Sequence[NodeInfo]) -> tuple[str, ...]:
    """Return the labels that divide the nodes into groups; the usual ones come first."""
    values: dict[str, set[str]] = {}
    for info in infos:
        for key, value in info.labels.items():
            values.setdefault(key, set()).add(value)
    dividing = [
        key
        for key, found in values.items()
        if 1 < len(found) <= max(len(infos) // 2, 2) or (found and key in PREFERRED_KEYS)
    ]
    preferred = [key for key in PREFERRED_KEYS if key in dividing]
    others = sorted(set(dividing) - set(preferred), key=lambda key: (len(values[key]), key))
    return tuple((preferred + others)[:MAX_KEYS])


def groups_of(table: NodeTable, key: str, resource: str) -> list[NodeGroup]:
    """Return the nodes by the value of a label, in natural order of the values."""
    members: dict[str, list[int]] = {}
    for index, info in enumerate(table.infos):
        members.setdefault(info.labels.get(key, NO_LABEL), []).append(index)
    if len(members) > MAX_GROUPS:
        largest = sorted(members, key=lambda name: -len(members[name]))[:MAX_GROUPS]
        rest = [index for name in members.keys() - set(largest) for index in members[name]]
        members = {name: members[name] for name in largest} | {REST: sorted(rest)}
    return [_group(table, name, members[name], resource) for name in sorted(members, key=natural)]


def _group(table: NodeTable, name: str, members: Sequence[int], resource: str) -> NodeGroup:
    indices = np.array(members, dtype=np.intp)
    allocatable = table.allocatable[resource][indices]
    requested = table.requested[resource][indices]
    fragmented = table.fragmented[resource][indices]
    whole = np.maximum(allocatable, 1)
    return NodeGroup(
        name,
        indices,
        int(allocatable.sum()),
        int(requested.sum()),
        float(fragmented.sum()),
        np.clip(requested / whole, 0.0, 1.0),
        np.clip(fragmented / whole, 0.0, 1.0),
        sum(is_cordoned(table.infos[index]) for index in members),
    )


def is_cordoned(info: NodeInfo) -> bool:
    """Return whether the node takes no new pods."""
    return info.node is not None and info.node.spec.unschedulable
