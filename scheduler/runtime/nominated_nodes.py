"""Nodes with the pods that are nominated for them counted in.

A pod must leave resources for pods of its own or a higher priority that are nominated for a node:
it has to fit both beside them and without them. So that this stays vectorized, the nodes
with nominated pods are stored a second time, with these pods on them, and updated when the node or
its nominations change.

    nominations, columns --changes--> an overlay for each priority level --> CrowdedNodes of a cycle

*Source*: pkg/scheduler/framework/runtime/framework.go, addGENominatedPods (1.36).
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

import numpy as np

from cache.columns import Columns, NodesView
from cache.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence, Set

    from cache.node_info import NodeInfo
    from cache.pod_info import PodInfo
    from plugins.framework.results import RowArray
    from scheduler.queueing.nominator import Nominations

MAX_LEVELS: Final = 8
"""Overlays that are kept: one for each distinct priority of nominated pods that pending pods have
to mind."""

FEW_NODES: Final = 4
"""Views that are as small as this are looked at node by node."""


class CrowdedNodes(Value, frozen=True):
    """Some nodes of a view, with the pods on them that are nominated for them.

    Parameters
    ----------
    view
        A view over separate columns.
    at
        intp (len(view),): the indices of these nodes in the requested view.
    pods
        The nominated pods by node name: at least one each.
    """

    view: NodesView
    at: RowArray
    pods: Mapping[str, Sequence[PodInfo]]

    def added_to(self, index: int) -> Sequence[PodInfo]:
        """Return the nominated pods on the node at an index of ``view``."""
        return self.pods[self.view.node_info(index).name]


class NominatedNodes:
    """Return the crowded nodes of a cycle.

    Notes
    -----
    *Concurrency*: scheduling thread only.

    *Cost*: negligible while no pod is nominated; otherwise some 10 us for each node that
    changed or whose nominations changed since the last cycle, and for each level.
    """

    def __init__(self, nominations: Nominations) -> None:
        self._nominations = nominations
        self._columns: Columns | None = None
        self._cursor = 0
        self._overlays: OrderedDict[int, _Overlay] = OrderedDict()

    def node_of(self, info: PodInfo) -> str | None:
        """Return the node that a pod itself is nominated for, or None."""
        return self._nominations.node_of(info.uid)

    def node_names(self) -> Sequence[str]:
        """Return the nodes that pods are nominated for."""
        return self._nominations.node_names()

    def ahead_of(self, info: PodInfo, node_name: str) -> list[PodInfo]:
        """Return the pods nominated for a node that a pod has to leave resources for."""
        if not len(self._nominations):
            return []
        return [
            each
            for each in self._nominations.nominated_pods_for_node(node_name)
            if each.priority >= info.priority and each.uid != info.uid
        ]

    def crowded(self, info: PodInfo, nodes: NodesView) -> tuple[CrowdedNodes, ...]:
        """Return the nodes of a view that other pods are nominated for whom this one must mind."""
        if not len(self._nominations):
            self._forget()
            return ()
        if len(nodes) <= FEW_NODES:
            one_by_one = self._one_by_one(info, nodes, range(len(nodes)))
            return () if one_by_one is None else (one_by_one,)
        level = self._nominations.level(info.priority)
        if level is None:
            return ()
        overlay = self._overlay(level, nodes.columns)
        own = self._nominations.node_of(info.uid)
        found = [overlay.crowded(nodes, without=own)]
        if own is not None and (index := nodes.row(own)) is not None:
            found.append(self._one_by_one(info, nodes, (index,)))
        return tuple(each for each in found if each is not None)

    def _one_by_one(
        self, info: PodInfo, nodes: NodesView, indices: Iterable[int]
    ) -> CrowdedNodes | None:
        columns: Columns | None = None
        at: list[int] = []
        added: dict[str, Sequence[PodInfo]] = {}
        for index in indices:
            node_info = nodes.node_info(index)
            ahead = _not_on(node_info, self.ahead_of(info, node_info.name))
            if ahead:
                columns = Columns() if columns is None else columns
                columns.put(_with_pods(node_info, ahead))
                at.append(index)
                added[node_info.name] = ahead
        if columns is None:
            return None
        return CrowdedNodes(NodesView(columns), np.array(at, dtype=np.intp), added)

    def _overlay(self, level: int, columns: Columns) -> _Overlay:
        if columns is not self._columns:
            self._forget()
            self._columns, self._cursor = columns, columns.cursor
        changed = self._nominations.take_changes()
        self._cursor, rows = columns.follow(self._cursor)
        changed.update(info.name for row in rows if (info := columns.info_at(row)) is not None)
        for each in self._overlays.values():
            each.dirty |= changed
        overlay = self._overlays.get(level)
        if overlay is None:
            overlay = self._overlays[level] = _Overlay(level, self._nominations)
            if len(self._overlays) > MAX_LEVELS:
                self._overlays.popitem(last=False)
        self._overlays.move_to_end(level)
        overlay.update(columns)
        return overlay

    def _forget(self) -> None:
        self._columns = None
        self._overlays.clear()


class _Overlay:
    """The nodes that pods of at least one priority are nominated for."""

    def __init__(self, level: int, nominations: Nominations) -> None:
        self._level = level
        self._nominations = nominations
        self._columns = Columns()
        self._added: dict[str, list[PodInfo]] = {}
        self.dirty: set[str] = set(nominations.node_names())
        self._rows: RowArray = np.zeros(0, dtype=np.intp)
        """For each row here, the node's row in the columns of the snapshot."""
        self._epochs: tuple[int, int] | None = None

    def update(self, columns: Columns) -> None:
        """Take over what changed."""
        if self._epochs is None or self._epochs[0] != columns.epoch:
            self.dirty.update(name for name in self._added if name not in columns.row_of)
        for name in self.dirty:
            row = columns.row_of.get(name)
            ahead: list[PodInfo] = []
            if row is not None:
                node_info = columns.node_infos[row]
                nominated = self._nominations.nominated_pods_for_node(name)
                ahead = _not_on(node_info, [p for p in nominated if p.priority >= self._level])
            if row is not None and ahead:
                self._columns.put(_with_pods(columns.node_infos[row], ahead))
                self._added[name] = ahead
            elif self._added.pop(name, None) is not None:
                self._columns.remove(name)
        self.dirty.clear()
        epochs = (columns.epoch, self._columns.epoch)
        if epochs != self._epochs:
            row_of = columns.row_of
            names = (info.name for info in self._columns.node_infos)
            self._rows = np.fromiter((row_of[name] for name in names), np.intp, len(self._columns))
            self._epochs = epochs

    def crowded(self, nodes: NodesView, without: str | None) -> CrowdedNodes | None:
        """Return those that are in a view, but for one node."""
        at = self._rows
        rows: RowArray | None = None
        if nodes.rows is not None:
            index_of = np.full(len(nodes.columns), -1, dtype=np.intp)
            index_of[nodes.rows] = np.arange(len(nodes.rows))
            at = index_of[at]
            rows = np.flatnonzero(at >= 0)
        if without is not None and (own := self._columns.row_of.get(without)) is not None:
            rows = np.arange(len(at)) if rows is None else rows
            rows = rows[rows != own]
        if rows is not None:
            at = at[rows]
        if not len(at):
            return None
        return CrowdedNodes(NodesView(self._columns, rows), at, self._added)


def _not_on(node_info: NodeInfo, pods: Iterable[PodInfo]) -> list[PodInfo]:
    """Return the pods that do not count on the node already."""
    on_it: Set[str] = node_info.pods.keys()
    return [each for each in pods if each.uid not in on_it]


def _with_pods(node_info: NodeInfo, pods: Iterable[PodInfo]) -> NodeInfo:
    twin = node_info.clone()
    for each in pods:
        twin.add_pod(each)
    return twin
