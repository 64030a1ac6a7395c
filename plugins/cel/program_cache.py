"""Compiled expressions, kept by their text within a bound in bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import NamedTuple

from plugins.cel.errors import CompileError
from plugins.cel.program import Program, compile_expression

DEFAULT_MAX_BYTES = 64 << 20
"""About 1200 selectors of the usual length, as their sizes are bounds."""


class CacheStatistics(NamedTuple):
    """What the cache holds, and how often it had what was asked for."""

    programs: int
    bytes: int
    hits: int
    misses: int
    evictions: int


class ProgramCache:
    """The most recently used programs; texts that do not compile are remembered as well.

    *Concurrency*: thread-safe. Two threads may compile one text at the same time.
    """

    def __init__(self, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._found: OrderedDict[str, Program | str] = OrderedDict()
        self._bytes = 0
        self._hits = 0
        self._misses = 0
        self._evictions = 0

    def get(self, text: str) -> Program:
        """Return the program of the expression, compiled now or earlier.

        Raises
        ------
        CompileError
            As :func:`compile_expression`, each time.
        """
        with self._lock:
            found = self._found.get(text)
            if found is not None:
                self._found.move_to_end(text)
                self._hits += 1
            else:
                self._misses += 1
        if found is None:
            try:
                found = compile_expression(text)
            except CompileError as error:
                found = str(error)
            self._keep(text, found)
        if isinstance(found, str):
            raise CompileError(found)
        return found

    def statistics(self) -> CacheStatistics:
        """Return the counts of this moment."""
        with self._lock:
            return CacheStatistics(
                len(self._found), self._bytes, self._hits, self._misses, self._evictions
            )

    def _keep(self, text: str, found: Program | str) -> None:
        with self._lock:
            if text not in self._found:
                self._bytes += _size(text, found)
            self._found[text] = found
            self._found.move_to_end(text)
            while self._bytes > self._max_bytes:
                oldest, dropped = self._found.popitem(last=False)
                self._bytes -= _size(oldest, dropped)
                self._evictions += 1


def _size(text: str, found: Program | str) -> int:
    if isinstance(found, str):
        return _ENTRY_BYTES + 4 * (len(text) + len(found))
    return _ENTRY_BYTES + found.bytes


_ENTRY_BYTES = 512
