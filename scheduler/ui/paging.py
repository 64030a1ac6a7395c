"""Long tables in pages: the server sends a hundred rows at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")

PER_PAGE: Final = 100


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some rows of a table.

    Parameters
    ----------
    rows
        Those of this page.
    number
        The page, from 1.
    pages
        How many there are, at least 1.
    total
        The rows of all pages.
    """

    rows: Sequence[T]
    number: int
    pages: int
    total: int

    @property
    def first(self) -> int:
        """The number of the first row, from 1; 0 if there is none."""
        return (self.number - 1) * PER_PAGE + 1 if self.rows else 0

    @property
    def last(self) -> int:
        """The number of the last row."""
        return (self.number - 1) * PER_PAGE + len(self.rows)


def page_of(rows: Sequence[T], number: str) -> Page[T]:
    """Return a page of rows by its number as a text; the nearest one if there is none."""
    pages = max(-(-len(rows) // PER_PAGE), 1)
    wanted = int(number[:9]) if number.isascii() and number.isdigit() else 1
    at = min(max(wanted, 1), pages)
    return Page(rows[(at - 1) * PER_PAGE : at * PER_PAGE], at, pages, len(rows))
