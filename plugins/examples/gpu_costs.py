"""The costs of pods on nodes, computed again only for nodes that have changed.

The free share of a node's GPUs is stored as columns of numbers, five GPUs in each. So the state of
a node can be compared with the state for which a cost was computed, for all nodes at once.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from plugins.examples.gpu_fragments import WHOLE, GpuStates

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from plugins.examples.gpu_fragments import FloatArray, GpuShape, IntArray

PACKED: Final = 5
"""GPUs in one number: 1001 to the 5th is less than 2**53, so a float64 holds it exactly."""

_BASE: Final = WHOLE + 1

MAX_SHAPES: Final = 128
"""The number of latest shapes of pods whose costs are stored; a shape takes 40 bytes a node."""

_MANY: Final = 32
"""Nodes from which on it pays to look for those in the same state."""

_UNKNOWN: Final = np.iinfo(np.int64).min


def packed(left: Sequence[int], part: int) -> int:
    """Return what is left of a node's GPUs as one number: of the ``part``-th five fullest."""
    most_first = sorted(left, reverse=True)
    number = 0
    for amount in reversed(most_first[part * PACKED : (part + 1) * PACKED]):
        number = number * _BASE + amount
    return number


class PackedStates(NamedTuple):
    """The free resources of nodes, as columns.

    Parameters
    ----------
    cpu_milli
        int64, shape (n,): the free CPU.
    model
        float64, shape (n,): an index into the models' names.
    gpus
        float64, shape (parts, n): from :func:`packed`.
    """

    cpu_milli: IntArray
    model: FloatArray
    gpus: FloatArray

    def largest(self) -> IntArray:
        """Return the largest free share of a GPU on each node, int64 (n,)."""
        largest: IntArray = self.gpus[0].astype(np.int64) % _BASE
        return largest

    def take(self, rows: npt.NDArray[np.intp]) -> PackedStates:
        """Return some of the nodes."""
        return PackedStates(self.cpu_milli[rows], self.model[rows], self.gpus[:, rows])

    def unpacked(self) -> GpuStates:
        """Return the same with a column for each GPU, the largest free share first."""
        parts, n = self.gpus.shape
        rest = self.gpus.astype(np.int64)
        amounts = np.empty((n, parts * PACKED), dtype=np.int64)
        for at in range(PACKED):
            amounts[:, at::PACKED] = (rest % _BASE).T
            rest //= _BASE
        return GpuStates(self.cpu_milli.copy(), amounts, self.model.astype(np.int64))


class _Kept:
    """The costs of one shape, and the states of nodes that they were computed from, by slot."""

    __slots__ = ("costs", "states")

    def __init__(self, slots: int, parts: int) -> None:
        self.states = PackedStates(
            np.full(slots, _UNKNOWN), np.zeros(slots), np.zeros((parts, slots))
        )
        self.costs: FloatArray = np.full(slots, np.inf)


class KeptCosts:
    """The costs of the latest shapes on all nodes.

    Parameters
    ----------
    work_out
        Returns the costs of a shape on some nodes, float64 (n,).

    Notes
    -----
    *Concurrency*: confined to one thread.
    """

    def __init__(self, work_out: Callable[[GpuShape, GpuStates], FloatArray]) -> None:
        self._work_out = work_out
        self._kept: OrderedDict[GpuShape, _Kept] = OrderedDict()

    def clear(self) -> None:
        """Drop all costs: the typical shapes or the slots have changed."""
        self._kept.clear()

    def of(
        self, shape: GpuShape, slots: npt.NDArray[np.intp], num_slots: int, states: PackedStates
    ) -> FloatArray:
        """Return the costs of a shape on nodes in some states, float64 (n,).

        Parameters
        ----------
        slots
            intp (n,), below ``num_slots``: constant for each node, and distinct.

        *Cost*: a few vector operations, and some 6 us for each node whose state differs
        from that at the last call for the shape; 100 us if there is any.
        """
        kept = self._kept.get(shape)
        if kept is None or len(kept.costs) < num_slots or len(kept.states.gpus) < len(states.gpus):
            size = max(num_slots + num_slots // 4, 64)
            kept = self._kept[shape] = _Kept(size, len(states.gpus))
            if len(self._kept) > MAX_SHAPES:
                self._kept.popitem(last=False)
        self._kept.move_to_end(shape)
        before = kept.states
        changed = before.cpu_milli[slots] != states.cpu_milli
        changed |= before.model[slots] != states.model
        for known, now in zip(before.gpus, states.gpus, strict=True):
            changed |= known[slots] != now
        rows = np.flatnonzero(changed)
        if len(rows):
            at, new = slots[rows], states.take(rows)
            before.cpu_milli[at], before.model[at] = new.cpu_milli, new.model
            before.gpus[:, at] = new.gpus
            kept.costs[at] = self._each_once(shape, new)
        return kept.costs[slots]

    def _each_once(self, shape: GpuShape, states: PackedStates) -> FloatArray:
        """Return the costs on nodes; equal states are computed only once."""
        if len(states.cpu_milli) <= _MANY:
            return self._work_out(shape, states.unpacked())
        together = np.vstack([states.cpu_milli, states.model, states.gpus])
        _, first, each = np.unique(together, axis=1, return_index=True, return_inverse=True)
        return self._work_out(shape, states.take(first).unpacked())[each.ravel()]
