"""Who imports whom, read from the files without running them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tests.house.source import Module

Graph: TypeAlias = "dict[str, set[str]]"
"""By each node the nodes to which an edge leads."""


class Import(NamedTuple):
    """One module imports another, both of ours.

    Parameters
    ----------
    only_for_types
        Every such import stands under ``if TYPE_CHECKING``.
    """

    importer: str
    imported: str
    only_for_types: bool

    def __str__(self) -> str:
        """Return the import as an arrow."""
        return f"{self.importer} -> {self.imported}"


def imports_of(modules: Mapping[str, Module]) -> tuple[Import, ...]:
    """Return the imports between modules, sorted, each pair once."""
    for_types: dict[tuple[str, str], bool] = {}
    for module in modules.values():
        for target, only_for_types in _targets(module, modules):
            if target != module.name:
                pair = (module.name, target)
                for_types[pair] = for_types.get(pair, True) and only_for_types
    return tuple(sorted(Import(*pair, only) for pair, only in for_types.items()))


def room_of(module: Module) -> str:
    """Return the room of a module.

    A room is a folder. At the top of ``cache``, ``plugins`` and ``scheduler`` each file is a room
    by itself: these folders are the house, and what all plugins share lies beside them.
    """
    return module.folder if "." in module.folder else module.name


def rooms_graph(
    modules: Mapping[str, Module], imports: Iterable[Import], *, types_too: bool = True
) -> Graph:
    """Return which rooms import which other rooms."""
    graph: Graph = {room_of(module): set() for module in modules.values()}
    for each in imports:
        importer, imported = (room_of(modules[name]) for name in each[:2])
        if importer != imported and (types_too or not each.only_for_types):
            graph[importer].add(imported)
    return graph


def _targets(module: Module, modules: Mapping[str, Module]) -> Iterator[tuple[str, bool]]:
    for node, only_for_types in _import_statements(module.tree, only_for_types=False):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            start = _start_of(node, module)
            inner = (f"{start}.{alias.name}" for alias in node.names)
            names = [name if name in modules else start for name in inner]
        yield from ((name, only_for_types) for name in names if name in modules)


def _import_statements(
    node: ast.AST, *, only_for_types: bool
) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child, only_for_types
        elif isinstance(child, ast.If) and _asks_for_types(child.test):
            body, other = (ast.Module(part, []) for part in (child.body, child.orelse))
            yield from _import_statements(body, only_for_types=True)
            yield from _import_statements(other, only_for_types=only_for_types)
        else:
            yield from _import_statements(child, only_for_types=only_for_types)


def _asks_for_types(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name == "TYPE_CHECKING"


def _start_of(node: ast.ImportFrom, module: Module) -> str:
    """Return from which package or module names are imported."""
    if not node.level:
        return node.module or ""
    parts = module.folder.split(".")
    parts = parts[: len(parts) - node.level + 1]
    return ".".join([*parts, node.module] if node.module else parts)
