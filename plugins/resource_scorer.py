"""The common part of the two resource scores: the amounts that they compare on each node.

A configured resource counts in a node's score if the node has any of it. An extended resource
counts only if the pod requests it as well, and a name that is neither basic nor extended (such as
``pods``) never counts. The use of CPU and memory is either the sum of the pods' requests or, for
scores that must not accumulate pods without requests, the use that is assumed for such pods.

*Source*: kube-scheduler 1.36, plugins/noderesources/resource_allocation.go
(calculateNodeAllocatableRequest, calculateResourceAllocatableRequest).

# Differs: upstream computes in int64, which overflows, so a node with more than 2**63 / 100
units of a resource gets a meaningless score or fails the pod. Here sums saturate at 2**63 - 1
and ratios are exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec
import numpy as np

from cache.columns import NodesView
from cache.quantity import INT64_MAX
from cache.resource_table import FIXED_RESOURCES
from cache.resources import CPU, EPHEMERAL_STORAGE, MEMORY, is_scalar_resource_name
from cache.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from cache.node_info import NodeInfo
    from cache.objects import Node
    from plugins.framework.results import IntArray

_BASIC = frozenset({CPU, MEMORY, EPHEMERAL_STORAGE})

_TAKE_BELOW = 0.5
"""Share of all nodes below which selecting some amounts is faster than computing all."""


class ResourceSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A resource that counts in a score; a weight of 0 stands for 1."""

    name: str
    weight: int = 0


DEFAULT_RESOURCES = (ResourceSpec(CPU, 1), ResourceSpec(MEMORY, 1))


def defaulted_resources(specs: Sequence[ResourceSpec] | None) -> tuple[ResourceSpec, ...]:
    """Return the specs with a weight of 1 where none is given; CPU and memory if there are none.

    *Source*: pkg/scheduler/apis/config/v1/defaults.go (1.36).
    """
    if not specs:
        return DEFAULT_RESOURCES
    return tuple(ResourceSpec(spec.name, spec.weight or 1) for spec in specs)


def widened(nodes: NodesView) -> NodesView:
    """Return the view of all nodes where that is cheaper to compute on, else the view itself.

    The caller restricts the result with ``nodes.take`` if the returned view is another one.
    """
    if nodes.rows is None or len(nodes.rows) < _TAKE_BELOW * len(nodes.columns):
        return nodes
    return NodesView(nodes.columns)


class DeviceCounts(Protocol):
    """The devices that provide an extended resource."""

    def of(self, node: Node) -> tuple[int, int]:
        """Return how many devices a node can reach, and how many of them are in use."""
        ...


NO_DEVICES: Mapping[str, DeviceCounts] = {}


class NodeAmounts(NamedTuple):
    """One resource of one node, the pod's request included in ``requested``."""

    weight: int
    requested: int
    allocated: int
    allocatable: int


class Amounts(Value, frozen=True):
    """The compared resources over many nodes; 0 allocatable means: not compared on that node.

    Parameters
    ----------
    weights
        The weight of each resource.
    pod
        int64, shape (n_resources, 1): the pod's requests; or (n_resources, n_nodes), if each node
        is compared for a pod of its own.
    allocated
        int64, shape (n_resources, n_nodes): the use of other pods. May be a read-only view.
    allocatable
        int64, shape (n_resources, n_nodes): the allocatable amounts. May be a read-only view.
    bounds
        Two numbers: no allocatable amount is below the first or above the second, and there is at
        least one resource. None if that is not known.
    """

    weights: tuple[int, ...]
    pod: IntArray
    allocated: IntArray
    allocatable: IntArray
    bounds: tuple[int, int] | None = None

    def are_all_present(self) -> bool:
        """Return whether each node has some of each resource.

        *Cost*: nothing where the bounds say so, which saves a pass.
        """
        if self.bounds is not None and self.bounds[0] > 0:
            return True
        return bool(self.allocatable.min(initial=1) > 0)

    def highest(self) -> int:
        """Return a number that no allocatable amount exceeds, at least 0."""
        return int(self.allocatable.max(initial=0)) if self.bounds is None else self.bounds[1]

    def requested(self) -> IntArray:
        """Return ``allocated + pod``, saturated: int64, shape (n_resources, n_nodes)."""
        return np.minimum(self.allocated, INT64_MAX - self.pod) + self.pod

    def of(self, resources: npt.NDArray[np.bool_], nodes: npt.NDArray[np.bool_]) -> Amounts:
        """Return the amounts of some resources on some nodes, both given as masks."""
        picked = np.ix_(resources, nodes)
        return Amounts(
            tuple(w for w, wanted in zip(self.weights, resources, strict=True) if wanted),
            self.pod[resources],
            self.allocated[picked],
            self.allocatable[picked],
        )


