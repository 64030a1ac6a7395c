"""Tables of whether tolerations tolerate each distinct set of taints.

Nodes have few distinct sets of taints and pods few distinct lists of tolerations. The result is
computed once for each pair and then looked up for all nodes by the id of their taint set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from cache.byte_bounded import ByteBounded, deep_bytes
from cache.objects import Taint, Toleration
from cache.taints import NO_EXECUTE, NO_SCHEDULE, ToleratedTaints, find_untolerated

if TYPE_CHECKING:
    from collections.abc import Callable

    from cache.columns import NodesView
    from cache.interning import Interner
    from plugins.framework.results import BoolArray, IntArray

Taints: TypeAlias = tuple[Taint, ...]
Tolerations: TypeAlias = tuple[Toleration, ...]
Tolerated: TypeAlias = Tolerations | ToleratedTaints

HARD_EFFECTS: Final = frozenset({NO_SCHEDULE, NO_EXECUTE})
"""The effects that keep a new pod off a node."""

MAX_BYTES: Final = 1 << 23
"""8 MiB: more than the lists of tolerations of the pods that are pending at one time."""

MANY: Final = 16
"""Beyond so many tolerations a taint is looked up among what they cover."""

_FEW: Final = 2
"""Up to here comparing ids is faster than looking them up: 1.2 us against 5 us at 5 000 nodes."""


class _Table:
    """Results by taint set id, valid for one interner in one epoch."""

    __slots__ = ("counts", "epoch", "is_zero", "nonzero", "taint_sets")

    def __init__(self, taint_sets: Interner[Taints], counts: IntArray) -> None:
        self.taint_sets = taint_sets
        self.epoch = taint_sets.epoch
        self.counts = counts
        self.is_zero: BoolArray = counts == 0
        self.nonzero: list[int] = np.flatnonzero(counts).tolist()


class TaintTables:
    """The results of one function for each distinct (taint set, tolerations).

    Parameters
    ----------
    judge
        Returns a count, not negative, for a node's taints and a pod's tolerations: 0 when all
        taints in question are tolerated.

    Notes
    -----
    *Concurrency*: confined to the scheduling thread.

    *Cost*: known tolerations cost a dictionary lookup and one or two passes over a column; new
    ones cost one call for each distinct taint set, and a new set costs one for each of them.
    """

    def __init__(self, judge: Callable[[Taints, Tolerated], int]) -> None:
        self._judge = judge
        self._tables: ByteBounded[Tolerations, _Table] = ByteBounded(MAX_BYTES, _weight)

    def passed(self, nodes: NodesView, tolerations: Tolerations) -> BoolArray | None:
        """Return bool (n_nodes,), True where the count is 0; None if it is 0 on all nodes."""
        table = self._table(nodes, tolerations)
        nonzero = table.nonzero
        if not nonzero:
            return None
        ids = nodes.taint_set_ids
        if len(nonzero) > _FEW:
            return table.is_zero.take(ids)
        passed: BoolArray = ids != nonzero[0]
        for taint_set_id in nonzero[1:]:
            passed &= ids != taint_set_id
        return passed

    def counts(self, nodes: NodesView, tolerations: Tolerations) -> IntArray:
        """Return int64 (n_nodes,): the count of each node."""
        table = self._table(nodes, tolerations)
        if not table.nonzero:
            return np.zeros(len(nodes), dtype=np.int64)
        return table.counts.take(nodes.taint_set_ids)

    def __len__(self) -> int:
        """Return the number of distinct tolerations in the table."""
        return len(self._tables)

    @property
    def memory_bytes(self) -> int:
        """Return the estimated memory of the table in bytes."""
        return self._tables.bytes

    def _table(self, nodes: NodesView, tolerations: Tolerations) -> _Table:
        taint_sets = nodes.columns.taint_sets
        known = self._tables.get(tolerations)
        if (
            known is None
            or known.taint_sets is not taint_sets
            or known.epoch != taint_sets.epoch
            or len(known.counts) < taint_sets.capacity
        ):
            known = self._judge_all(taint_sets, tolerations)
            self._tables.put(tolerations, known)
        return known

    def _judge_all(self, taint_sets: Interner[Taints], tolerations: Tolerations) -> _Table:
        counts = np.zeros(taint_sets.capacity, dtype=np.int64)
        prepared = prepared_tolerations(tolerations)
        for taint_set_id, taints in taint_sets.items():
            if taints:
                counts[taint_set_id] = self._judge(taints, prepared)
        return _Table(taint_sets, counts)


def rejects(taints: Taints, tolerations: Tolerated) -> int:
    """Return 1 if a taint keeps a pod with these tolerations off the node, else 0."""
    return int(find_untolerated(taints, tolerations, HARD_EFFECTS) is not None)


def prepared_tolerations(tolerations: Tolerations) -> Tolerated:
    """Return tolerations in a form for quick checks."""
    return tolerations if len(tolerations) <= MANY else ToleratedTaints(tolerations)


def _weight(tolerations: Tolerations, table: _Table) -> int:
    return deep_bytes(tolerations, at_most=MAX_BYTES) + 2 * table.counts.nbytes
