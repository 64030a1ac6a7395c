"""Which of many requirements a node does not meet, for nodes that lack only one or two of them.

A pod may have 40 000 requirements and a cluster 5 000 nodes. One change or two can only help on a
node that misses at most two, so the count ends as soon as every node misses more.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plugins.framework.results import BoolArray

T = TypeVar("T")

MOST: Final = 2
"""The changes that are combined."""


class Unmet(Generic[T]):
    """Counts unmet requirements by node.

    Parameters
    ----------
    num_nodes
        The number of nodes.

    Notes
    -----
    *Cost*: a few passes over a column for each requirement that some node misses.
    """

    def __init__(self, num_nodes: int) -> None:
        self._items: list[T] = []
        self._count = np.zeros(num_nodes, dtype=np.int64)
        self._missed = np.full((MOST, num_nodes), -1, dtype=np.int64)

    def add(self, item: T, met: BoolArray) -> bool:
        """Count a requirement; return whether others may still matter.

        Parameters
        ----------
        met
            bool (n_nodes,): the nodes that meet it.
        """
        if met.all():
            return True
        number = len(self._items)
        self._items.append(item)
        missed = ~met
        for place in range(MOST):
            self._missed[place, missed & (self._count == place)] = number
        self._count += missed
        return bool((self._count <= MOST).any())

    def near(self, limit: int) -> list[T]:
        """Return the requirements that matter, those that are alone on most nodes first.

        Parameters
        ----------
        limit
            How many of them at most.
        """
        ones = self._missed[0, self._count == 1].tolist()
        twos = self._missed[:, self._count == MOST].ravel().tolist()
        alone, together = Counter(ones), Counter(twos)
        ordered = sorted(
            set(ones) | set(twos), key=lambda number: (-alone[number], -together[number], number)
        )
        return [self._items[number] for number in ordered[:limit]]


def near_of(requirements: Iterable[tuple[T, BoolArray]], num_nodes: int, limit: int) -> list[T]:
    """Return the requirements that one or two changes could give up: see :class:`Unmet`."""
    unmet: Unmet[T] = Unmet(num_nodes)
    for item, met in requirements:
        if not unmet.add(item, met):
            break
    return unmet.near(limit)
