"""Evaluation of thousands of queries about pods in one pass over the pods.

A pod may have thousands of affinity terms, each with a selector of its own and each selector with
label keys of its own. A column for every key would cost a pass over all pods for each, and
would evict the columns that others use. This module reads all pods once, for all keys. The result
serves one call and is then dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from cache.label_selectors import DOES_NOT_EXIST, EXISTS, IN, NOT_IN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from cache.label_selectors import Requirement
    from cache.pod_table import PodQuery, PodTable

    Slots = npt.NDArray[np.intp]
    Within = tuple[frozenset[str] | None, bool]

_POSITIVE: Final = (IN, EXISTS)

_PODS_BETWEEN_CHECKS: Final = 4096
"""Some 2 ms."""

_FLUSH_AT: Final = 1 << 18
"""Pods that are gathered before they are added up: 4 MiB."""

_MAX_MASKS: Final = 32
"""Sets of namespaces whose pods are remembered, a byte for each pod."""

_NO_SLOTS: Final = np.empty(0, dtype=np.intp)


def weigh_pods(
    table: PodTable, wanted: Mapping[PodQuery, int], num_rows: int, check: Callable[[], None]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return two int64 (num_rows,): the pods of each row that queries match, and their weights.

    A pod counts once for each query that matches it, with that query's weight.

    Parameters
    ----------
    check
        Called between queries, and at intervals between pods; its exceptions propagate.

    *Cost*: 0.3 us for each pod of the table, some 10 us for each query and less than a
    microsecond for each pod that matches one, or that a query of nothing but ``NotIn`` and
    ``DoesNotExist`` does not match.
    """
    keys = {each.key for query in wanted for each in query.selector.requirements}
    labels = _slots_by_label(table, keys, check)
    weighing = _Weighing(table, labels, num_rows)
    for query, weight in wanted.items():
        check()
        if not query.nothing:
            weighing.add(query, weight)
    return weighing.totals(check)


def _slots_by_label(
    table: PodTable, keys: set[str], check: Callable[[], None]
) -> dict[str, dict[str, Slots]]:
    """Return the slots of pods by label key and value, for these keys."""
    found: dict[str, dict[str, list[int]]] = {}
    for slot, info in enumerate(table.infos):
        if not slot % _PODS_BETWEEN_CHECKS:
            check()
        if info is None:
            continue
        labels = info.pod.metadata.labels
        for key in keys & labels.keys():
            found.setdefault(key, {}).setdefault(labels[key], []).append(slot)
    return {
        key: {value: np.array(slots, dtype=np.intp) for value, slots in values.items()}
        for key, values in found.items()
    }


class _Weighing:
    """Adds up the pods that queries match."""

    def __init__(self, table: PodTable, labels: dict[str, dict[str, Slots]], num_rows: int) -> None:
        self._table = table
        self._labels = labels
        self._counts = np.zeros(num_rows, dtype=np.int64)
        self._worth = np.zeros(num_rows, dtype=np.int64)
        self._masks: dict[Within, npt.NDArray[np.bool_]] = {}
        self._everybody: dict[Within, tuple[int, int, PodQuery]] = {}
        self._slots: list[Slots] = []
        self._signs: list[int] = []
        self._weights: list[int] = []
        self._gathered = 0

    def add(self, query: PodQuery, weight: int) -> None:
        positive = [each for each in query.selector.requirements if each.operator in _POSITIVE]
        others = [each for each in query.selector.requirements if each.operator not in _POSITIVE]
        mask = self._mask(query)
        if positive:
            slots = _joined(min((self._parts(each) for each in positive), key=_length))
            slots = slots[mask[slots]]
            if len(positive) > 1 or others:
                infos, matches = self._table.infos, query.matches
                slots = np.array(
                    [
                        slot
                        for slot in slots.tolist()
                        if (info := infos[slot]) is not None and matches(info.pod)
                    ],
                    dtype=np.intp,
                )
            self._gather(slots, 1, weight)
            return
        # All pods there, less those that a label rules out.
        number, worth, _ = self._everybody.get(_within(query), (0, 0, query))
        self._everybody[_within(query)] = number + 1, worth + weight, query
        if others:
            # Requirements may name the same value thousands of times: its pods are taken once.
            parts = {id(part): part for each in others for part in self._parts(each)}
            slots = _joined(list(parts.values()))
            slots = np.unique(slots) if len(parts) > 1 else slots
            self._gather(slots[mask[slots]], -1, -weight)

    def totals(
        self, check: Callable[[], None]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        self._flush()
        for number, worth, query in self._everybody.values():
            check()
            rows = self._table.rows[self._mask(query)]
            everybody = np.bincount(rows, minlength=len(self._counts)).astype(np.int64, copy=False)
            self._counts += everybody * number
            self._worth += everybody * worth
        return self._counts, self._worth

    def _parts(self, requirement: Requirement) -> list[Slots]:
        """Return the pods that have the label, with one of the values if it names any."""
        values = self._labels.get(requirement.key)
        if values is None:
            return []
        if requirement.operator in (EXISTS, DOES_NOT_EXIST):
            return list(values.values())
        if requirement.operator in (IN, NOT_IN):
            return [values[each] for each in requirement.values if each in values]
        raise ValueError(f"{requirement} cannot be asked of a pod")

    def _mask(self, query: PodQuery) -> npt.NDArray[np.bool_]:
        """Return bool (number of slots,): the pods of the query's namespaces."""
        key = _within(query)
        mask = self._masks.get(key)
        if mask is None:
            mask = self._table.within(query)
            if len(self._masks) >= _MAX_MASKS:
                self._masks.clear()
            self._masks[key] = mask
        return mask

    def _gather(self, slots: Slots, sign: int, weight: int) -> None:
        if len(slots):
            self._slots.append(slots)
            self._signs.append(sign)
            self._weights.append(weight)
            self._gathered += len(slots)
            if self._gathered >= _FLUSH_AT:
                self._flush()

    def _flush(self) -> None:
        if not self._slots:
            return
        rows = self._table.rows[np.concatenate(self._slots)]
        lengths = [len(slots) for slots in self._slots]
        num_rows = len(self._counts)
        for totals, amounts in ((self._counts, self._signs), (self._worth, self._weights)):
            # Exact: weights of 100 times some millions of pods stay far below 2**53.
            summed = np.bincount(rows, np.repeat(amounts, lengths), minlength=num_rows)
            totals += summed.astype(np.int64)
        self._slots, self._signs, self._weights, self._gathered = [], [], [], 0


def _within(query: PodQuery) -> Within:
    return query.namespaces, query.with_terminating


def _length(parts: list[Slots]) -> int:
    return sum(map(len, parts))


def _joined(parts: list[Slots]) -> Slots:
    return np.concatenate(parts) if parts else _NO_SLOTS
