"""How many like members fit on nodes without some pods, by arithmetic alone."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np

from cache.resources import PODS
from scheduler.pod_groups.shapes import Shapes, has_claims

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cache.columns import NodesView
    from cache.node_info import NodeInfo
    from cache.pod_info import PodInfo
    from plugins.framework.results import IntArray
    from scheduler.pod_groups.plan import GroupTask

_MANY: Final = 2**40
"""More members than any node has room for: of those that request nothing."""


def is_countable(task: GroupTask) -> bool:
    """Return whether the members are alike, and only resources say how many fit on a node."""
    info = task.members[0]
    spec = info.pod.spec
    affinity = spec.affinity
    if affinity is not None and (affinity.pod_affinity or affinity.pod_anti_affinity):
        return False
    if spec.topology_spread_constraints or spec.resource_claims or info.host_ports:
        return False
    if has_claims(info):
        return False
    return len(Shapes(task.framework, task.members)) == 1


class NodeSlots:
    """The amounts that count, and how many members fit with what is free.

    Parameters
    ----------
    members
        Those that are counted, as large as the largest of them in each resource.
    """

    def __init__(self, members: Iterable[PodInfo]) -> None:
        needs: dict[str, int] = {PODS: 1}
        for info in members:
            for name, amount in info.requests.items():
                if amount > needs.get(name, 0):
                    needs[name] = amount
        self._names = tuple(needs)
        self._needs = tuple(needs.values())

    def freed(self, info: PodInfo) -> tuple[int, ...]:
        """Return the amounts that a pod uses."""
        requests = info.requests
        return tuple(1 if name == PODS else requests.get(name, 0) for name in self._names)

    def free(self, node_info: NodeInfo) -> tuple[int, ...]:
        """Return the amounts that are free on a node; less than 0 where it is overcommitted."""
        allocatable, requested = node_info.allocatable, node_info.requested
        return tuple(
            allocatable.get(name, 0)
            - (len(node_info.pods) if name == PODS else requested.get(name, 0))
            for name in self._names
        )

    def count(self, free: Sequence[int]) -> int:
        """Return how many members fit."""
        return max(min(a // b for a, b in zip(free, self._needs, strict=True)), 0)

    def counts(self, free: IntArray) -> IntArray:
        """Return int64 (n,): how many members fit with int64 (n, n_resources)."""
        found: IntArray = np.maximum(np.min(free // np.array(self._needs), axis=1), 0)
        return found

    def all_free(self, nodes: NodesView) -> IntArray:
        """Return int64 (n_nodes, n_resources): the amounts that are free on each node."""
        return np.stack(
            [nodes.allocatable(name) - nodes.requested(name) for name in self._names], axis=1
        )


class CountedRoom:
    """The nodes without some pods, for members that are counted.

    Parameters
    ----------
    slots
        Of the members.
    free
        What is free on each of the nodes that count, by name.
    needed
        How many members have to fit.
    elsewhere
        How many fit on all other nodes, which do not change.

    Notes
    -----
    *Cost*: some microseconds for each pod that is removed or put back.
    """

    def __init__(
        self,
        slots: NodeSlots,
        free: Mapping[str, Sequence[int]],
        needed: int,
        elsewhere: int = 0,
    ) -> None:
        self._slots = slots
        self._free = {name: list(amounts) for name, amounts in free.items()}
        self._count = Counter({name: slots.count(amounts) for name, amounts in free.items()})
        self._total = self._count.total() + elsewhere
        self._needed = needed
        self._freed: dict[str, tuple[int, ...]] = {}

    def remove(self, pods: Iterable[PodInfo]) -> None:
        """Remove pods; those on other nodes change nothing."""
        self._change(pods, 1)

    def put_back(self, pods: Iterable[PodInfo]) -> None:
        """Add pods again."""
        self._change(pods, -1)

    def fits(self) -> bool:
        """Return whether enough members fit."""
        return self._total >= self._needed

    def _change(self, pods: Iterable[PodInfo], sign: int) -> None:
        changed = set()
        for info in pods:
            name = info.node_name
            free = self._free.get(name)
            if free is None:
                continue
            amounts = self._freed.get(info.uid)
            if amounts is None:
                amounts = self._freed[info.uid] = self._slots.freed(info)
            for at, amount in enumerate(amounts):
                free[at] += sign * amount
            changed.add(name)
        for name in changed:
            now = self._slots.count(self._free[name])
            self._total += now - self._count[name]
            self._count[name] = now
