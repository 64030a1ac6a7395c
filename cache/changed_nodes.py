"""Which nodes of some columns have changed since somebody looked last."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SPARE = 64


class ChangedNodes:
    """The names of the nodes that were put or removed; see :meth:`cache.columns.Columns.follow`.

    The columns know it weakly: whoever follows them keeps it for as long as he wants to.

    Parameters
    ----------
    row_of
        The nodes of the columns, by name.
    from_now
        Whether it begins without any, rather than with all nodes.

    Notes
    -----
    *Concurrency*: confined to the thread of the columns.

    Takes no more room than the names of all nodes, however many come and go before somebody looks.
    """

    __slots__ = ("__weakref__", "_names", "_row_of")

    def __init__(self, row_of: Mapping[str, int], *, from_now: bool) -> None:
        self._row_of = row_of
        self._names: set[str] | None = set() if from_now else None
        """None for all nodes."""

    def __bool__(self) -> bool:
        return self._names is None or bool(self._names)

    def add(self, name: str) -> None:
        """Note that a node has changed or is gone."""
        if self._names is not None:
            self._names.add(name)
            if len(self._names) > len(self._row_of) + _SPARE:
                self._names = None

    def take(self, known: Iterable[str]) -> set[str]:
        """Return the names of the nodes that have changed, and begin anew.

        Parameters
        ----------
        known
            The nodes that the caller knows: those of them that are gone may have been forgotten
            here.
        """
        names = self._names
        self._names = set()
        return {*self._row_of, *known} if names is None else names
