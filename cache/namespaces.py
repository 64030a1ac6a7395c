"""The labels of namespaces, which decide the namespaces that a namespaceSelector matches."""

from __future__ import annotations

import threading
from sys import getsizeof
from typing import TYPE_CHECKING, Final

from cache.byte_bounded import ByteBounded, deep_bytes
from cache.kept_annotations import EMPTY_MAP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cache.label_selectors import Selector
    from cache.locks import MakeLock
    from cache.objects import Namespace

MAX_REMEMBERED_BYTES: Final = 4 * 2**20
"""More than the distinct namespace selectors among all affinity terms of a cluster: a hundred that
reach a thousand namespaces each, thousands that reach one."""


class Namespaces:
    """All namespaces by name.

    Notes
    -----
    *Concurrency*: thread-safe; written from the I/O loop, read by the scheduling thread.
    """

    def __init__(self, make_lock: MakeLock = threading.Lock) -> None:
        self._lock = make_lock()
        self._labels: dict[str, Mapping[str, str]] = {}
        self._matching: ByteBounded[Selector, frozenset[str]] = ByteBounded(
            MAX_REMEMBERED_BYTES, _weight
        )

    def changed(self, old: Namespace | None, new: Namespace | None) -> None:
        """Store a namespace; ``new`` is None for a deleted one."""
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
        """Return the labels of a namespace; an empty mapping for an unknown one."""
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
                known = frozenset(
                    name for name, labels in self._labels.items() if selector.matches(labels)
                )
                self._matching.put(selector, known)
            return known


def _weight(selector: Selector, names: frozenset[str]) -> int:
    # The names belong to the namespaces.
    return getsizeof(names) + deep_bytes(selector, at_most=MAX_REMEMBERED_BYTES)
