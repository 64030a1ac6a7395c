"""Which objects have changed lately, for those who worked something out from older ones."""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

K = TypeVar("K", bound="Hashable")

MAX_CHANGES: Final = 8192
"""Changes remembered: as many as the queue keeps events for, and some seconds of a cluster that
provisions as fast as it can."""


class ChangeJournal(Generic[K]):
    """The keys of the last changes, in order, and how many there have been.

    Parameters
    ----------
    most
        How many changes are remembered; by default :data:`MAX_CHANGES`.

    Notes
    -----
    *Concurrency*: none of its own; guarded by the lock of its owner.
    """

    __slots__ = ("_keys", "version")

    def __init__(self, most: int | None = None) -> None:
        self.version = 0
        """How many changes there have been."""
        self._keys: deque[K] = deque(maxlen=MAX_CHANGES if most is None else most)

    def note(self, key: K) -> None:
        """Take down one more change."""
        self._keys.append(key)
        self.version += 1

    def since(self, version: int) -> frozenset[K] | None:
        """Return the keys changed after ``version``; None when that is too long ago.

        *Cost*: proportional to the changes since.
        """
        changes = self.each_since(version)
        return None if changes is None else frozenset(changes)

    def each_since(self, version: int) -> Iterator[K] | None:
        """Return every change after ``version``, the latest first; None when it is too long ago."""
        behind = self.version - version
        return None if behind > len(self._keys) else islice(reversed(self._keys), behind)
