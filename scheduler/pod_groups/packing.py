"""Pack members of several shapes into the free room of nodes, in arrays alone.

Placing members by score spreads them, which may leave no node with room for the last ones. Here the
fullest nodes are filled first, in several orders of the shapes; nothing is placed before an order
has room for all that are needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from cache.resources import PODS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from cache.columns import Columns
    from plugins.framework.attempt_budget import AttemptBudget
    from plugins.framework.results import IntArray
    from scheduler.runtime.judgement import Candidates

ORDERS: Final = 24
"""Random orders that are tried after the deliberate ones; each takes a pass over the shapes."""


class Batch(NamedTuple):
    """Members of one shape on one node."""

    shape: int
    row: int
    members: int


class Kind(NamedTuple):
    """A shape as packing sees it.

    Attributes
    ----------
    requests
        Of each member, by resource.
    slots
        int64 (n_nodes,): how many fit on each node while nobody else comes.
    """

    shape: int
    members: int
    requests: Mapping[str, int]
    slots: IntArray


class Packing:
    """The free room of nodes, and shapes to be packed into it.

    Parameters
    ----------
    kinds
        The shapes.
    among
        The only nodes that count; None for all nodes.
    """

    def __init__(self, columns: Columns, kinds: Sequence[Kind], among: Candidates | None) -> None:
        self._kinds = kinds
        asked = {name for kind in kinds for name, amount in kind.requests.items() if amount}
        names = [PODS, *sorted(asked - {PODS})]
        self._lines = [
            (name, columns.resource_row[name]) for name in names if name in columns.resource_row
        ]
        rows = [line for _, line in self._lines]
        free = columns.allocatable[rows] - columns.requested[rows]
        self._usable = np.zeros(len(columns), dtype=np.bool_)
        self._usable[slice(None) if among is None else among.rows] = True
        self._free: IntArray = np.maximum(free, 0)
        total = np.maximum(columns.allocatable[rows].max(axis=1, keepdims=True), 1)
        self._scale: npt.NDArray[np.float64] = 1.0 / total
        sums = np.maximum((self._free * self._usable).sum(axis=1, dtype=np.float64), 1.0)
        self._weights = [max(self._needs(kind) / sums) for kind in kinds]

    def _needs(self, kind: Kind) -> npt.NDArray[np.int64]:
        amounts = [1 if name == PODS else kind.requests.get(name, 0) for name, _ in self._lines]
        return np.array(amounts, dtype=np.int64)

    def find(
        self, needed: int, pick: Callable[[int], int], budget: AttemptBudget
    ) -> list[Batch] | None:
        """Return where so many members have room together, or None if no order has shown it.

        *Cost*: a few vector operations for each shape and order.
        """
        for order in self._orders(pick):
            budget.check()
            found = self._pack(order)
            if sum(batch.members for batch in found) >= needed:
                return found
        return None

    def _orders(self, pick: Callable[[int], int]) -> Iterator[list[int]]:
        indices = list(range(len(self._kinds)))
        places = [int((kind.slots * self._usable).sum()) for kind in self._kinds]
        yield sorted(indices, key=lambda each: (places[each], each))
        falling = sorted(indices, key=lambda each: (-self._weights[each], each))
        yield falling
        yield falling[::-1]
        for line in range(1, len(self._lines)):
            asked = [int(self._needs(kind)[line]) for kind in self._kinds]
            yield sorted(indices, key=asked.__getitem__, reverse=True)
        for _ in range(ORDERS):
            yield sorted(indices, key=lambda _: pick(1 << 30))

    def _pack(self, order: Sequence[int]) -> list[Batch]:
        free = self._free.copy()
        found = []
        for index in order:
            kind = self._kinds[index]
            needs = self._needs(kind)
            asked = np.flatnonzero(needs)
            fits = (free[asked] // needs[asked, np.newaxis]).min(axis=0)
            fits = np.minimum(fits, kind.slots) * self._usable
            rows = np.flatnonzero(fits > 0)
            room = (free[:, rows] * self._scale).sum(axis=0)
            rows = rows[np.argsort(room, kind="stable")]
            before = np.cumsum(fits[rows]) - fits[rows]
            taken = np.clip(kind.members - before, 0, fits[rows])
            used = rows[taken > 0]
            counts = taken[taken > 0]
            free[:, used] -= needs[:, np.newaxis] * counts
            found += [
                Batch(kind.shape, int(row), int(count))
                for row, count in zip(used, counts, strict=True)
            ]
        return found
