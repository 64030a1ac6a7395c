"""Report the size of every table in the process.

A table that grows without a limit is one that was overlooked, so this module has no list of tables:
it visits everything that can be reached from the program's parts, and counts each container in an
attribute of ours under the name of its class and attribute.
"""

from __future__ import annotations

import contextlib
import sys
import weakref
from collections import deque
from functools import _lru_cache_wrapper
from types import CellType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from cache.byte_bounded import ByteBounded
from cache.value import PLAIN_VALUES

if TYPE_CHECKING:
    from collections.abc import Iterable

_OURS: Final = ("cache.", "plugins.", "scheduler.")
_SERIES: Final = (list, tuple, set, frozenset, deque)
_TRIES: Final = 10
_ROW: Final = (str, bytes, int, float, bool, type(None), msgspec.Struct)
"""Whatever holds one of these, and no plain value, holds rows of a table and no further tables."""

_PROXIES: Final = weakref.ProxyTypes
"""Not even their class can be asked for once what they stand for is gone; others hold that."""


def table_sizes(*roots: object) -> dict[str, dict[str, int]]:
    """Return tables, items and bytes by ``module.Class.attribute``.

    ``bounded`` are those of the items that are in a container with a limit: a ``deque`` or a
    remembering function that has one, or whatever is kept in a :class:`ByteBounded`.

    Parameters
    ----------
    roots
        Objects of ours from which all others can be reached.

    Notes
    -----
    The bytes are those of the containers, without what their items refer to.

    *Concurrency*: any thread; while others change a table its size may be the one before.

    *Cost*: a visit to each object of ours and to each container that holds some: a second or more
    in a large cluster. It keeps other threads waiting no longer than any Python code does.
    """
    census = _Census()
    census.visit([*roots, *_modules()])
    return census.sizes


class _Census:
    def __init__(self) -> None:
        self.sizes: dict[str, dict[str, int]] = {}
        self._seen: set[int] = set()

    def visit(self, waiting: list[Any]) -> None:
        """Count all tables that can be reached, and those behind a limit after all others."""
        limited = self._visit(waiting, is_bounded=False)
        self._visit(limited, is_bounded=True)

    def _visit(self, waiting: list[Any], *, is_bounded: bool) -> list[Any]:
        """Count what can be reached, and return what has a limit, which is not looked into yet."""
        seen = self._seen
        limited = []
        while waiting:
            value = waiting.pop()
            if type(value) in _PROXIES or isinstance(value, type) or _is_row(value):
                continue
            if id(value) in seen:
                continue
            if isinstance(value, ByteBounded) and not is_bounded:
                limited.append(value)
                continue
            seen.add(id(value))
            waiting += self._behind(value, is_bounded=is_bounded)
        return limited

    def _behind(self, value: Any, *, is_bounded: bool) -> list[Any]:
        """Return what can be reached from a value in one step."""
        if isinstance(value, dict):
            return _unless_rows(_copied(value.values()))
        if isinstance(value, _SERIES):
            return _unless_rows(_copied(value))
        if isinstance(value, MethodType):
            return [value.__self__]
        if isinstance(value, FunctionType):
            return [_content(cell) for cell in value.__closure__ or ()]
        kind = type(value)
        if not kind.__module__.startswith(_OURS):
            return []
        attributes = _attributes(value)
        owner = "" if kind is _Module else f"{kind.__module__}.{kind.__qualname__}."
        for name, held in attributes.items():
            if type(held) in _PROXIES:
                continue
            self._count(owner + name, held, is_bounded=is_bounded)
        return list(attributes.values())

    def _count(self, name: str, held: Any, *, is_bounded: bool) -> None:
        if isinstance(held, np.ndarray):
            items, size = held.size, held.nbytes
        elif isinstance(held, (dict, *_SERIES)) and not isinstance(held, tuple):
            items, size = len(held), sys.getsizeof(held)
        elif isinstance(held, _lru_cache_wrapper):
            items, size = held.cache_info().currsize, 0
        else:
            return
        sizes = self.sizes.setdefault(name, {"tables": 0, "items": 0, "bytes": 0, "bounded": 0})
        sizes["tables"] += 1
        sizes["items"] += items
        sizes["bytes"] += size
        if is_bounded or _has_limit(held):
            sizes["bounded"] += items


def _has_limit(held: Any) -> bool:
    if isinstance(held, deque):
        return held.maxlen is not None
    return isinstance(held, _lru_cache_wrapper) and held.cache_parameters()["maxsize"] is not None


class _Module:
    """The tables that a module holds, as attributes."""

    def __init__(self, name: str, tables: dict[str, Any]) -> None:
        self.__dict__.update({f"{name}.{key}": value for key, value in tables.items()})


def _modules() -> list[_Module]:
    """Return the tables that stand in modules of ours, results kept by functions included."""
    return [
        _Module(name, {k: v for k, v in _copied(vars(module).items()) if _is_table_of(name, k, v)})
        for name, module in _copied(sys.modules.items())
        if name.startswith(_OURS)
    ]


def _is_table_of(module: str, key: str, value: Any) -> bool:
    if isinstance(value, _lru_cache_wrapper):
        return value.__module__ == module
    return isinstance(value, (dict, list, set, deque)) and not key.startswith("__")


def _copied(values: Iterable[Any]) -> list[Any]:
    """Return the items of a container, or none of one that other threads never leave alone.

    A copy is one step of the interpreter, unless it asks keys for their hash, as that of an
    ``OrderedDict`` does: meanwhile another thread may change the container.
    """
    for _ in range(_TRIES):
        with contextlib.suppress(RuntimeError):
            return list(values)
    return []


def _unless_rows(values: list[Any]) -> list[Any]:
    """Return the values of a container, or nothing when they are rows of a table."""
    if not values or type(values[0]) in _PROXIES:
        return values
    return [] if _is_row(values[0]) else values


def _is_row(value: Any) -> bool:
    return isinstance(value, _ROW) and not isinstance(value, PLAIN_VALUES)


def _attributes(value: Any) -> dict[str, Any]:
    attributes = dict(getattr(value, "__dict__", {}))
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(value, name):
                attributes[name] = getattr(value, name)
    return attributes


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None
