"""The labels of namespaces: they decide which pods a namespaceSelector reaches."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from cache.kept_annotations import EMPTY_MAP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cache.label_selectors import Selector
    from cache.objects import Namespace

MAX_REMEMBERED: Final = 256
"""More than the distinct namespace selectors among all affinity terms of a cluster."""


class Namespaces:
    """All namespaces by name.

    Notes
    -----
    *Concurrency*: thread-safe; written from the I/O loop, read by the scheduling thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._labels: dict[str, Mapping[str, str]] = {}
        self._matching: dict[Selector, frozenset[str]] = {}

    def changed(self, old: Namespace | None, new: Namespace | None) -> None:
        """Take over a namespace: ``new`` is None for one that is gone."""
        with self._lock:
            if new is None:
                if old is not None and self._labels.pop(old.metadata.name, None) is not None:
                    self._matching.clear()
                return
            name, labels = new.metadata.name, new.metadata.labels
            if self._labels.get(name) != labels:
                self._labels[name] = labels
                self._matching.clear()

    def labels_of(self, name: str) -> Mapping[str, str]:
        """Return the labels of a namespace; none for one that is not known."""
        with self._lock:
            return self._labels.get(name, EMPTY_MAP)

    def matching(self, selector: Selector) -> frozenset[str]:
        """Return the names of all known namespaces whose labels match.

        *Cost*: proportional to the namespaces when a selector is seen for the first time or one
        of them changed, else constant.
        """
        with self._lock:
            known = self._matching.get(selector)
            if known is None:
                if len(self._matching) >= MAX_REMEMBERED:
                    self._matching.clear()
                known = frozenset(
                    name for name, labels in self._labels.items() if selector.matches(labels)
                )
                self._matching[selector] = known
            return known

    def __len__(self) -> int:
        return len(self._labels)
