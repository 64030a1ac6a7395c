"""Caches of computed results that are limited in bytes.

A limit on the number of entries does not bound a cache in which a user decides the size of an
entry. Least-recently-used order does not keep the most useful entries either, because one pod can
request thousands of entries that nothing requests again. So this cache weighs its entries. It does
not store an entry whose share would be too large. A new entry may only evict other new entries
until it has been requested often, or again soon after it was dropped. Entries also age: an entry
that nothing has requested during a whole age is dropped, even below the limit
(:mod:`cache.ages`).

*Source* of the idea: Johnson and Shasha, "2Q: A low overhead high performance buffer management
replacement algorithm", VLDB 1994.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from functools import wraps
from sys import getsizeof
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import astuple

from cache.ages import AGES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cache.ages import Ages

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
R = TypeVar("R", bound=Hashable)

_ATOMS: Final = frozenset({str, int, float, bytes})
_COLLECTIONS: Final = frozenset({tuple, list, set, frozenset})

_NEWCOMERS: Final = 4
"""Newcomers may have a fourth of the bytes once not all fit: the authors' choice."""

LARGEST: Final = 8
"""An entry may have an eighth of the bytes, so that a few of them do not push out all others."""

_OFTEN: Final = 4
"""A newcomer that was asked for so often again stays. One pod's attempt asks two or three times."""

_GHOSTS: Final = 16
"""Keys of dropped newcomers that are remembered, as hashes, beside half as many as entries."""


class _Entry(Generic[V]):
    __slots__ = ("age", "hits", "value", "weight")

    def __init__(self, value: V, weight: int, age: int) -> None:
        self.value = value
        self.weight = weight
        self.hits = 0
        """How often it was asked for as a newcomer."""
        self.age = age
        """The one in which it came, or was asked for last if it stays."""


class ByteBounded(Generic[K, V]):
    """A dictionary that drops the entries that are least likely to be requested again.

    Parameters
    ----------
    max_bytes
        The limit of the sum of all entries' weights.
    weigh
        Returns the bytes of an entry; called once for each.

    Notes
    -----
    *Concurrency*: not thread-safe; guarded by its owner.

    *Cost*: some 0.2 us for a :meth:`get`. With the first :meth:`put` or :meth:`values` of an age,
    0.3 us for each entry that is dropped.
    """

    __slots__ = (
        "_age",
        "_ages",
        "_ghosts",
        "_kept",
        "_max_bytes",
        "_new_bytes",
        "_newcomers",
        "_weigh",
        "bytes",
    )

    def __init__(
        self, max_bytes: int, weigh: Callable[[K, V], int], ages: Ages | None = None
    ) -> None:
        self._max_bytes = max_bytes
        self._weigh = weigh
        self._ages = AGES if ages is None else ages
        self._age = self._ages.number
        # Both in the order of their ages.
        self._newcomers: OrderedDict[K, _Entry[V]] = OrderedDict()
        self._kept: OrderedDict[K, _Entry[V]] = OrderedDict()
        self._ghosts: OrderedDict[int, None] = OrderedDict()
        self._new_bytes = 0
        self.bytes = 0
        """What all entries weigh together."""

    def __len__(self) -> int:
        return len(self._newcomers) + len(self._kept)

    def __contains__(self, key: K) -> bool:
        return key in self._newcomers or key in self._kept

    def get(self, key: K) -> V | None:
        """Return the value of a key, or None."""
        entry = self._newcomers.get(key)
        if entry is not None:
            entry.hits += 1
            return entry.value
        entry = self._kept.get(key)
        if entry is None:
            return None
        entry.age = self._ages.number
        self._kept.move_to_end(key)
        return entry.value

    def put(self, key: K, value: V) -> None:
        """Store a value, unless it is too large, and drop the entries that no longer fit."""
        self.pop(key)
        if self._age != self._ages.number:
            self._drop_old()
        weight = self._weigh(key, value)
        if weight > self._max_bytes // LARGEST:
            return
        entry = _Entry(value, weight, self._age)
        mark = hash(key)
        if mark in self._ghosts:
            del self._ghosts[mark]
            self._kept[key] = entry
        else:
            self._newcomers[key] = entry
            self._new_bytes += weight
        self.bytes += weight
        self._evict()

    def pop(self, key: K) -> V | None:
        """Remove a key, and return its value."""
        entry = self._newcomers.pop(key, None)
        if entry is not None:
            self._new_bytes -= entry.weight
        else:
            entry = self._kept.pop(key, None)
            if entry is None:
                return None
        self.bytes -= entry.weight
        return entry.value

    def clear(self) -> None:
        """Remove all entries."""
        self._newcomers.clear()
        self._kept.clear()
        self._ghosts.clear()
        self._new_bytes = self.bytes = 0

    def __iter__(self) -> Iterator[K]:
        yield from self._newcomers
        yield from self._kept

    def values(self) -> Iterator[V]:
        """Iterate over the values, in no particular order and without counting it as use."""
        if self._age != self._ages.number:
            self._drop_old()
        for entries in (self._newcomers, self._kept):
            for entry in entries.values():
                yield entry.value

    def weigh_again(self, max_bytes: int | None = None) -> None:
        """Weigh all entries again, after they have grown or shrunk; the limit may be another."""
        if max_bytes is not None:
            self._max_bytes = max_bytes
        for entries in (self._newcomers, self._kept):
            for key, entry in entries.items():
                entry.weight = self._weigh(key, entry.value)
        self._new_bytes = sum(entry.weight for entry in self._newcomers.values())
        self.bytes = self._new_bytes + sum(entry.weight for entry in self._kept.values())
        self._evict()

    def _evict(self) -> None:
        while self.bytes > self._max_bytes:
            if self._new_bytes * _NEWCOMERS > self._max_bytes or not self._kept:
                self._dismiss_newcomer()
            else:
                self.bytes -= self._kept.popitem(last=False)[1].weight

    def _dismiss_newcomer(self) -> None:
        key, newcomer = self._newcomers.popitem(last=False)
        self._new_bytes -= newcomer.weight
        if newcomer.hits >= _OFTEN:
            newcomer.age = self._age
            self._kept[key] = newcomer
            return
        self.bytes -= newcomer.weight
        self._ghosts[hash(key)] = None
        while len(self._ghosts) > _GHOSTS + len(self) // 2:
            self._ghosts.popitem(last=False)

    def _drop_old(self) -> None:
        """Drop the entries that were not requested during the whole previous age."""
        self._age = self._ages.number
        oldest = self._age - 1
        while self._kept and next(iter(self._kept.values())).age < oldest:
            self.bytes -= self._kept.popitem(last=False)[1].weight
        while self._newcomers and next(iter(self._newcomers.values())).age < oldest:
            self._dismiss_newcomer()


