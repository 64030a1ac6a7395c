"""A group: one distinct affinity term, the pods that have it and the pods that it may select."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from cache.label_selectors import IN
from cache.value import Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    import numpy.typing as npt

    from cache.affinity_terms import AffinityTerm, TermKind

GroupKey: TypeAlias = "tuple[TermKind, int, AffinityTerm]"


class TermGroup:
    """A distinct term, and the number of times that pods of each node have it.

    Attributes
    ----------
    key
        What it is: the next three together.
    kind, weight, term
        What the term is for, the weight of a preferred one (0 of a required one), and the term.
    label
        A label that a pod must have for the term to mean it; None when there is no such label.
    rows
        How often pods of each row have the term; a row without such pods is absent.
    """

    __slots__ = ("column", "key", "kind", "label", "rows", "term", "weight")

    def __init__(self, key: GroupKey) -> None:
        self.key = key
        self.kind, self.weight, self.term = key
        self.label = _demanded_label(key[2])
        self.rows: dict[int, int] = {}
        self.column: npt.NDArray[np.int64] | None = None

    def add(self, row: int, change: int) -> None:
        """Change the count of a row."""
        count = self.rows.get(row, 0) + change
        if count:
            self.rows[row] = count
        else:
            del self.rows[row]
        if self.column is not None and row < len(self.column):
            self.column[row] = count


class AskedPod(Value, frozen=True):
    """The pod that terms may select."""

    namespace: str
    labels: Mapping[str, str]
    namespace_labels: Mapping[str, str]

    def is_meant_by(self, group: TermGroup) -> bool:
        """Return whether a term selects the pod."""
        return group.term.matches(self.namespace, self.labels, self.namespace_labels)


def _demanded_label(term: AffinityTerm) -> tuple[str, str] | None:
    for requirement in term.selector.requirements:
        if requirement.operator == IN and len(requirement.values) == 1:
            return requirement.key, next(iter(requirement.values))
    return None
