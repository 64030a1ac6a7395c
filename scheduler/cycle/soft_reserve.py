"""The soft reserve: space that a pod leaves on its node for pods of other schedulers.

Two schedulers that do not see each other's newest bindings collide where a node has space for one
pod only. A node that has space for some pods of the others beside ours harms nobody, whatever is
under way. So if others have bound pods of late, and without any change of what is feasible:

    four of the nodes with the highest score are drawn
      -> some keep the space            one of these
      -> none does: all nodes whose score is at most MAX_LOSS lower
           some keep space for 8 pods   the best of these, else
           for 4, for 2, for 1          the best of these, else
           none                         the node with the lowest score: others want it least

The space is as large as the largest pods that others bound lately, of each resource that our own
pod requests, too: of other resources it takes nothing. On a node that is smaller than the largest
pod it is the largest one that the whole node could run.

See docs/adr/0026-a-soft-reserve-beside-other-schedulers.md for the reasons.

# Differs: kube-scheduler knows only of feasible nodes and scores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from cache.quantity import INT64_MAX
from cache.resources import PODS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cache.columns import Columns, NodesView
    from cache.pod_info import PodInfo
    from plugins.framework.results import IntArray, RowArray

Sizes: TypeAlias = "Mapping[str, Sequence[int]]"
"""Amounts of pods that others bound, by resource, in ascending order."""

PLACES: Final = (8, 4, 2, 1)
"""For how many pods of others a node keeps space: the more of their bindings are under way unseen,
the more it needs. Of 5 000 pods at 60 bindings/s that are seen after 500 ms, 33 are rejected with
space for 2 and 1, 8 with 4 before these, 2 with 8; more come to the same
(``tests/neighbours/model.py``)."""

MOST: Final = INT64_MAX // PLACES[0]
"""The largest size; more of it than a node has space for can be added up."""

MAX_LOSS: Final = 30
"""How much lower the score of a node may be that is preferred for its space. A plugin of weight 1
gives up to 100 points; a preferred node affinity decides about 200 and a taint with the effect
PreferNoSchedule about 300, and both stand. Nodes of an almost full cluster differ by less."""


class SoftReserve:
    """The space that one pod should leave to others.

    Parameters
    ----------
    info
        The pod that is to be placed.
    sizes
        What others bound lately.

    Notes
    -----
    *Cost* with three resources: 1 us for the pod, 3 us for each of four nodes. :meth:`candidates`
    takes 100 us with 5 000 nodes.
    """

    __slots__ = ("_wanted",)

    def __init__(self, info: PodInfo, sizes: Sizes) -> None:
        requests = info.requests
        own = ((name, 1 if name == PODS else requests.get(name, 0)) for name in sizes)
        self._wanted = [(name, amount, sizes[name]) for name, amount in own if amount]
        """Resource, what our pod requests of it, and the sizes of others."""

    def keeping(self, indices: Sequence[int], view: NodesView) -> list[int]:
        """Return those of some indices of a view whose nodes keep all of the space with the pod."""
        columns, rows = view.columns, view.rows
        return [
            index
            for index in indices
            if self._is_kept(columns, index if rows is None else int(rows[index]))
        ]

    def _is_kept(self, columns: Columns, row: int) -> bool:
        for name, own, sizes in self._wanted:
            line = columns.resource_row.get(name)
            if line is None:
                continue
            allocatable = int(columns.allocatable[line, row])
            size = max((size for size in sizes if size <= allocatable), default=0)
            left = allocatable - int(columns.requested[line, row]) - own
            if size and left < PLACES[0] * size:
                return False
        return True

    def candidates(self, scores: IntArray, view: NodesView) -> RowArray:
        """Return the indices of the nodes that the pod should go to, which are equally good.

        Parameters
        ----------
        scores
            int64, shape (n,): the scores of the nodes of the view, negative for a node that is not
            feasible. At least one is.
        """
        near = scores >= max(int(scores.max()) - MAX_LOSS, 0)
        known = view.columns.resource_row
        spaces = [_space(view, *wanted) for wanted in self._wanted if wanted[0] in known]
        for places in PLACES:
            keeps = near.copy()
            for left, size in spaces:
                keeps &= left >= places * size
            if keeps.any():
                return np.flatnonzero(keeps & (scores == scores[keeps].max()))
        return np.flatnonzero(near & (scores == scores[near].min()))


def _space(
    view: NodesView, resource: str, own: int, sizes: Sequence[int]
) -> tuple[IntArray, IntArray | int]:
    """Return what is left of a resource with our pod, and the size of others, by node."""
    allocatable = view.allocatable(resource)
    left = allocatable - view.requested(resource) - min(own, INT64_MAX)
    if sizes[-1] <= allocatable.min():
        return left, sizes[-1]
    size = np.zeros(len(view), dtype=np.int64)
    for each in sizes:
        size[allocatable >= each] = each
    # Nobody else's pod fits on these.
    left[size == 0] = INT64_MAX
    return left, size