class ResourceScorer:
    """Gathers the amounts that a resource score compares.

    Parameters
    ----------
    resources
        The resources to compare, with weights.
    use_requested
        Whether CPU and memory in use are the sum of requests, rather than of the assumed use of
        pods (100m and 200 MiB for a container that requests none).
    """

    __slots__ = ("_basic", "_names", "_rows", "_use_requested", "_weights")

    def __init__(self, resources: Sequence[ResourceSpec], *, use_requested: bool) -> None:
        self._names = tuple(spec.name for spec in resources)
        self._weights = tuple(spec.weight for spec in resources)
        self._use_requested = use_requested
        self._rows = _adjoining_rows(self._names)
        """Where the amounts are, if they are CPU, memory or both in this order: as by default."""
        self._basic = (
            None if self._rows is None else tuple(zip(self._names, self._weights, strict=True))
        )
        """The resources, if they are those."""

    def pod_requests(self, amounts: Mapping[str, int]) -> tuple[int, ...]:
        """Return the pod's amount of each configured resource, 0 where it requests none."""
        return tuple([min(amounts.get(name, 0), INT64_MAX) for name in self._names])

    def score(
        self,
        nodes: NodesView,
        pod: tuple[int, ...],
        formula: Callable[[Amounts], IntArray],
        devices: Mapping[str, DeviceCounts] = NO_DEVICES,
    ) -> IntArray:
        """Return the scores of the nodes by a formula that reads each node by itself.

        Parameters
        ----------
        nodes
            The nodes.
        pod
            From :meth:`pod_requests`.
        formula
            Returns int64 of shape (n_nodes,) for amounts of at least one node.
        devices
            The configured resources that are devices on nodes that do not report them.

        Returns
        -------
        int64, shape (len(nodes),).
        """
        if len(nodes) == 0:
            return np.zeros(0, dtype=np.int64)
        view = widened(nodes)
        amounts = self._amounts(view, pod)
        if devices:
            amounts = self._with_devices(amounts, view, pod, devices)
        scores = formula(amounts)
        return scores if view is nodes else nodes.take(scores)

    def score_jointly(
        self,
        nodes: NodesView,
        pods: Sequence[tuple[int, ...]],
        formula: Callable[[Amounts], IntArray],
    ) -> IntArray | None:
        """Return the scores of the nodes for each of some pods; see :meth:`score`.

        None where other resources than CPU and memory are compared.

        Returns
        -------
        int64, shape (len(pods), len(nodes)).
        """
        if self._rows is None:
            return None
        view = widened(nodes)
        columns, n = view.columns, len(view)
        table = columns.requested if self._use_requested else columns.nonzero_requested
        # To the formula it is one pod, and as many times the nodes.
        requests = np.array(pods, dtype=np.int64).T
        scores = formula(
            Amounts(
                self._weights,
                requests.repeat(n, axis=1),
                np.concatenate([view.take(table[self._rows])] * len(pods), axis=1),
                np.concatenate([view.take(columns.allocatable[self._rows])] * len(pods), axis=1),
                columns.basic_bounds,
            )
        ).reshape(len(pods), n)
        return scores if view is nodes else nodes.take(scores)

    def _amounts(self, nodes: NodesView, pod: tuple[int, ...]) -> Amounts:
        columns = nodes.columns
        if self._rows is not None:
            table = columns.requested if self._use_requested else columns.nonzero_requested
            return Amounts(
                self._weights,
                np.array(pod, dtype=np.int64).reshape(-1, 1),
                nodes.take(table[self._rows]),
                nodes.take(columns.allocatable[self._rows]),
                columns.basic_bounds,
            )
        row_of = columns.resource_row
        rows: list[int] = []
        weights: list[int] = []
        asked: list[int] = []
        for name, weight, amount in zip(self._names, self._weights, pod, strict=True):
            if name not in _BASIC and (amount == 0 or not is_scalar_resource_name(name)):
                continue
            row = row_of.get(name)
            if row is not None:
                rows.append(row)
                weights.append(weight)
                asked.append(amount)
        # A slice is a view; any other selection of rows has to be copied.
        first = rows[0] if rows else 0
        in_one_piece = rows == list(range(first, first + len(rows)))
        chosen = slice(first, first + len(rows)) if in_one_piece else rows
        if self._use_requested:
            allocated = columns.requested[chosen]
        elif all(row < 2 for row in rows):
            # CPU and memory have the same rows, 0 and 1, in both tables.
            allocated = columns.nonzero_requested[chosen]
        else:
            allocated = columns.requested[rows]
            for index, row in enumerate(rows):
                if row < 2:
                    allocated[index] = columns.nonzero_requested[row]
        return Amounts(
            tuple(weights),
            np.array(asked, dtype=np.int64).reshape(-1, 1),
            nodes.take(allocated),
            nodes.take(columns.allocatable[chosen]),
        )

    def _with_devices(
        self,
        amounts: Amounts,
        nodes: NodesView,
        pod: tuple[int, ...],
        devices: Mapping[str, DeviceCounts],
    ) -> Amounts:
        """Return the amounts, with devices where a node does not report the resource.

        *Cost*: a loop over the nodes for each such resource.
        """
        row_of = nodes.columns.resource_row
        weights, asked = list(amounts.weights), amounts.pod.ravel().tolist()
        allocated, allocatable = list(amounts.allocated), list(amounts.allocatable)
        for name, weight, amount in zip(self._names, self._weights, pod, strict=True):
            if not amount or name not in devices:
                continue
            # Where the node reports the resource, the columns have it already.
            everywhere = np.ones(len(nodes), dtype=np.bool_)
            unreported = nodes.allocatable(name) == 0 if name in row_of else everywhere
            capacity, used = (np.zeros(len(nodes), dtype=np.int64) for _ in range(2))
            for index in np.flatnonzero(unreported).tolist():
                node = nodes.node_info(index).node
                if node is not None:
                    capacity[index], used[index] = devices[name].of(node)
            weights.append(weight)
            asked.append(amount)
            allocated.append(used)
            allocatable.append(capacity)
        return Amounts(
            tuple(weights),
            np.array(asked, dtype=np.int64).reshape(-1, 1),
            np.array(allocated, dtype=np.int64).reshape(len(weights), len(nodes)),
            np.array(allocatable, dtype=np.int64).reshape(len(weights), len(nodes)),
        )

    def node_amounts(
        self,
        node_info: NodeInfo,
        pod: tuple[int, ...],
        devices: Mapping[str, DeviceCounts] = NO_DEVICES,
    ) -> list[NodeAmounts]:
        """Return the compared amounts of one node: the scalar twin of :meth:`score`'s amounts."""
        if self._basic is not None and not devices:
            return self._basic_amounts(self._basic, node_info, pod)
        found = []
        for name, weight, amount in zip(self._names, self._weights, pod, strict=True):
            if name not in _BASIC and (amount == 0 or not is_scalar_resource_name(name)):
                continue
            allocatable, in_use = node_info.allocatable.get(name, 0), None
            if allocatable <= 0 and name in devices and node_info.node is not None:
                allocatable, in_use = devices[name].of(node_info.node)
            if allocatable <= 0:
                continue
            if in_use is not None:
                allocated = in_use
            elif self._use_requested or name not in (CPU, MEMORY):
                allocated = node_info.requested.get(name, 0)
            elif name == CPU:
                allocated = node_info.nonzero_milli_cpu
            else:
                allocated = node_info.nonzero_memory_bytes
            requested = min(allocated + amount, INT64_MAX)
            found.append(NodeAmounts(weight, requested, min(allocated, INT64_MAX), allocatable))
        return found

    def _basic_amounts(
        self, basic: tuple[tuple[str, int], ...], node_info: NodeInfo, pod: tuple[int, ...]
    ) -> list[NodeAmounts]:
        """Return the same of CPU and memory: this is done twice for each row that changed."""
        found = []
        capacity, use = node_info.allocatable, node_info.requested
        for (name, weight), amount in zip(basic, pod, strict=True):
            allocatable = capacity.get(name, 0)
            if allocatable <= 0:
                continue
            if self._use_requested:
                allocated = use.get(name, 0)
            elif name == CPU:
                allocated = node_info.nonzero_milli_cpu
            else:
                allocated = node_info.nonzero_memory_bytes
            requested = allocated + amount
            if requested > INT64_MAX:
                requested, allocated = INT64_MAX, min(allocated, INT64_MAX)
            found.append(NodeAmounts(weight, requested, allocated, allocatable))
        return found


def _adjoining_rows(names: tuple[str, ...]) -> slice | None:
    """Return the rows of the resources in every table, if these are among the first two."""
    if names not in ((CPU,), (MEMORY,), (CPU, MEMORY)):
        return None
    # CPU and memory have the same rows, 0 and 1, in all tables.
    first = FIXED_RESOURCES.index(names[0])
    return slice(first, first + len(names))