def remembered(max_bytes: int) -> Callable[[Callable[..., V]], Callable[..., V]]:
    """Return a decorator like ``functools.lru_cache`` for a pure function of hashable arguments.

    What it returned lately is returned again, within a number of bytes: those of arguments and
    results. A result of None is worked out again each time. Keyword arguments are passed on, and
    make no difference to what is returned.

    Notes
    -----
    *Concurrency*: the function may be called from any thread.

    *Cost*: about a microsecond more than hashing the arguments; for arguments that are new, 0.2
    us for each object in arguments and result, up to the largest that are kept.
    """

    def decorate(function: Callable[..., V]) -> Callable[..., V]:
        lock = threading.Lock()
        at_most = max_bytes // LARGEST

        def weigh(arguments: tuple[Hashable, ...], result: V) -> int:
            return deep_bytes(arguments, result, at_most=at_most)

        known: ByteBounded[tuple[Hashable, ...], V] = ByteBounded(max_bytes, weigh)

        @wraps(function)
        def remembering(*arguments: Hashable, **unkeyed: Any) -> V:
            with lock:
                found = known.get(arguments)
            if found is None:
                found = function(*arguments, **unkeyed)
                with lock:
                    known.put(arguments, found)
            return found

        remembering.known = known  # type: ignore[attr-defined] # for whoever measures
        return remembering

    return decorate


def deep_bytes(*values: Any, at_most: int) -> int:
    """Return the bytes of objects and of all that they refer to, or a number above ``at_most``.

    Shared objects count once, but for texts and numbers. Objects are looked into by their slots,
    fields or attributes.

    *Cost*: some 0.2 us for each object; ends as soon as ``at_most`` is exceeded.
    """
    total = 0
    seen: set[int] = set()
    waiting: list[Any] = list(values)
    while waiting and total <= at_most:
        value = waiting.pop()
        kind = type(value)
        if kind in _ATOMS:
            total += getsizeof(value)
            continue
        if value is None or kind is bool or isinstance(value, type) or id(value) in seen:
            continue
        seen.add(id(value))
        total += getsizeof(value)
        if kind in _COLLECTIONS:
            waiting += value
        elif isinstance(value, Struct):
            waiting += astuple(value)
        elif isinstance(value, Mapping):
            waiting += value.keys()
            waiting += value.values()
        elif isinstance(value, np.ndarray):
            total += 0 if value.base is None else value.nbytes
        elif isinstance(value, (tuple, list, set, frozenset)):
            waiting += value
        else:
            waiting += _parts(value)
    return total


def _parts(value: Any) -> Iterator[Any]:
    if hasattr(value, "__dict__"):
        yield value.__dict__
    for base in type(value).__mro__:
        for name in getattr(base, "__slots__", ()):
            yield getattr(value, name, None)
