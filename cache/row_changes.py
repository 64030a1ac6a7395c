"""Which rows of some columns have changed, for everybody who follows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cache.change_journal import ChangeJournal

if TYPE_CHECKING:
    from collections.abc import Collection


class RowChanges:
    """The last changes of rows; see :meth:`cache.columns.Columns.follow`.

    A follower keeps a cursor of his own, and nothing here knows of him.

    Notes
    -----
    *Concurrency*: confined to the thread of the columns.
    """

    __slots__ = ("_journal", "_most_rows")

    def __init__(self) -> None:
        self._journal: ChangeJournal[int] = ChangeJournal()
        self._most_rows = 0

    @property
    def cursor(self) -> int:
        """How many changes there have been."""
        return self._journal.version

    def note(self, row: int) -> None:
        """Note that a row has changed, or is gone."""
        if row >= self._most_rows:
            self._most_rows = row + 1
        self._journal.note(row)

    def since(self, cursor: int) -> Collection[int]:
        """Return the rows that have changed since; all that there ever were if it is too long ago.

        *Cost*: proportional to the changes since.
        """
        if cursor == self._journal.version:
            return ()
        rows = self._journal.since(cursor)
        return range(self._most_rows) if rows is None else rows
