"""The plugins that profiles may name: Berth's own, and users' plugins after their trial."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cache.value import Value
from plugins.registry import PLUGINS
from scheduler.config import ConfigError
from scheduler.user_plugins.catalogue import PluginCatalogue
from scheduler.user_plugins.containment import (
    Containment,
    ContainmentOptions,
    StateDirError,
    add_containment_metrics,
)
from scheduler.user_plugins.directory_watch import DirectoryWatch
from scheduler.user_plugins.finding import Found, entry_points
from scheduler.user_plugins.loading import PluginLoadError
from scheduler.user_plugins.plugin_source import PluginSource
from scheduler.user_plugins.plugin_trial.trial import copy_of
from scheduler.user_plugins.profile_of_directory import usable_as_they_are, with_plugins

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from cache.objects import Node, Pod
    from plugins.framework.interfaces import Plugin
    from scheduler.config import SchedulerConfig
    from scheduler.metrics import Metrics
    from scheduler.profiles import PythonSource


class SupplyOptions(Value, frozen=True):
    """The sources from which users' plugins are loaded.

    Parameters
    ----------
    directory
        The directory whose ``*.py`` files are plugins; None for no directory.
    installed
        Whether the entry points of installed distributions are loaded.
    allow_python, namespace
        Whether SchedulingProfiles may bring plugins in ConfigMaps, and the namespace of these
        ConfigMaps.
    """

    directory: Path | None = None
    installed: bool = False
    allow_python: bool = False
    namespace: str = ""
    containment: ContainmentOptions = msgspec.field(default_factory=ContainmentOptions)


def known_plugins(supply: PluginSupply | None) -> Mapping[str, type[Plugin]]:
    """Return every plugin that profiles may name, by name; without a supply only Berth's own."""
    return PLUGINS if supply is None else supply.plugins()


class PluginSupply:
    """All plugins that profiles may name, with the containment of users' plugins.

    Parameters
    ----------
    options
        The sources of users' plugins.

    Raises
    ------
    ConfigError
        When the state directory cannot be used.

    Attributes
    ----------
    catalogue
        The plugins.
    load_python
        Loads the plugins that SchedulingProfiles bring.

    Notes
    -----
    *Concurrency*: constructed, started and stopped by one thread.

    *Cost*: one second for each file of the directory, whose trial runs in its own process.
    """

    def __init__(self, options: SupplyOptions) -> None:
        self._options = options
        try:
            self.containment = Containment(options.containment)
        except StateDirError as error:
            raise ConfigError("--state-dir", str(error)) from error
        self.catalogue = PluginCatalogue(self.containment.admit, self.containment.guard_for)
        self.load_python = PythonProfiles(
            self.catalogue, allowed=options.allow_python, namespace=options.namespace
        )
        if options.installed:
            self.catalogue.replace("entry-point", Found(entry_points()))
        self._watch: DirectoryWatch | None = None
        if options.directory is not None:
            self._watch = DirectoryWatch(options.directory, self.catalogue)
            self._watch.look()

    @property
    def directory(self) -> Path | None:
        """The directory of users' plugins, or None."""
        return self._options.directory

    def plugins(self) -> Mapping[str, type[Plugin]]:
        """Return all plugins that are loaded now, by name. Immutable."""
        return self.catalogue.plugins

    def enabled_in(self, config: SchedulerConfig) -> SchedulerConfig:
        """Return a default configuration in which the plugins of the directory are enabled.

        Plugins that require arguments are not enabled; the log reports them.
        """
        names = self.catalogue.names_from("directory")
        return with_plugins(config, usable_as_they_are(names, self.plugins()))

    def lend(
        self,
        metrics: Metrics,
        nodes: Callable[[], Iterable[Node]],
        pods: Callable[[], Iterable[Pod]],
    ) -> None:
        """Export metrics of users' plugins, and run trials on a copy of the cluster from now on."""
        add_containment_metrics(self.containment, metrics)
        self.containment.lend_cluster(lambda: copy_of(nodes(), pods()))

    def start(
        self,
        on_change: Callable[[frozenset[str]], None],
        on_trouble: Callable[[Mapping[str, str]], None],
    ) -> None:
        """Watch for changes of plugins.

        Both callbacks are called from threads of this object and must not block.
        """
        self.catalogue.subscribe(on_change)
        self.containment.subscribe(on_trouble)
        if self._watch is not None:
            self._watch.start()

    def stop(self) -> None:
        """Stop the directory watch and the containment."""
        if self._watch is not None:
            self._watch.stop()
        self.containment.stop()


class PythonProfiles:
    """Loads plugins from the Python sources of SchedulingProfiles.

    Code from the cluster has the permissions of the scheduler: it can read every pod and bind any
    pod to any node. It is therefore refused unless ``allowed`` is set, and is then loaded from one
    namespace only: users who may write ConfigMaps there are trusted with the scheduler.

    Parameters
    ----------
    namespace
        The only namespace whose ConfigMaps are loaded.

    Notes
    -----
    *Concurrency*: may be called from any thread except the scheduling thread.
    """

    def __init__(self, catalogue: PluginCatalogue, *, allowed: bool, namespace: str) -> None:
        self._catalogue = catalogue
        self._allowed = allowed
        self._namespace = namespace

    def __call__(self, source: PythonSource) -> Mapping[str, type[Plugin]]:
        """Return the plugins of a source by name, after a successful trial.

        Raises
        ------
        ConfigError
            When the source is refused or fails its trial; paths are relative to the source.
        """
        path = "entryPoint" if source.kind == "entry-point" else "configMap"
        if why := self._why_not(source):
            raise ConfigError(path, why)
        wanted = (
            PluginSource("entry-point", source.name, "")
            if source.text is None
            else PluginSource.of_text(source.kind, source.name, source.text)
        )
        try:
            return self._catalogue.load([wanted])
        except PluginLoadError as error:
            raise ConfigError(path, str(error)) from error

    def _why_not(self, source: PythonSource) -> str:
        if source.kind == "entry-point":
            return ""
        if not self._allowed:
            return (
                "code from the cluster is not run: it would have the scheduler's permissions "
                "(--allow-python-profiles)"
            )
        if source.name.partition("/")[0] != self._namespace:
            return f"must be in namespace {self._namespace}: only its ConfigMaps are run"
        return "" if source.text is not None else "there is no such ConfigMap, or no such key"
