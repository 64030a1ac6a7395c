"""The inter-pod affinity terms of the pods that run, each distinct one once.

A thousand pods of one deployment have the same terms. So a pod that comes is held against each
distinct term once, and of those only against the ones that demand a label which it has.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

import numpy as np

from cache.affinity_terms import TermKind, pod_terms
from cache.label_selectors import IN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from cache.affinity_terms import AffinityTerm
    from cache.pod_info import PodInfo

MAX_DENSE: Final = 128
"""Groups that keep a column besides their counts by row; more are asked for in few clusters."""

_GroupKey = tuple[TermKind, int, "AffinityTerm"]


class TermGroup:
    """A distinct term, and how often pods of each node have it.

    Attributes
    ----------
    kind, weight, term
        What it is; the weight of a required term is 0.
    rows
        How often pods of each row have the term; a row without such pods is absent.
    """

    __slots__ = ("column", "kind", "rows", "term", "weight")

    def __init__(self, kind: TermKind, weight: int, term: AffinityTerm) -> None:
        self.kind = kind
        self.weight = weight
        self.term = term
        self.rows: dict[int, int] = {}
        self.column: npt.NDArray[np.int64] | None = None

    def add(self, row: int, sign: int) -> None:
        """Count a pod of a row in or out."""
        count = self.rows.get(row, 0) + sign
        if count:
            self.rows[row] = count
        else:
            del self.rows[row]
        if self.column is not None:
            if row >= len(self.column):
                more = np.zeros(row + 1 - len(self.column), dtype=np.int64)
                self.column = np.concatenate([self.column, more])
            self.column[row] = count


class TermGroups:
    """All groups, by kind and by a label that they demand.

    Notes
    -----
    *Concurrency*: confined to the thread of the columns it belongs to.
    """

    def __init__(self) -> None:
        self._groups: dict[_GroupKey, TermGroup] = {}
        self._by_label: dict[TermKind, dict[tuple[str, str], dict[_GroupKey, TermGroup]]] = {
            kind: {} for kind in TermKind
        }
        self._without_label: dict[TermKind, dict[_GroupKey, TermGroup]] = {
            kind: {} for kind in TermKind
        }
        self._held: list[dict[str, PodInfo]] = []
        self._dense: OrderedDict[_GroupKey, TermGroup] = OrderedDict()

    def __len__(self) -> int:
        """Return the number of distinct terms."""
        return len(self._groups)

    def groups(self) -> Iterable[TermGroup]:
        """Iterate over all groups."""
        return self._groups.values()

    def set_row(self, row: int, pods: Mapping[str, PodInfo]) -> None:
        """Take over which pods with affinity a row has now."""
        while len(self._held) <= row:
            self._held.append({})
        held = self._held[row]
        if not held and not pods:
            return
        for info in [info for uid, info in pods.items() if held.get(uid) is not info]:
            old = held.get(info.uid)
            held[info.uid] = info
            if old is not None:
                if _same_terms(old, info):
                    continue
                self._count(old, row, -1)
            self._count(info, row, 1)
        if len(held) > len(pods):
            for uid in [uid for uid in held if uid not in pods]:
                self._count(held.pop(uid), row, -1)

    def matching(
        self,
        kind: TermKind,
        namespace: str,
        labels: Mapping[str, str],
        namespace_labels: Mapping[str, str],
    ) -> Sequence[TermGroup]:
        """Return the groups of a kind whose term means a pod of a namespace.

        *Cost*: proportional to the distinct terms that demand one of the pod's labels, and to
        those that demand no particular label.
        """
        by_label = self._by_label[kind]
        unlabelled = self._without_label[kind].values()
        found = [
            group for group in unlabelled if group.term.matches(namespace, labels, namespace_labels)
        ]
        if by_label:
            for label in labels.items():
                candidates = by_label.get(label)
                if candidates is not None:
                    found += [
                        group
                        for group in candidates.values()
                        if group.term.matches(namespace, labels, namespace_labels)
                    ]
        return found

    def column(self, group: TermGroup, num_rows: int) -> npt.NDArray[np.int64]:
        """Return int64 (num_rows,), read-only: how often pods of each row have the term."""
        key = (group.kind, group.weight, group.term)
        column = group.column
        if column is None or len(column) < num_rows:
            column = np.zeros(num_rows, dtype=np.int64)
            count = len(group.rows)
            rows = np.fromiter(group.rows, np.intp, count)
            column[rows] = np.fromiter(group.rows.values(), np.int64, count)
            group.column = column
            self._dense[key] = group
            if len(self._dense) > MAX_DENSE:
                self._dense.popitem(last=False)[1].column = None
        self._dense.move_to_end(key)
        view = column[:num_rows]
        view.flags.writeable = False
        return view

    def _count(self, info: PodInfo, row: int, sign: int) -> None:
        for key in pod_terms(info.pod):
            group = self._groups.get(key)
            if group is None:
                group = self._groups[key] = TermGroup(*key)
                self._file(key)[key] = group
            group.add(row, sign)
            if not group.rows:
                self._drop(key)

    def _file(self, key: _GroupKey) -> dict[_GroupKey, TermGroup]:
        """Return the drawer of a group: that of the first label that its term demands."""
        kind, _, term = key
        label = _demanded_label(term)
        if label is None:
            return self._without_label[kind]
        return self._by_label[kind].setdefault(label, {})

    def _drop(self, key: _GroupKey) -> None:
        del self._groups[key]
        self._dense.pop(key, None)
        drawer = self._file(key)
        del drawer[key]
        label = _demanded_label(key[2])
        if label is not None and not drawer:
            del self._by_label[key[0]][label]


def _demanded_label(term: AffinityTerm) -> tuple[str, str] | None:
    for requirement in term.selector.requirements:
        if requirement.operator == IN and len(requirement.values) == 1:
            return requirement.key, next(iter(requirement.values))
    return None


def _same_terms(old: PodInfo, new: PodInfo) -> bool:
    before, after = old.pod, new.pod
    return (
        before.metadata.namespace == after.metadata.namespace
        and before.spec.affinity == after.spec.affinity
    )
