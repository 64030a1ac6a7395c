"""The inter-pod affinity terms of the running pods, each distinct term once.

A thousand pods of one deployment have the same terms. An incoming pod is therefore compared with
each distinct term once, and only with the terms that require a label which the pod has. Where
these are many, it is compared with all of them at once (:mod:`cache.term_table`).
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

import numpy as np

from cache.affinity_terms import TermKind, pod_terms
from cache.term_group import TermGroup
from cache.term_table import RememberedSums, TermSum, TermTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from cache.pod_info import PodInfo
    from cache.term_group import AskedPod, GroupKey

MAX_DENSE_BYTES: Final = 16 * 2**20
"""Bytes of the columns that groups keep besides their counts by row: 400 at 5 000 nodes."""

FEW: Final = 8
"""Up to so many terms are held against a pod one by one."""


class _Drawer:
    """Terms of one kind that demand one label, or none."""

    __slots__ = ("groups", "table")

    def __init__(self) -> None:
        self.groups: dict[GroupKey, TermGroup] = {}
        self.table: TermTable | None = None

    def count(self, group: TermGroup, row: int, change: int, remembered: RememberedSums) -> None:
        """Add or remove a pod of a row; a group without pods is dropped."""
        group.add(row, change)
        if self.table is not None:
            self.table.count(group, row, change)
        if not group.rows:
            del self.groups[group.key]
            if self.table is not None and len(self.groups) <= FEW // 2:
                self.table.forget_sums()
                self.table = None
        elif self.table is None and len(self.groups) > FEW:
            self.table = TermTable(remembered)
            for each in self.groups.values():
                self.table.take_over(each)


class _Held:
    """A pod with affinity, and the groups of its terms."""

    __slots__ = ("groups", "info")

    def __init__(self, info: PodInfo, groups: tuple[TermGroup, ...]) -> None:
        self.info = info
        self.groups = groups


class TermGroups:
    """All groups, by kind and by a label that they demand.

    Notes
    -----
    *Concurrency*: confined to the thread of the columns it belongs to.
    """

    def __init__(self) -> None:
        self._groups: dict[GroupKey, TermGroup] = {}
        self._drawers: dict[TermKind, dict[tuple[str, str] | None, _Drawer]] = {
            kind: {} for kind in TermKind
        }
        self._held: list[dict[str, _Held]] = []
        self._dense: OrderedDict[TermGroup, None] = OrderedDict()
        self._dense_bytes = 0
        self._remembered = RememberedSums()

    def __len__(self) -> int:
        return len(self._groups)

    def set_row(self, row: int, pods: Mapping[str, PodInfo]) -> None:
        """Set the pods with affinity of a row.

        *Cost*: that of compiling the terms of each pod that came, and of counting those of each
        pod that came or went.
        """
        while len(self._held) <= row:
            self._held.append({})
        held = self._held[row]
        if not held and not pods:
            return
        for uid, info in pods.items():
            old = held.get(uid)
            if old is None:
                held[uid] = _Held(info, self._count_in(info, row))
            elif old.info is not info:
                if not _same_terms(old.info, info):
                    self._count_out(held.pop(uid), row)
                    held[uid] = _Held(info, self._count_in(info, row))
                old.info = info
        if len(held) > len(pods):
            for uid in [uid for uid in held if uid not in pods]:
                self._count_out(held.pop(uid), row)

    def sums(
        self, kind: TermKind, asked: AskedPod, label_keys: Mapping[str, int], num_rows: int
    ) -> list[TermSum]:
        """Return the terms of a kind that select a pod, summed by topology or one by one.

        Parameters
        ----------
        label_keys
            The label keys that nodes have: a topology without nodes is left out.

        *Cost*: that of the few distinct terms that demand one of the pod's labels, or none; where
        they are not few, see :meth:`cache.term_table.TermTable.sums`.
        """
        found: list[TermSum] = []
        for drawer in self._drawers_for(kind, asked.labels):
            if drawer.table is not None:
                found += drawer.table.sums(asked, label_keys, num_rows)
                continue
            for group in drawer.groups.values():
                if group.term.topology_key in label_keys and asked.is_meant_by(group):
                    column = self._column(group, num_rows)
                    weighted = column
                    if group.weight:
                        weighted = column * group.weight
                        weighted.flags.writeable = False
                    found.append(TermSum(group.term.topology_key, column, weighted))
        return found

    def _drawers_for(self, kind: TermKind, labels: Mapping[str, str]) -> Iterator[_Drawer]:
        drawers = self._drawers[kind]
        if not drawers:
            return
        drawer = drawers.get(None)
        if drawer is not None:
            yield drawer
        for label in labels.items():
            drawer = drawers.get(label)
            if drawer is not None:
                yield drawer

    def _column(self, group: TermGroup, num_rows: int) -> npt.NDArray[np.int64]:
        """Return int64 (num_rows,), read-only: how often pods of each row have the term."""
        column = group.column
        if column is None or len(column) < num_rows:
            self._forget_column(group)
            column = np.zeros(num_rows, dtype=np.int64)
            count = len(group.rows)
            rows = np.fromiter(group.rows, np.intp, count)
            column[rows] = np.fromiter(group.rows.values(), np.int64, count)
            group.column = column
            self._dense[group] = None
            self._dense_bytes += column.nbytes
            while self._dense_bytes > MAX_DENSE_BYTES and len(self._dense) > 1:
                self._forget_column(next(iter(self._dense)))
        self._dense.move_to_end(group)
        view = column[:num_rows]
        view.flags.writeable = False
        return view

    def _forget_column(self, group: TermGroup) -> None:
        if group.column is not None:
            self._dense_bytes -= group.column.nbytes
            group.column = None
            del self._dense[group]

    def _count_in(self, info: PodInfo, row: int) -> tuple[TermGroup, ...]:
        found = []
        for key in pod_terms(info.pod):
            group = self._groups.get(key)
            if group is None:
                group = self._groups[key] = TermGroup(key)
                drawer = self._drawers[group.kind].setdefault(group.label, _Drawer())
                drawer.groups[key] = group
            found.append(group)
            self._drawer_of(group).count(group, row, 1, self._remembered)
        return tuple(found)

    def _count_out(self, held: _Held, row: int) -> None:
        for group in held.groups:
            drawer = self._drawer_of(group)
            drawer.count(group, row, -1, self._remembered)
            if not group.rows:
                del self._groups[group.key]
                self._forget_column(group)
                if not drawer.groups:
                    del self._drawers[group.kind][group.label]

    def _drawer_of(self, group: TermGroup) -> _Drawer:
        return self._drawers[group.kind][group.label]


def _same_terms(old: PodInfo, new: PodInfo) -> bool:
    before, after = old.pod, new.pod
    return (
        before.metadata.namespace == after.metadata.namespace
        and before.spec.affinity == after.spec.affinity
    )
