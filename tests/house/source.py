"""The Python files of a checkout, each read and parsed once."""

from __future__ import annotations

import ast
import io
import tokenize
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PACKAGES: Final = ("cache", "plugins", "scheduler")

_NO_CODE: Final = frozenset(
    {
        tokenize.COMMENT,
        tokenize.DEDENT,
        tokenize.ENCODING,
        tokenize.ENDMARKER,
        tokenize.INDENT,
        tokenize.NEWLINE,
        tokenize.NL,
    }
)

_FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
_Scope: TypeAlias = ast.Module | ast.ClassDef | _FunctionNode


@dataclass(frozen=True)
class Function:
    """A function or method.

    Parameters
    ----------
    name
        With the names of what it stands in: ``Queue.pop``.
    lines
        From its ``def`` to its last line, comments and blank lines included, decorators and
        docstring excluded.
    parameters
        How many, ``self`` and ``cls`` included.
    """

    module: str
    name: str
    lines: int
    parameters: int


@dataclass(frozen=True)
class Module:
    """One file.

    Parameters
    ----------
    name
        The dotted name; a package has that of its folder.
    """

    name: str
    text: str = field(repr=False)
    is_package: bool = False

    @property
    def folder(self) -> str:
        """The dotted name of the folder in which the file lies."""
        return self.name if self.is_package else self.name.rpartition(".")[0]

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed file."""
        return ast.parse(self.text)

    @cached_property
    def num_lines(self) -> int:
        """All lines of the file."""
        return len(self.text.splitlines())

    @cached_property
    def docstring_lines(self) -> frozenset[int]:
        """The numbers of the lines of strings that stand alone.

        These are the docstrings of modules, classes and functions, and those below attributes.
        """
        found: set[int] = set()
        for node in ast.walk(self.tree):
            if _is_docstring(node):
                found.update(_lines_of(node))
        return frozenset(found)

    @cached_property
    def code_lines(self) -> frozenset[int]:
        """The numbers of the lines that are no docstring, comment or blank line."""
        found: set[int] = set()
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if token.type not in _NO_CODE:
                found.update(range(token.start[0], token.end[0] + 1))
        return frozenset(found - self.docstring_lines)

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """All functions, those inside of classes and of other functions included."""
        return tuple(self._functions_of(self.tree, ""))

    def _functions_of(self, scope: _Scope, prefix: str) -> Iterator[Function]:
        for node in _inner_scopes(scope):
            name = prefix + node.name
            if not isinstance(node, ast.ClassDef):
                yield self._function(node, name)
            yield from self._functions_of(node, f"{name}.")

    def _function(self, node: _FunctionNode, name: str) -> Function:
        lines = len(_lines_of(node))
        if _is_docstring(node.body[0]):
            lines -= len(_lines_of(node.body[0]))
        given = node.args
        named = len(given.posonlyargs) + len(given.args) + len(given.kwonlyargs)
        starred = (given.vararg is not None) + (given.kwarg is not None)
        return Function(self.name, name, lines, named + starred)


def read_modules(root: Path) -> dict[str, Module]:
    """Return all modules of the three packages below a folder, by name."""
    found = {}
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            is_package = parts[-1] == "__init__"
            name = ".".join(parts[:-1] if is_package else parts)
            found[name] = Module(name, path.read_text(encoding="utf-8"), is_package)
    return found


def _inner_scopes(scope: ast.AST) -> Iterator[ast.ClassDef | _FunctionNode]:
    """Yield the classes and functions of a scope, those in an ``if`` or ``try`` included."""
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node
        else:
            yield from _inner_scopes(node)


def _is_docstring(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _lines_of(node: ast.AST) -> range:
    return range(node.lineno, node.end_lineno + 1)  # type: ignore[attr-defined]
