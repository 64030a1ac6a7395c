"""Choose the node on which a pod is already, if none is better."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from scheduler.cycle.host_selection import HostSelector

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cache.columns import NodesView
    from plugins.framework.results import RowArray
    from scheduler.cycle.best_rows import BestRows


class StayingSelector(HostSelector):
    """Choose the node with the highest score; among several a preferred one, or at random.

    Parameters
    ----------
    seed
        As in the base class.
    """

    def __init__(self, seed: int | None = None) -> None:
        super().__init__(seed)
        self._preferred: int | None = None

    @contextmanager
    def preferring(self, row: int | None) -> Iterator[None]:
        """Prefer a row within the context; None for no row."""
        self._preferred = row
        try:
            yield
        finally:
            self._preferred = None

    def _draw(self, equals: RowArray, view: NodesView) -> int:
        """Return one of some indices: that of the preferred row if it is among them."""
        row = self._preferred
        if row is not None:
            found = np.array([row]) if view.rows is None else np.flatnonzero(view.rows == row)
            if len(found) and found[0] in equals:
                return int(found[0])
        return super()._draw(equals, view)

    def _draw_row(self, best: BestRows) -> int:
        """Return one of the best rows: the preferred one if it is among them.

        Raises
        ------
        LookupError
            When no row is feasible.
        """
        if self._preferred is not None:
            best.settle()
            if best.is_best(self._preferred):
                return self._preferred
        return super()._draw_row(best)
