"""The old name of :mod:`plugins.authoring`, from which users imported before ``berth`` existed.

All public names can be imported from here as before, also from the modules of the package
(``plugins.policy.nodes``). Each use raises a :class:`DeprecationWarning` that names the new import.
"""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from types import ModuleType
from typing import Any, Final

from plugins import authoring

GONE_IN: Final = "0.2.0"
"""The version that no longer has this module."""

_FOR_USERS: Final = frozenset({"Args", "Labels", "Node", "Nodes", "Pod"})
"""The names that users import from ``berth``, which imports ``plugins``, not the reverse."""

_NEW_NAMES: Final = {
    "adapter": "adapter",
    "answers": "checked_results",
    "args": "args",
    "guard": "guard",
    "node": "node",
    "nodes": "nodes",
    "other_nodes": "other_nodes",
    "own_columns": "own_columns",
    "pod": "pod",
    "questions": "view_readings",
    "user_class": "user_class",
}

__all__ = list(authoring.__all__)


class _OldModule(ModuleType):
    """A module with an old name. Its members are those of the module with the new name."""

    def __init__(self, name: str, new_name: str) -> None:
        super().__init__(name)
        self._new = import_module(new_name)

    def __getattr__(self, name: str) -> Any:
        return _member(self.__name__, self._new, name)


def __getattr__(name: str) -> Any:
    old_module = sys.modules.get(f"{__name__}.{name}")
    return _member(__name__, authoring, name) if old_module is None else old_module


def _member(old: str, new: ModuleType, name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {old!r} has no attribute {name!r}")
    member = getattr(new, name)
    source = "berth" if name in _FOR_USERS else new.__name__
    warnings.warn(
        f"{old}.{name} will be removed in version {GONE_IN}: write `from {source} import {name}`",
        DeprecationWarning,
        stacklevel=3,
    )
    return member


for _old, _new in _NEW_NAMES.items():
    # An import of a module below the name finds it here, once this one has been imported for it.
    sys.modules[f"{__name__}.{_old}"] = _OldModule(
        f"{__name__}.{_old}", f"{authoring.__name__}.{_new}"
    )
