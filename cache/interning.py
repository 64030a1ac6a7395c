"""Interned ids: small integers for values that are hashed and compared often.

Columns hold ids instead of label sets, taint sets and selectors. Ids are dense, so that they
index arrays. The id of a value that has no holder left is given to the next new value, so that the
arrays do not grow with values that are no longer in use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

T = TypeVar("T", bound="Hashable")


class Interner(Generic[T]):
    """Values and their ids, with the number of holders of each.

    Attributes
    ----------
    epoch : int
        Grows whenever an id is given to another value than before. What was computed for ids
        in one epoch says nothing about the same ids in a later one.

    *Concurrency*: not thread-safe; guarded by the owner's lock.
    """

    __slots__ = ("_free", "_holders", "_ids", "_values", "epoch")

    def __init__(self) -> None:
        self._ids: dict[T, int] = {}
        self._values: list[T | None] = []
        self._holders: list[int] = []
        self._free: list[int] = []
        self.epoch = 0

    def acquire(self, value: T) -> int:
        """Return the id of ``value`` and count one more holder; a new value gets an id."""
        found = self._ids.get(value)
        if found is not None:
            self._holders[found] += 1
            return found
        if self._free:
            new = self._free.pop()
            self.epoch += 1
            self._values[new] = value
            self._holders[new] = 1
        else:
            new = len(self._values)
            self._values.append(value)
            self._holders.append(1)
        self._ids[value] = new
        return new

    def release(self, value_id: int) -> None:
        """Count one holder less; without holders the value is removed and its id becomes free.

        Raises
        ------
        KeyError
            If the id is not in use.
        """
        value = self.value(value_id)
        self._holders[value_id] -= 1
        if not self._holders[value_id]:
            del self._ids[value]
            self._values[value_id] = None
            self._free.append(value_id)

    def id_of(self, value: T) -> int:
        """Return the id of a value that has a holder, without adding a holder.

        Raises
        ------
        KeyError
            If the value has no holder.
        """
        return self._ids[value]

    def value(self, value_id: int) -> T:
        """Return the value with this id.

        Raises
        ------
        KeyError
            If the id is not in use.
        """
        if 0 <= value_id < len(self._values) and self._holders[value_id]:
            return cast("T", self._values[value_id])
        raise KeyError(f"id {value_id} is not in use")

    def values(self) -> Iterator[T]:
        """Iterate over the values in use, in the order of their ids."""
        return (value for _, value in self.items())

    def items(self) -> Iterator[tuple[int, T]]:
        """Iterate over the ids and values in use, in the order of ids."""
        for value_id, value in enumerate(self._values):
            if self._holders[value_id]:
                yield value_id, cast("T", value)

    @property
    def capacity(self) -> int:
        """One more than the highest id ever assigned: the length of an array indexed by ids."""
        return len(self._values)

    def __contains__(self, value: object) -> bool:
        return value in self._ids

    def __len__(self) -> int:
        """Return the number of distinct values in use."""
        return len(self._ids)
