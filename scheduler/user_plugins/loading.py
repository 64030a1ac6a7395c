"""Loads the plugin classes of a source: its code is run once, in its own module."""

from __future__ import annotations

import ast
import linecache
import re
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Final

from plugins.authoring import PolicyClassError, adapt, is_policy, policy_name
from plugins.framework.interfaces import Plugin
from scheduler.user_plugins.installed import GROUP, installed
from scheduler.user_plugins.plugin_errors import line_in, named

if TYPE_CHECKING:
    from scheduler.user_plugins.plugin_source import PluginSource

_OLD_IMPORT: Final = re.compile(r"\bplugins\s*\.\s*policy\b|\bfrom\s+plugins\s+import\b")

MODULES: Final = "berth_user_plugins"
"""The package name of modules that are loaded from text. No module of Berth has this name."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


class PluginLoadError(Exception):
    """Code cannot be used; the message is a sentence that names file and line.

    Parameters
    ----------
    line
        The line of the error in the source, counted from 1; 0 if it is not known.
    why
        The reason. A reason that already names the file, as a trial's does, is not prefixed.
    """

    def __init__(self, source: PluginSource, line: int, why: str) -> None:
        where = f"{source.file}, line {line}" if line else source.file
        super().__init__(why if why.startswith(source.file) else f"{where}: {why}")


def load_source(source: PluginSource) -> dict[str, type]:
    """Return the plugin classes of a source by name: the user's classes, not yet adapted.

    Every call creates new classes, except for an entry point, whose module is imported once.
    Classes from earlier calls stay unchanged.

    A text provides every public class that it defines and that has a filter or a score; an entry
    point provides the class, or the classes of the module, that it names. Only an entry point may
    also name a :class:`plugins.framework.interfaces.Plugin`.

    Raises
    ------
    PluginLoadError
        When the code cannot be compiled or run, has no plugin, or has an invalid plugin class.

    Notes
    -----
    *Concurrency*: any thread except the scheduling thread: the code determines how long it takes.
    """
    if source.text is None:
        classes = _of_entry_point(source)
    else:
        classes = _of_module(_module_of_text(source, source.text))
    if not classes:
        raise PluginLoadError(
            source, 0, "has no plugin: a class with filter, filter_one, score or score_one"
        )
    found: dict[str, type] = {}
    for cls in classes:
        _check(source, cls)
        name = name_of(cls)
        if name in found:
            raise PluginLoadError(source, line_of(cls), f"there are two plugins named {name}")
        found[name] = cls
    return found


def forget_source(source: PluginSource) -> None:
    """Remove the module of a text; classes that are still referenced keep working."""
    sys.modules.pop(_module_name(source), None)
    lines = linecache.getlines(source.file)
    if source.text is not None and "".join(lines) == source.text:
        # Otherwise the entries belong to a newer version.
        linecache.cache.pop(source.file, None)


def name_of(cls: type) -> str:
    """Return the name by which profiles know a class, the user's or the framework's."""
    return cls.name if issubclass(cls, Plugin) else policy_name(cls)


def line_of(cls: type) -> int:
    """Return the line of a class's first method, 0 if it has none."""
    lines = [
        member.__code__.co_firstlineno
        for member in vars(cls).values()
        if hasattr(member, "__code__")
    ]
    return min(lines, default=0)


def line_of_old_import(cls: type) -> int:
    """Return the line on which the module of a class imports :mod:`plugins.policy`.

    The line is 0 if there is no such import, or no source text.
    """
    module = sys.modules.get(cls.__module__)
    lines = linecache.getlines(getattr(module, "__file__", None) or "")
    text = "".join(lines)
    if _OLD_IMPORT.search(text) is None:
        return 0  # to parse a module takes milliseconds, and pods wait for it
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):  # a module that is no Python text
        return 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        if any(f"{name}.".startswith("plugins.policy.") for name in names):
            return node.lineno
    return 0


def _check(source: PluginSource, cls: type) -> None:
    if not issubclass(cls, Plugin):
        try:
            adapt(cls)
        except (PolicyClassError, TypeError) as error:
            raise PluginLoadError(source, line_of(cls), str(error)) from error
    if _NAME.fullmatch(name_of(cls)) is None:
        why = f"{name_of(cls)!r} cannot be a plugin's name: letters, digits, '.', '_' and '-'"
        raise PluginLoadError(source, line_of(cls), why)


def _module_of_text(source: PluginSource, text: str) -> ModuleType:
    try:
        code = compile(text, source.file, "exec", dont_inherit=True)
    except SyntaxError as error:
        raise PluginLoadError(source, error.lineno or 0, f"{error.msg}") from error
    except ValueError as error:
        raise PluginLoadError(source, 0, str(error)) from error
    module = ModuleType(_module_name(source))
    module.__file__ = source.file
    # Annotations are looked up through sys.modules, lines of tracebacks through linecache.
    sys.modules[module.__name__] = module
    lines = text.splitlines(keepends=True)
    linecache.cache[source.file] = (len(text), None, lines, source.file)
    try:
        exec(code, module.__dict__)  # noqa: S102 - to run the user's code is what is wanted
    except BaseException as error:
        sys.modules.pop(module.__name__, None)
        if isinstance(error, KeyboardInterrupt):
            raise
        raise PluginLoadError(source, line_in(source.file, error), named(error)) from error
    return module


def _of_module(module: ModuleType) -> list[type]:
    return [
        member
        for name, member in vars(module).items()
        if is_policy(member) and member.__module__ == module.__name__ and not name.startswith("_")
    ]


def _of_entry_point(source: PluginSource) -> list[type]:
    found = [each.entry_point for each in installed() if each.entry_point.name == source.name]
    if not found:
        raise PluginLoadError(source, 0, f"is not installed in the group {GROUP}")
    try:
        loaded = found[0].load()
    except Exception as error:
        raise PluginLoadError(source, 0, f"{found[0].value}: {named(error)}") from error
    if isinstance(loaded, ModuleType):
        return _of_module(loaded)
    if is_policy(loaded) or (isinstance(loaded, type) and issubclass(loaded, Plugin)):
        return [loaded]
    raise PluginLoadError(source, 0, f"{found[0].value} is no class with a filter or a score")


def _module_name(source: PluginSource) -> str:
    stem = re.sub(r"\W", "_", source.stem)
    return f"{MODULES}.{stem}_{source.digest[:16]}"
