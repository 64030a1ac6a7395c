"""A dictionary for what is made again when it is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from cache.ages import AGES

if TYPE_CHECKING:
    from collections.abc import Hashable

K = TypeVar("K", bound="Hashable")
V = TypeVar("V")


class AgedDict(Generic[K, V]):
    """A dictionary that drops what was neither set nor requested during a whole age.

    Its keys are objects of the cluster, whose number bounds it.

    Notes
    -----
    *Concurrency*: not thread-safe.
    """

    __slots__ = ("_age", "_current", "_previous")

    def __init__(self) -> None:
        self._age = AGES.number
        self._current: dict[K, V] = {}
        self._previous: dict[K, V] = {}

    def __len__(self) -> int:
        return len(self._current) + len(self._previous)

    def get(self, key: K) -> V | None:
        """Return the value of a key, or None."""
        if self._age != AGES.number:
            self._age = AGES.number
            self._previous, self._current = self._current, {}
        value = self._current.get(key)
        if value is None and self._previous:
            value = self._previous.pop(key, None)
            if value is not None:
                self._current[key] = value
        return value

    def put(self, key: K, value: V) -> None:
        """Set the value of a key."""
        self._current[key] = value
        self._previous.pop(key, None)
