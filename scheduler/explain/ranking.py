"""The scores of feasible nodes, best first, as columns: most readers look at a few of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cache.device_objects import AllocationResult, ResourceClaim
    from plugins.framework.results import IntArray

    Allocations = tuple[tuple[ResourceClaim, AllocationResult], ...]


@dataclass(frozen=True, slots=True)
class NodeScores:
    """The weighted score of each scoring plugin that did not skip the pod, and their sum.

    Parameters
    ----------
    allocations
        The pod's claims that have no allocation yet, with what they would get on the node. For
        extended resources that are devices there, this includes a claim that does not exist yet.
    """

    scores: Mapping[str, int]
    total: int
    allocations: Allocations = ()


class Ranking(Mapping[str, NodeScores]):
    """The scores of nodes by name, in descending order; nodes with equal scores by name. Immutable.

    Parameters
    ----------
    names
        Of all feasible nodes, in any order.
    weighted
        Weighted scores by plugin, each int64 (n,) in the order of ``names``.
    total
        Their sums, int64 (n,).
    allocations
        By name of a node; nodes without any may be missing.

    *Cost*: a sort of the names; a value is made when it is read.
    """

    def __init__(
        self,
        names: Sequence[str],
        weighted: Mapping[str, IntArray],
        total: IntArray,
        allocations: Mapping[str, Allocations],
    ) -> None:
        by_name = np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.intp)
        order = by_name[np.argsort(-total[by_name], kind="stable")]
        self._names = [names[at] for at in order.tolist()]
        self._columns = {plugin: column[order] for plugin, column in weighted.items()}
        self._allocations = allocations
        self._indices: dict[str, int] = {}
        self.totals: IntArray = total[order]
        """The sums in the order of the ranking, int64 (n,)."""

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._index

    def __getitem__(self, name: str) -> NodeScores:
        at = self._index[name]
        scores = {plugin: int(column[at]) for plugin, column in self._columns.items()}
        return NodeScores(scores, int(self.totals[at]), self._allocations.get(name, ()))

    @property
    def _index(self) -> dict[str, int]:
        if not self._indices:
            self._indices = {each: at for at, each in enumerate(self._names)}
        return self._indices

    def rows(self) -> Iterator[tuple[str, dict[str, int], int, Allocations]]:
        """Yield name, scores, sum and allocations of each node in the order of the ranking.

        *Cost*: a third of reading all values.
        """
        plugins = tuple(self._columns)
        columns = [column.tolist() for column in self._columns.values()]
        scores = zip(*columns, strict=True) if columns else iter([()] * len(self))
        found = self._allocations
        for name, row, total in zip(self._names, scores, self.totals.tolist(), strict=True):
            yield name, dict(zip(plugins, row, strict=True)), total, found.get(name, ())


NOBODY: Final = Ranking((), {}, np.zeros(0, dtype=np.int64), {})
"""No node is feasible."""
