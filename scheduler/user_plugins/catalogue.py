"""The catalogue of all plugins that a profile may name: the registry's and users' plugins."""

from __future__ import annotations

import threading
from collections import OrderedDict
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

import structlog

from cache.value import Value
from plugins import names
from plugins.authoring import adapt
from plugins.framework.interfaces import Plugin
from plugins.policy import GONE_IN
from plugins.registry import PLUGINS
from scheduler.user_plugins.loading import (
    PluginLoadError,
    forget_source,
    line_of_old_import,
    load_source,
)
from scheduler.user_plugins.plugin_source import SOURCE_ATTRIBUTE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from plugins.authoring import Guard
    from scheduler.user_plugins.finding import Found
    from scheduler.user_plugins.plugin_source import PluginSource, SourceKind

log = structlog.get_logger(__name__)

Admit: TypeAlias = "Callable[[PluginSource], str]"
"""Runs the trial of a source before its code is used; returns the problems, or the empty text."""

GuardFor: TypeAlias = "Callable[[PluginSource, type], Guard]"
"""Creates the guard that wraps the calls into a user's class."""

Classes: TypeAlias = "Mapping[str, type[Plugin]]"

_TAKEN: Final = names.IN_TREE | PLUGINS.keys()
_ORDER: Final[tuple[SourceKind, ...]] = ("entry-point", "directory")
"""The precedence of kinds: of two plugins with one name, the first kind's is used."""

_MAX_KEPT: Final = 64
"""The number of sources of single profiles whose classes are kept: more than the number of
SchedulingProfiles with Python code. Unchanged code keeps its class when its profile changes."""


class _Entry(Value, frozen=True):
    """A current source: its latest version and its last good version."""

    latest: PluginSource
    problem: str
    good: PluginSource | None
    plugins: Classes


