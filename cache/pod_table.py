"""All pods of a snapshot as columns, on which new selectors are evaluated.

A pod has a slot. There is one array for rows, one for namespaces and one for each label key that
some selector reads. Other labels are not stored, so pods whose label sets are all different (those
of Jobs and StatefulSets) cost no more than others. The values of a selector are converted to ids
and compared with the arrays: the labels of a pod are not read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from cache.byte_bounded import ByteBounded
from cache.label_selectors import DOES_NOT_EXIST, EXISTS, IN
from cache.ref_counts import RefCounts
from cache.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from cache.label_selectors import Requirement, Selector
    from cache.objects import Pod
    from cache.pod_info import PodInfo

MAX_BYTES: Final = 1 << 28
"""256 MiB: with 150 000 pods 200 columns of keys with few values, or 10 of keys whose values all
differ, more than selectors of affinity terms and spread constraints look at."""

_BYTES_BY_VALUE: Final = 110
"""Of a value in a dictionary. Its text belongs to a pod."""

_FIRST_CAPACITY: Final = 256

_SLACK: Final = 64
"""So many new values are always taken in before a column is filled anew."""

_SLOTS_BY_NEW_VALUE: Final = 256
"""A new value pays for reading so many slots anew: 40 us."""

_DEMANDING: Final = (IN, EXISTS)
"""The operators that need the label."""

_NONE: Final = 0
"""The id of an absent label, and of the namespace of a slot that is free."""


class PodQuery(Value, frozen=True):
    """The conditions that a counted pod meets.

    Parameters
    ----------
    namespaces
        Pods of these; None for pods of every namespace.
    selector
        What their labels must be.
    with_terminating
        Whether pods that are being deleted count.
    """

    namespaces: frozenset[str] | None
    selector: Selector
    with_terminating: bool = True

    @property
    def nothing(self) -> bool:
        """Whether no pod at all can match."""
        return self.selector.nothing or (self.namespaces is not None and not self.namespaces)

    def matches(self, pod: Pod) -> bool:
        """Return whether the query counts a pod."""
        metadata = pod.metadata
        if self.namespaces is not None and metadata.namespace not in self.namespaces:
            return False
        if not self.with_terminating and metadata.deletion_timestamp is not None:
            return False
        return self.selector.matches(metadata.labels)


class _Values:
    """The distinct values of one label (or of the namespace) and the id of each slot's."""

    __slots__ = ("_crowded_at", "ids", "key", "values")

    def __init__(self, key: str, capacity: int) -> None:
        self.key = key
        self.values: dict[str, int] = {}
        self.ids = np.zeros(capacity, dtype=np.int32)
        self._crowded_at = _SLACK

    def fill(self, values: Iterable[tuple[int, str | None]]) -> None:
        """Take over the values of all slots, by slot; until now there are none."""
        for slot, value in values:
            self.set(slot, value)
        self._crowded_at = 2 * len(self.values) + max(_SLACK, len(self.ids) // _SLOTS_BY_NEW_VALUE)

    @property
    def is_crowded(self) -> bool:
        """Whether there are over twice as many values as when the column was filled.

        Then most of them may be such that no slot has them any more.
        """
        return len(self.values) > self._crowded_at

    def set(self, slot: int, value: str | None) -> bool:
        """Take over a slot's value, and return whether it is one that no slot had before."""
        if value is None:
            self.ids[slot] = _NONE
            return False
        known = self.values.get(value)
        if known is not None:
            self.ids[slot] = known
            return False
        self.ids[slot] = self.values[value] = len(self.values) + 1
        return True

    def mask(self, requirement: Requirement) -> npt.NDArray[np.bool_]:
        """Return bool (capacity,): the slots whose value satisfies a label requirement."""
        operator = requirement.operator
        if operator in (EXISTS, DOES_NOT_EXIST):
            present: npt.NDArray[np.bool_] = self.ids != _NONE
            return present if operator == EXISTS else ~present
        is_in = operator == IN
        wanted = np.full(len(self.values) + 1, not is_in, dtype=np.bool_)
        for value in requirement.values:
            value_id = self.values.get(value)
            if value_id is not None:
                wanted[value_id] = is_in
        return wanted.take(self.ids)


class PodTable:
    """The pods by slot.

    Notes
    -----
    *Concurrency*: confined to the thread of the columns it belongs to.
    """

    def __init__(self) -> None:
        self.infos: list[PodInfo | None] = []
        self._free: list[int] = []
        self._rows = np.zeros(_FIRST_CAPACITY, dtype=np.intp)
        self._terminating = np.zeros(_FIRST_CAPACITY, dtype=np.bool_)
        self._namespaces = _Values("", _FIRST_CAPACITY)
        self._labels: ByteBounded[str, _Values] = ByteBounded(MAX_BYTES, _weight)
        self._num_with = RefCounts()
        """How many pods have each label key; keys that no pod has are left out."""
        self.num_filled = 0
        """How many columns of labels have been filled so far."""

    def fill(self, infos: Sequence[PodInfo], rows: Sequence[int]) -> None:
        """Add pods on their rows, by slot; until now there are none."""
        used = len(infos)
        while len(self._rows) < used:
            self._grow()
        self.infos = list(infos)
        self._rows[:used] = rows
        metadata = [info.pod.metadata for info in infos]
        self._terminating[:used] = [each.deletion_timestamp is not None for each in metadata]
        for each in metadata:
            self._num_with.add(each.labels)
        self._fill_namespaces()

    def add(self, info: PodInfo, row: int) -> int:
        """Add a pod on a row and return its slot. *Cost*: about a microsecond."""
        if self._free:
            slot = self._free.pop()
            self.infos[slot] = info
        else:
            slot = len(self.infos)
            self.infos.append(info)
            if slot == len(self._rows):
                self._grow()
        metadata = info.pod.metadata
        self._rows[slot] = row
        self._terminating[slot] = metadata.deletion_timestamp is not None
        if self._namespaces.set(slot, metadata.namespace) and self._namespaces.is_crowded:
            self._fill_namespaces()
        labels = metadata.labels
        self._num_with.add(labels)
        crowded = [
            values.key
            for values in self._labels.values()
            if values.set(slot, labels.get(values.key)) and values.is_crowded
        ]
        for key in crowded:
            self._labels.pop(key)
        return slot

    def remove(self, slot: int) -> None:
        """Free a slot."""
        info = self.infos[slot]
        if info is not None:
            self._num_with.remove(info.pod.metadata.labels)
        self.infos[slot] = None
        self._namespaces.set(slot, None)
        self._free.append(slot)

    def is_hopeless(self, query: PodQuery) -> bool:
        """Return whether a query requires a label key that no pod has.

        *Cost*: 0.1 us for each requirement.
        """
        return query.nothing or any(
            each.operator in _DEMANDING and each.key not in self._num_with
            for each in query.selector.requirements
        )

    def count_by_row(self, query: PodQuery, num_rows: int) -> npt.NDArray[np.int64]:
        """Return int64 (num_rows,): how many pods of each row a query matches.

        *Cost*: a pass or two over all pods for each label that the query looks at; reading that
        label of every pod when no query looked at it before.
        """
        used = len(self.infos)
        if self.is_hopeless(query):
            return np.zeros(num_rows, dtype=np.int64)
        mask = self.within(query)
        for requirement in query.selector.requirements:
            mask &= self._column(requirement.key).mask(requirement)[:used]
        rows = self.rows[mask]
        return np.bincount(rows, minlength=num_rows).astype(np.int64, copy=False)

    @property
    def rows(self) -> npt.NDArray[np.intp]:
        """Intp (number of slots,): the row of each slot's pod."""
        return self._rows[: len(self.infos)]

    def within(self, query: PodQuery) -> npt.NDArray[np.bool_]:
        """Return bool (number of slots,): the pods that a query counts, whatever their labels."""
        mask = self._in_namespaces(query.namespaces)
        if not query.with_terminating:
            mask &= ~self._terminating
        return mask[: len(self.infos)]

    def _in_namespaces(self, wanted: frozenset[str] | None) -> npt.NDArray[np.bool_]:
        column = self._namespaces
        if wanted is None:
            anywhere: npt.NDArray[np.bool_] = column.ids != _NONE
            return anywhere
        table = np.zeros(len(column.values) + 1, dtype=np.bool_)
        for namespace in wanted:
            value_id = column.values.get(namespace)
            if value_id is not None:
                table[value_id] = True
        return table.take(column.ids)

    def _fill_namespaces(self) -> None:
        self._namespaces = _Values("", len(self._rows))
        self._namespaces.fill(
            (slot, info.pod.metadata.namespace)
            for slot, info in enumerate(self.infos)
            if info is not None
        )

    def _column(self, key: str) -> _Values:
        column = self._labels.get(key)
        if column is not None:
            return column
        column = _Values(key, len(self._rows))
        if key in self._num_with:
            self.num_filled += 1
            column.fill(
                (slot, info.pod.metadata.labels.get(key))
                for slot, info in enumerate(self.infos)
                if info is not None
            )
            self._labels.put(key, column)
        return column

    def _grow(self) -> None:
        def longer(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
            return np.concatenate([array, np.zeros_like(array)])

        self._rows = longer(self._rows)
        self._terminating = longer(self._terminating)
        for values in (self._namespaces, *self._labels.values()):
            values.ids = longer(values.ids)
        self._labels.weigh_again()


def _weight(_key: str, column: _Values) -> int:
    return column.ids.nbytes + _BYTES_BY_VALUE * len(column.values)
