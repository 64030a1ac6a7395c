"""Dictionaries of which an immutable copy can be taken after each change at a low price.

A copy of a plain dict costs time in proportion to all of its entries. These are divided into
shards by the hash of the key, and a new copy shares with the one before all shards in which
nothing changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

K = TypeVar("K", bound="Hashable")
V = TypeVar("V")

_SHARDS: Final = 256
_SHIFT: Final = 20
"""A dict takes the lowest bits of a hash for its slots: those of one shard must differ in them."""


MAX_CHANGED: Final = 8192
"""Keys whose changes wait for the next snapshot; with more of them one is taken at once. Otherwise
keys that come and go would pile up where nobody asks for snapshots."""


class ShardedMap(Mapping[K, V]):
    """An immutable mapping.

    Notes
    -----
    *Concurrency*: immutable.
    """

    __slots__ = ("_length", "_shards")

    def __init__(self) -> None:
        self._shards: tuple[Mapping[K, V], ...] = ({},) * _SHARDS
        self._length = 0

    def __getitem__(self, key: K) -> V:
        return self._shards[(hash(key) >> _SHIFT) % _SHARDS][key]

    def __contains__(self, key: object) -> bool:
        return key in self._shards[(hash(key) >> _SHIFT) % _SHARDS]

    def __iter__(self) -> Iterator[K]:
        for shard in self._shards:
            yield from shard

    def __len__(self) -> int:
        return self._length

    def with_changes(self, changes: Mapping[K, V | None]) -> ShardedMap[K, V]:
        """Return a mapping with other values for some keys; None removes a key.

        *Cost*: the shards that change, each a 256th of all entries.
        """
        shards = list(self._shards)
        copied: set[int] = set()
        length = self._length
        for key, value in changes.items():
            place = (hash(key) >> _SHIFT) % _SHARDS
            if place not in copied:
                copied.add(place)
                shards[place] = dict(shards[place])
            shard: dict[K, V] = shards[place]  # type: ignore[assignment] # copied above
            length -= key in shard
            if value is None:
                shard.pop(key, None)
            else:
                shard[key] = value
                length += 1
        changed: ShardedMap[K, V] = ShardedMap()
        changed._shards, changed._length = tuple(shards), length
        return changed


class SnapshotDict(Generic[K, V]):
    """A dictionary with immutable snapshots.

    Notes
    -----
    *Concurrency*: none of its own; guarded by the lock of its owner.
    """

    __slots__ = ("_changed", "_snapshot", "_values")

    def __init__(self) -> None:
        self._values: dict[K, V] = {}
        self._changed: set[K] = set()
        self._snapshot: ShardedMap[K, V] = ShardedMap()

    def get(self, key: K) -> V | None:
        """Return the value of a key, or None."""
        return self._values.get(key)

    def put(self, key: K, value: V | None) -> None:
        """Set the value of a key; None removes the key."""
        if value is None:
            self._values.pop(key, None)
        else:
            self._values[key] = value
        self._changed.add(key)
        if len(self._changed) >= MAX_CHANGED:
            self.snapshot()

    def snapshot(self) -> ShardedMap[K, V]:
        """Return the entries as they are now.

        *Cost*: as :meth:`ShardedMap.with_changes`, for the keys changed since the last snapshot.
        """
        if self._changed:
            changes = {key: self._values.get(key) for key in self._changed}
            self._snapshot = self._snapshot.with_changes(changes)
            self._changed = set()
        return self._snapshot