class PluginCatalogue:
    """The plugins by name. The catalogue changes while profiles run.

    If the code of a source cannot be used, the plugins of its last good version stay and a problem
    is recorded. When a source is removed, its plugins are removed; existing instances keep running.

    Parameters
    ----------
    admit
        Runs the trial of code before its first use; None for no trials.
    guard_for
        Creates the guard of each class; None for calls without containment.

    Notes
    -----
    *Concurrency*: thread-safe by one lock; readers get immutable values, replaced as a whole.
    Users' code is loaded in the caller's thread, which must not be the scheduling thread.
    """

    def __init__(self, admit: Admit | None = None, guard_for: GuardFor | None = None) -> None:
        self._admit = admit
        self._guard_for = guard_for
        self._lock = threading.Lock()
        self._entries: dict[SourceKind, dict[str, _Entry]] = {kind: {} for kind in _ORDER}
        self._unread: dict[SourceKind, Mapping[str, str]] = {}
        self._of_profiles: OrderedDict[PluginSource, Classes] = OrderedDict()
        self._callbacks: tuple[Callable[[frozenset[str]], None], ...] = ()
        self._plugins: Classes = PLUGINS
        self._sources: Mapping[str, PluginSource] = MappingProxyType({})
        self._problems: Mapping[str, str] = MappingProxyType({})

    @property
    def plugins(self) -> Classes:
        """All plugins by name. Immutable; a class stays the same while its code does."""
        return self._plugins

    @property
    def sources(self) -> Mapping[str, PluginSource]:
        """The source of each user's plugin by the plugin's name. Immutable."""
        return self._sources

    @property
    def problems(self) -> Mapping[str, str]:
        """The reasons why code is not used, by the name of its source. Immutable."""
        return self._problems

    def names_from(self, kind: SourceKind) -> tuple[str, ...]:
        """Return the names of the plugins from sources of a kind, sorted."""
        return tuple(sorted(name for name, source in self._sources.items() if source.kind == kind))

    def subscribe(self, callback: Callable[[frozenset[str]], None]) -> None:
        """Call ``callback`` with the names of plugins that were added, removed or changed.

        It is called without the lock, in the thread that made the change, and must not raise.
        """
        self._callbacks = (*self._callbacks, callback)

    def replace(self, kind: SourceKind, found: Found) -> frozenset[str]:
        """Replace all sources of one kind; return the plugins that were added, removed or changed.

        *Cost*: the trial and the execution of new code.
        """
        with self._lock:
            before = self._entries[kind]
            self._entries[kind] = {
                source.name: self._entry(source, before.get(source.name))
                for source in found.sources
            }
            self._unread[kind] = dict(found.problems)
            for entry in before.values():
                now = self._entries[kind].get(entry.latest.name)
                if entry.good is not None and (now is None or now.good != entry.good):
                    forget_source(entry.good)
            changed = self._publish()
        if changed and self._callbacks:
            # Without subscribers this is a command, whose output is for its user.
            log.info("plugins changed", plugins=sorted(changed), kind=kind)
            for callback in self._callbacks:
                callback(changed)
        return changed

    def load(self, sources: Iterable[PluginSource]) -> Classes:
        """Return the plugins of sources by name, for one profile only.

        The catalogue itself does not change. Plugins of an entry point are taken from it.

        Raises
        ------
        PluginLoadError
            When a source cannot be used.
        """
        found: dict[str, type[Plugin]] = {}
        with self._lock:
            for source in sources:
                installed = source.kind == "entry-point"
                plugins = self._installed(source) if installed else self._of_profile(source)
                for name, plugin in plugins.items():
                    other = self._sources.get(name)
                    if name in found or name in _TAKEN or (other is not None and not installed):
                        raise PluginLoadError(source, 0, _taken(name, other))
                    found[name] = plugin
        return MappingProxyType(found)

    def _entry(self, source: PluginSource, before: _Entry | None) -> _Entry:
        if before is not None and before.latest.digest == source.digest:
            return before
        try:
            return _Entry(source, "", source, self._made(source))
        except PluginLoadError as error:
            log.error("plugin code is not used", source=str(source), why=str(error))
            if before is None:
                return _Entry(source, str(error), None, {})
            return _Entry(source, str(error), before.good, before.plugins)

    def _made(self, source: PluginSource) -> Classes:
        """Run the trial of a source, load it, and return its classes as plugins."""
        if self._admit is not None:
            why = self._admit(source)
            if why:
                raise PluginLoadError(source, 0, why)
        made: dict[str, type[Plugin]] = {}
        for name, cls in load_source(source).items():
            _warn_of_old_import(source, name, cls)
            if issubclass(cls, Plugin):
                made[name] = cls
            else:
                guard = None if self._guard_for is None else self._guard_for(source, cls)
                made[name] = adapt(cls, guard=guard)
            setattr(made[name], SOURCE_ATTRIBUTE, source)
        return MappingProxyType(made)

    def _installed(self, source: PluginSource) -> Classes:
        entry = self._entries["entry-point"].get(source.name)
        if entry is None:
            raise PluginLoadError(source, 0, "no such entry point is installed")
        if entry.good is None:
            raise PluginLoadError(source, 0, entry.problem)
        return entry.plugins

    def _of_profile(self, source: PluginSource) -> Classes:
        known = self._of_profiles.get(source)
        if known is None:
            known = self._of_profiles[source] = self._made(source)
            if len(self._of_profiles) > _MAX_KEPT:
                old, _ = self._of_profiles.popitem(last=False)
                forget_source(old)
        self._of_profiles.move_to_end(source)
        return known

    def _publish(self) -> frozenset[str]:
        """Replace the values that readers get; return the names of the plugins that differ."""
        plugins: dict[str, type[Plugin]] = dict(PLUGINS)
        sources: dict[str, PluginSource] = {}
        problems: dict[str, str] = {}
        for kind in _ORDER:
            problems.update(self._unread.get(kind, {}))
            for name, entry in self._entries[kind].items():
                if entry.problem:
                    problems[name] = entry.problem
                for plugin, cls in entry.plugins.items():
                    if plugin in plugins or plugin in _TAKEN:
                        problems[name] = f"{name}: {_taken(plugin, sources.get(plugin))}"
                    elif entry.good is not None:
                        plugins[plugin], sources[plugin] = cls, entry.good
        before = self._plugins
        self._plugins = MappingProxyType(plugins)
        self._sources = MappingProxyType(sources)
        self._problems = MappingProxyType(problems)
        return frozenset(
            name
            for name in plugins.keys() | before.keys()
            if plugins.get(name) is not before.get(name)
        )


def _warn_of_old_import(source: PluginSource, name: str, cls: type) -> None:
    line = line_of_old_import(cls)
    if line:
        log.warning(
            "plugin imports plugins.policy, write `from berth import ...`",
            plugin=name,
            source=str(source),
            line=line,
            removed_in=GONE_IN,
        )


def _taken(name: str, other: PluginSource | None) -> str:
    whose = "Kubernetes' or berth's own" if other is None else f"that of {other}"
    return f"there is a plugin named {name} already, {whose}"
