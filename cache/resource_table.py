"""Two matrices: the allocatable and the requested amount of every resource on each node.

A resource has a line in both as long as some node reports it in ``status.allocatable``. Other
resources that pods request have no line: any user can put a pod with a thousand invented resource
names on a node, and a line takes bytes for every node. The sums of such requests are only in the
NodeInfo. If a node reports the resource later, its columns are filled from there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from cache.quantity import INT64_MAX
from cache.ref_counts import RefCounts
from cache.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from cache.node_info import NodeInfo
    from cache.pod_info import PodInfo

FIXED_RESOURCES: Final = (CPU, MEMORY, EPHEMERAL_STORAGE, PODS)
"""The resources that always have a line, in this order; extended resources follow."""

_PODS_LINE: Final = FIXED_RESOURCES.index(PODS)
_FIRST_LINES: Final = 8
_NOTHING: Final[Mapping[str, int]] = {}


class ResourceTable:
    """Allocatable and requested amounts, by resource and by node.

    Parameters
    ----------
    capacity
        The number of nodes to allocate for.

    Notes
    -----
    *Concurrency*: confined to the thread of the columns.

    Invariant: the extended resources in ``line_of`` are those that some node reports, and their
    lines follow the fixed ones without a gap.
    """

    def __init__(self, capacity: int) -> None:
        self.line_of: dict[str, int] = {name: line for line, name in enumerate(FIXED_RESOURCES)}
        self._num_reporting = RefCounts()
        """How many nodes report each resource."""
        self._reported: list[Mapping[str, int]] = []
        """The allocatable amounts of each node, as they stand in the matrix."""
        self.basic_bounds = (INT64_MAX, 0)
        """No node has had less allocatable CPU or memory than the first, or more than the other."""
        self._allocatable = np.zeros((_FIRST_LINES, capacity), dtype=np.int64)
        self._requested = np.zeros((_FIRST_LINES, capacity), dtype=np.int64)

    def views(self, num_nodes: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return allocatable and requested, int64 (n_resources, n_nodes), read-only."""
        lines = len(self.line_of)
        allocatable = self._allocatable[:lines, :num_nodes]
        requested = self._requested[:lines, :num_nodes]
        allocatable.flags.writeable = False
        requested.flags.writeable = False
        return allocatable, requested

    def append(self) -> None:
        """Add a node, with all amounts 0."""
        self._reported.append(_NOTHING)

    def grow(self, extra: int) -> None:
        """Grow by the capacity of more nodes."""
        self._allocatable = np.pad(self._allocatable, [(0, 0), (0, extra)])
        self._requested = np.pad(self._requested, [(0, 0), (0, extra)])

    def write_requested(self, row: int, info: NodeInfo) -> None:
        """Set the requests of the pods of a node.

        *Cost*: a microsecond or two, and 40 ns for each resource that no node reports.
        """
        requested, line_of = self._requested, self.line_of
        requested[:, row] = 0
        for name, amount in info.requested.items():
            line = line_of.get(name)
            if line is not None:
                requested[line, row] = min(amount, INT64_MAX)
        requested[_PODS_LINE, row] = len(info.pods)

    def add_requested(self, rows: npt.NDArray[np.intp], info: PodInfo) -> None:
        """Add the requests of one pod to each of some nodes, which are given once."""
        for name, amount in {**info.requests, PODS: 1}.items():
            line = self.line_of.get(name)
            if line is not None:
                now = self._requested[line, rows]
                self._requested[line, rows] = now + np.minimum(amount, INT64_MAX - now)

    def write_allocatable(
        self, row: int, amounts: Mapping[str, int], by_row: Sequence[NodeInfo]
    ) -> bool:
        """Set the allocatable amounts of a node, and return whether other resources have lines now.

        Parameters
        ----------
        row
            The node's.
        amounts
            What it has; kept, and so not to be changed.
        by_row
            All nodes: a resource that no other node reports may be requested on any.

        *Cost*: a microsecond or two; for a resource that no node reported before, 60 ns a node.
        """
        before = self._reported[row]
        self._reported[row] = amounts
        changed = self._take_over(before, amounts, by_row)
        basic = amounts.get(CPU, 0), amounts.get(MEMORY, 0)
        least, most = self.basic_bounds
        self.basic_bounds = min(least, *basic), max(most, *basic)
        self._allocatable[:, row] = 0
        for name, amount in amounts.items():
            self._allocatable[self.line_of[name], row] = amount
        return changed

    def remove(self, row: int, last: int) -> None:
        """Remove a node; the last node moves into its place."""
        self._take_over(self._reported[row], _NOTHING, ())
        self._reported[row] = self._reported[last]
        self._reported.pop()
        for table in (self._allocatable, self._requested):
            table[:, row] = table[:, last]
            table[:, last] = 0

    def _take_over(
        self, before: Mapping[str, int], after: Mapping[str, int], by_row: Sequence[NodeInfo]
    ) -> bool:
        """Count the reporting nodes, and return whether other resources have lines now."""
        first, last = self._num_reporting.replace(before, after)
        added = [name for name in first if name not in FIXED_RESOURCES]
        dropped = [name for name in last if name not in FIXED_RESOURCES]
        for name in added:
            self._add(name, by_row)
        for name in dropped:
            self._drop(name)
        return bool(added or dropped)

    def _add(self, name: str, by_row: Sequence[NodeInfo]) -> None:
        line = len(self.line_of)
        if line == len(self._allocatable):
            self._resize(2 * line)
        self.line_of[name] = line
        for row, info in enumerate(by_row):
            amount = info.requested.get(name)
            if amount is not None:
                self._requested[line, row] = min(amount, INT64_MAX)

    def _drop(self, name: str) -> None:
        line = self.line_of.pop(name)
        last = len(self.line_of)
        for table in (self._allocatable, self._requested):
            table[line] = table[last]
            table[last] = 0
        for other, at in self.line_of.items():
            if at == last:
                self.line_of[other] = line
                break
        if last * 4 <= len(self._allocatable) and len(self._allocatable) > _FIRST_LINES:
            self._resize(len(self._allocatable) // 2)

    def _resize(self, lines: int) -> None:
        def resized(table: npt.NDArray[Any]) -> npt.NDArray[Any]:
            other = np.zeros((lines, table.shape[1]), dtype=table.dtype)
            kept = min(lines, len(table))
            other[:kept] = table[:kept]
            return other

        self._allocatable = resized(self._allocatable)
        self._requested = resized(self._requested)
