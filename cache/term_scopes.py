"""The namespaces that affinity terms select, each distinct scope once.

The scope of a term is its list of namespaces and its namespace selector. Thousands of terms have
one of a few scopes, so that a pod's namespace is compared with each scope once, and again only
when a scope is added or removed or the namespace is relabelled.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final

import numpy as np

from cache.interning import Interner

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from cache.affinity_terms import AffinityTerm
    from cache.label_selectors import Selector

MAX_REMEMBERED_BYTES: Final = 4 * 2**20
"""Bytes of remembered answers: a byte for each scope and namespace that was asked about."""

_ENTRY_BYTES: Final = 400
"""What an answer takes besides: two entries of dicts, an array, a tuple."""


class Reach:
    """The scopes that contain a namespace.

    Attributes
    ----------
    token
        The same number for the same scopes, another number for others.
    mask
        bool (number of scope ids,), read-only.
    """

    __slots__ = ("mask", "token")

    def __init__(self, token: int, mask: npt.NDArray[np.bool_]) -> None:
        self.token = token
        self.mask = mask


class TermScopes:
    """The distinct scopes of terms, by small integers.

    Notes
    -----
    *Concurrency*: confined to the thread of the columns it belongs to.
    """

    def __init__(self) -> None:
        self._scopes: Interner[tuple[frozenset[str], Selector]] = Interner()
        self._by_name: dict[str, set[int]] = {}
        self._selecting: dict[int, Selector] = {}
        self._known: dict[str, tuple[Mapping[str, str], Reach]] = {}
        self._reaches: dict[bytes, Reach] = {}
        self._tokens = count()

    def acquire(self, term: AffinityTerm) -> int:
        """Return the id of a term's scope, and count one more term with it."""
        scope = (term.namespaces, term.namespace_selector)
        is_new = scope not in self._scopes
        scope_id = self._scopes.acquire(scope)
        if is_new:
            self._forget_reaches()
            for name in term.namespaces:
                self._by_name.setdefault(name, set()).add(scope_id)
            if not term.namespace_selector.nothing:
                self._selecting[scope_id] = term.namespace_selector
        return scope_id

    def release(self, scope_id: int) -> None:
        """Count one term less with a scope; without terms the scope is dropped."""
        scope = self._scopes.value(scope_id)
        self._scopes.release(scope_id)
        if scope in self._scopes:
            return
        self._forget_reaches()
        for name in scope[0]:
            ids = self._by_name[name]
            ids.discard(scope_id)
            if not ids:
                del self._by_name[name]
        self._selecting.pop(scope_id, None)

    def reach(self, namespace: str, labels: Mapping[str, str]) -> Reach:
        """Return the scopes that contain a namespace with these labels.

        *Cost*: a look-up for a namespace that was asked about since scopes last came or went; else
        that of evaluating each distinct namespace selector.
        """
        known = self._known.get(namespace)
        if known is not None and (known[0] is labels or known[0] == labels):
            return known[1]
        mask = np.zeros(self._scopes.capacity, dtype=np.bool_)
        for scope_id in self._by_name.get(namespace, ()):
            mask[scope_id] = True
        for scope_id, selector in self._selecting.items():
            if selector.matches(labels):
                mask[scope_id] = True
        if (len(self._known) + 1) * (len(mask) + _ENTRY_BYTES) > MAX_REMEMBERED_BYTES:
            self._forget_reaches()
        key = mask.tobytes()
        reach = self._reaches.get(key)
        if reach is None:
            mask.flags.writeable = False
            reach = self._reaches[key] = Reach(next(self._tokens), mask)
        self._known[namespace] = labels, reach
        return reach

    def _forget_reaches(self) -> None:
        self._known.clear()
        self._reaches.clear()
