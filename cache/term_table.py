"""Evaluation of many affinity terms at once: the terms that select a pod, summed by node.

One pod may have thousands of terms, and each of them may concern every other pod. Such terms are
not evaluated one after the other. They are stored as columns, with an index from labels to the
terms that read them, so that all are decided in a few passes. The resulting sums are cached for
all pods that the terms cannot distinguish: pods with equal values of the labels that the terms
read, as far as the terms mention those values, and with namespaces that the same terms select. A
pod with labels of its own, such as the pod of a Job, is therefore like any other.

Cached sums are updated term by term; they are computed anew when much has changed or when the
terms have begun to distinguish other pods.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import count
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from cache.interning import Interner
from cache.label_selectors import DOES_NOT_EXIST, IN, NOT_IN
from cache.term_scopes import TermScopes
from cache.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy.typing as npt

    from cache.label_selectors import Selector
    from cache.term_group import AskedPod, TermGroup

MAX_REMEMBERED_BYTES: Final = 32 * 2**20
"""Bytes of remembered sums: 16 for each node, topology and kind of pod that terms tell apart."""

_BYTES_BY_LABEL: Final = 300
"""Of a label by which a pod is told apart."""

MAX_JOURNAL: Final = 256
"""Changes that remembered sums take in one by one, at half a microsecond each."""

_FIRST_CAPACITY: Final = 64

_UNMET: Final = 1
"""The number of demanded labels of a term that means nobody, and of a slot that is free."""

_generations = count()

_SumsKey: TypeAlias = "tuple[int, object, frozenset[tuple[str, str | None]]]"
"""A generation of a table, what reaches the pod, and its labels as terms tell them apart."""


class TermSum(Value, frozen=True):
    """The sum of the terms of one topology, by row.

    Parameters
    ----------
    topology_key
        The topology.
    counts
        int64 (n_nodes,), read-only: how often pods of each row have one of the terms.
    weighted
        int64 (n_nodes,), read-only: the same with each preferred term times its weight.
    """

    topology_key: str
    counts: npt.NDArray[np.int64]
    weighted: npt.NDArray[np.int64]


class RememberedSums:
    """Cached sums by their key, least recently used first, limited in bytes.

    Notes
    -----
    *Concurrency*: confined to the thread of the columns it belongs to.
    """

    def __init__(self) -> None:
        self._sums: OrderedDict[_SumsKey, _Sums] = OrderedDict()
        self._keys: dict[int, set[_SumsKey]] = {}
        self.num_bytes = 0

    def get(self, key: _SumsKey) -> _Sums | None:
        """Return the cached value of a key, or None."""
        known = self._sums.get(key)
        if known is not None:
            self._sums.move_to_end(key)
        return known

    def put(self, key: _SumsKey, sums: _Sums) -> None:
        """Store sums under a key, in place of earlier ones."""
        self._drop(key)
        self._sums[key] = sums
        self._keys.setdefault(key[0], set()).add(key)
        sums.num_bytes += _BYTES_BY_LABEL * len(key[2])
        self.num_bytes += sums.num_bytes
        while self.num_bytes > MAX_REMEMBERED_BYTES and self._sums:
            self._drop(next(iter(self._sums)))

    def forget(self, generation: int) -> None:
        """Drop all sums of a generation, which are no longer requested."""
        for key in self._keys.pop(generation, ()):
            self.num_bytes -= self._sums.pop(key).num_bytes

    def _drop(self, key: _SumsKey) -> None:
        old = self._sums.pop(key, None)
        if old is None:
            return
        self.num_bytes -= old.num_bytes
        keys = self._keys[key[0]]
        keys.remove(key)
        if not keys:
            del self._keys[key[0]]


class _Sums:
    """Counts and weighted counts by row, for each topology that some node has."""

    __slots__ = ("by_key", "num_bytes", "position", "topologies", "width")

    def __init__(self, topologies: list[str], width: int, position: int) -> None:
        self.topologies = topologies
        self.width = width
        self.position = position
        self.by_key: dict[str, npt.NDArray[np.int64]] = {}
        self.num_bytes = 1000

    def put(self, key: str, both: npt.NDArray[np.int64]) -> None:
        self.by_key[key] = both
        self.num_bytes += both.nbytes

    def add(self, group: TermGroup, row: int, change: int) -> None:
        key = group.term.topology_key
        if key in self.topologies:
            if key not in self.by_key:
                self.put(key, np.zeros((2, self.width), dtype=np.int64))
            both = self.by_key[key]
            both[0, row] += change
            both[1, row] += change * group.weight


class _Mentions:
    """The slots of terms that say something about one key, by the value that they mention."""

    __slots__ = ("of_any", "of_value")

    def __init__(self) -> None:
        self.of_any: set[int] = set()
        """Terms that mean any value."""
        self.of_value: dict[str, int | set[int]] = {}
        """Most values are mentioned by one term, and a set takes 200 bytes."""

    def __bool__(self) -> bool:
        return bool(self.of_any or self.of_value)

    def add(self, slot: int, values: frozenset[str] | None) -> None:
        """Add a term that mentions some values; None for any."""
        if values is None:
            self.of_any.add(slot)
            return
        for value in values:
            known = self.of_value.get(value)
            if known is None:
                self.of_value[value] = slot
            elif isinstance(known, set):
                known.add(slot)
            else:
                self.of_value[value] = {known, slot}

    def remove(self, slot: int, values: frozenset[str] | None) -> None:
        """Remove a term that was added with these values."""
        if values is None:
            self.of_any.discard(slot)
            return
        for value in values:
            known = self.of_value[value]
            if isinstance(known, set) and len(known) > 1:
                known.discard(slot)
            else:
                del self.of_value[value]


class _Readers:
    """The terms that read one label, by slot: those that demand it and those that forbid it."""

    __slots__ = ("banned", "demanded")

    def __init__(self) -> None:
        self.demanded = _Mentions()
        self.banned = _Mentions()

    @property
    def is_idle(self) -> bool:
        """Whether no term reads the key any more."""
        return not (self.demanded or self.banned)

    def mentions(self, value: str) -> bool:
        """Return whether a term mentions a value of the key."""
        return value in self.demanded.of_value or value in self.banned.of_value


class TermTable:
    """Terms of one kind as columns, and the nodes whose pods have them.

    Parameters
    ----------
    remembered
        The cache of the sums; shared by all tables of an index.

    Notes
    -----
    *Concurrency*: confined to the thread of the columns it belongs to.
    """

    def __init__(self, remembered: RememberedSums) -> None:
        self._remembered = remembered
        self._slots: dict[TermGroup, int] = {}
        self._free: list[int] = []
        self._num_demanded = np.full(_FIRST_CAPACITY, _UNMET, dtype=np.int32)
        self._scope_ids = np.zeros(_FIRST_CAPACITY, dtype=np.intp)
        self._topology_ids = np.zeros(_FIRST_CAPACITY, dtype=np.intp)
        self._weights = np.zeros(_FIRST_CAPACITY, dtype=np.int64)
        self._readers: dict[str, _Readers] = {}
        self._scopes = TermScopes()
        self._topologies: Interner[str] = Interner()
        self._entries = _Entries()
        self._journal: list[tuple[TermGroup, int, int]] = []
        self._journal_start = 0
        self._generation = next(_generations)

    # --- changes ------------------------------------------------------------------------------

    def take_over(self, group: TermGroup) -> None:
        """Add a group with its counts."""
        for row, number in group.rows.items():
            self.count(group, row, number)

    def count(self, group: TermGroup, row: int, change: int) -> None:
        """Change the number of times that pods of a row have a term."""
        slot = self._slots.get(group)
        if slot is None:
            slot = self._add(group)
        number = group.rows.get(row, 0)
        self._entries.set(slot, row, number)
        self._journal.append((group, row, change))
        if len(self._journal) > MAX_JOURNAL:
            # No sum has taken in the last change, and so none can follow any more.
            self._journal_start += len(self._journal)
            self._journal.clear()
            self.forget_sums()
        if not group.rows:
            self._remove(group)

    def _add(self, group: TermGroup) -> int:
        slot = self._free.pop() if self._free else len(self._slots)
        if slot == len(self._weights):
            self._grow()
        self._slots[group] = slot
        self._scope_ids[slot] = self._scopes.acquire(group.term)
        self._weights[slot] = group.weight
        self._topology_ids[slot] = self._topologies.acquire(group.term.topology_key)
        demands = _demands(group.term.selector)
        if demands is None:
            self._num_demanded[slot] = _UNMET
            return slot
        demanded, banned = demands
        self._num_demanded[slot] = len(demanded)
        is_news = False
        for key in {*demanded, *banned}:
            readers = self._readers.get(key)
            if readers is None:
                readers, is_news = self._readers.setdefault(key, _Readers()), True
            for value in (*(demanded.get(key) or ()), *(banned.get(key) or ())):
                is_news = is_news or not readers.mentions(value)
            if key in demanded:
                readers.demanded.add(slot, demanded[key])
            if key in banned:
                readers.banned.add(slot, banned[key])
        if is_news:
            self._begin_anew()
        return slot

    def _remove(self, group: TermGroup) -> None:
        slot = self._slots.pop(group)
        self._free.append(slot)
        self._num_demanded[slot] = _UNMET
        self._scopes.release(int(self._scope_ids[slot]))
        self._topologies.release(int(self._topology_ids[slot]))
        demands = _demands(group.term.selector)
        if demands is None:
            return
        demanded, banned = demands
        is_news = False
        for key in {*demanded, *banned}:
            readers = self._readers[key]
            if key in demanded:
                readers.demanded.remove(slot, demanded[key])
            if key in banned:
                readers.banned.remove(slot, banned[key])
            for value in (*(demanded.get(key) or ()), *(banned.get(key) or ())):
                is_news = is_news or not readers.mentions(value)
            if readers.is_idle:
                del self._readers[key]
                is_news = True
        if is_news:
            self._begin_anew()

    def _begin_anew(self) -> None:
        """Drop all sums: the terms now distinguish other pods than before."""
        self.forget_sums()
        self._generation = next(_generations)

    def forget_sums(self) -> None:
        """Drop the cached sums of this table."""
        self._remembered.forget(self._generation)

    def _grow(self) -> None:
        more = len(self._weights)
        self._num_demanded = np.pad(self._num_demanded, (0, more), constant_values=_UNMET)
        self._scope_ids = np.pad(self._scope_ids, (0, more))
        self._topology_ids = np.pad(self._topology_ids, (0, more))
        self._weights = np.pad(self._weights, (0, more))

    # --- questions ----------------------------------------------------------------------------

    def sums(self, asked: AskedPod, label_keys: Mapping[str, int], num_rows: int) -> list[TermSum]:
        """Return the terms that select a pod, summed for each topology.

        Parameters
        ----------
        label_keys
            The label keys that nodes have: a topology without nodes is left out.

        *Cost*: a look-up for each label of the pod, and what has changed since the same was
        asked about a pod like it; else a few passes over all terms.
        """
        reach = self._scopes.reach(asked.namespace, asked.namespace_labels)
        key = (self._generation, reach.token, self._as_told_apart(asked.labels))
        if len(label_keys) < len(self._topologies):
            topologies = [each for each in label_keys if each in self._topologies]
        else:
            topologies = [each for each in self._topologies.values() if each in label_keys]
        known = self._remembered.get(key)
        if (
            known is None
            or known.width < num_rows
            or known.position < self._journal_start
            or known.topologies != topologies
        ):
            known = self._summed(asked, reach.mask, topologies, num_rows)
            self._remembered.put(key, known)
        else:
            before = known.num_bytes
            for group, row, change in self._journal[known.position - self._journal_start :]:
                if row < known.width and asked.is_meant_by(group):
                    known.add(group, row, change)
            self._remembered.num_bytes += known.num_bytes - before
        known.position = self._journal_start + len(self._journal)
        return [
            TermSum(key, _read_only(both[0, :num_rows]), _read_only(both[1, :num_rows]))
            for key, both in known.by_key.items()
        ]

    def _as_told_apart(self, labels: Mapping[str, str]) -> frozenset[tuple[str, str | None]]:
        """Return the labels that terms read; None for a value that none of them mentions."""
        told = []
        for key, value in labels.items():
            readers = self._readers.get(key)
            if readers is not None:
                told.append((key, value if readers.mentions(value) else None))
        return frozenset(told)

    def _meaning(
        self, labels: Mapping[str, str], in_scope: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.bool_]:
        """Return bool (number of slots,): the terms that select a pod with these labels."""
        used = len(self._slots) + len(self._free)
        unmet = self._num_demanded[:used].copy()
        banned = ~in_scope[self._scope_ids[:used]]
        for key, value in labels.items():
            readers = self._readers.get(key)
            if readers is not None:
                unmet[_slots_of(readers.demanded.of_any)] -= 1
                unmet[_slots_of(readers.demanded.of_value.get(value))] -= 1
                banned[_slots_of(readers.banned.of_any)] = True
                banned[_slots_of(readers.banned.of_value.get(value))] = True
        meaning: npt.NDArray[np.bool_] = unmet == 0
        meaning &= ~banned
        return meaning

    def _summed(
        self,
        asked: AskedPod,
        in_scope: npt.NDArray[np.bool_],
        topologies: list[str],
        num_rows: int,
    ) -> _Sums:
        sums = _Sums(topologies, num_rows, 0)
        meaning = self._meaning(asked.labels, in_scope)
        slots, rows, counts = self._entries.arrays()
        hit = np.flatnonzero(meaning[slots])
        if not len(hit):
            return sums
        slots, rows, counts = slots[hit], rows[hit], counts[hit]
        weighted = counts * self._weights[slots]
        numbers = np.full(self._topologies.capacity, -1, dtype=np.intp)
        for at, key in enumerate(topologies):
            numbers[self._topologies.id_of(key)] = at
        where = numbers[self._topology_ids[slots]]
        for at in np.unique(where).tolist():
            if at >= 0:
                there = where == at
                both = np.empty((2, num_rows), dtype=np.int64)
                # Exact: counts of pods times a weight of 100 stay far below 2**53.
                both[0] = np.bincount(rows[there], counts[there], minlength=num_rows)
                both[1] = np.bincount(rows[there], weighted[there], minlength=num_rows)
                sums.put(topologies[at], both)
        return sums


class _Entries:
    """How often pods of a row have a term, for each pair of a slot and a row, in one piece."""

    __slots__ = ("_at", "_data", "_keys")

    def __init__(self) -> None:
        self._at: dict[tuple[int, int], int] = {}
        self._keys: list[tuple[int, int]] = []
        self._data = np.zeros((3, _FIRST_CAPACITY), dtype=np.int64)

    def set(self, slot: int, row: int, number: int) -> None:
        """Set a number; 0 removes the entry."""
        key = (slot, row)
        at = self._at.get(key)
        if number:
            if at is None:
                at = self._at[key] = len(self._keys)
                self._keys.append(key)
                if at == self._data.shape[1]:
                    self._data = np.pad(self._data, ((0, 0), (0, at)))
                self._data[0, at] = slot
                self._data[1, at] = row
            self._data[2, at] = number
        elif at is not None:
            del self._at[key]
            last = self._keys.pop()
            if last != key:
                self._keys[at] = last
                self._at[last] = at
                self._data[:, at] = self._data[:, len(self._keys)]

    def arrays(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
        """Return slots, rows and numbers."""
        slots, rows, numbers = self._data[:, : len(self._keys)]
        return slots, rows, numbers


_Demands = dict[str, "frozenset[str] | None"]
"""By label key: one of these values; None for any value."""


def _demands(selector: Selector) -> tuple[_Demands, _Demands] | None:
    """Return what a pod's labels must have and must not have; None when no pod can match."""
    if selector.nothing:
        return None
    demanded: _Demands = {}
    banned: _Demands = {}
    for requirement in selector.requirements:
        key, operator, values = requirement.key, requirement.operator, requirement.values
        if operator == IN:
            known = demanded.get(key)
            demanded[key] = values if known is None else known & values
            if not demanded[key]:
                return None
        elif operator == NOT_IN:
            known = banned.get(key, frozenset())
            banned[key] = None if known is None else known | values
        elif operator == DOES_NOT_EXIST:
            banned[key] = None
        else:
            demanded.setdefault(key, None)
    return demanded, banned


def _slots_of(slots: Iterable[int] | int | None) -> npt.NDArray[np.intp]:
    if slots is None:
        return np.empty(0, dtype=np.intp)
    if isinstance(slots, int):
        return np.array([slots], dtype=np.intp)
    return np.fromiter(slots, np.intp)


def _read_only(array: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    array.flags.writeable = False
    return array
