"""The plugins of users that this process has, found, tried and guarded."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

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


@dataclass(frozen=True, slots=True)
class SupplyOptions:
    """Where users' plugins may come from.

    Parameters
    ----------
    directory
        Its ``*.py`` files are plugins; None for none.
    installed
        Whether installed ones are looked for.
    allow_python, namespace
        Whether SchedulingProfiles may bring some in ConfigMaps, and of which namespace.
    """

    directory: Path | None = None
    installed: bool = False
    allow_python: bool = False
    namespace: str = ""
    containment: ContainmentOptions = field(default_factory=ContainmentOptions)


def known_plugins(supply: PluginSupply | None) -> Mapping[str, type[Plugin]]:
    """Return every plugin that profiles may name: berth's own only where there is no supply."""
    return PLUGINS if supply is None else supply.plugins()


class PluginSupply:
    """All plugins that profiles may name, and what keeps those of users in bounds.

    Parameters
    ----------
    options
        Where to look.

    Raises
    ------
    ConfigError
        When the folder for notes cannot be used.

    Attributes
    ----------
    catalogue
        The plugins.
    load_python
        Makes plugins of what SchedulingProfiles bring.

    Notes
    -----
    *Concurrency*: made, started and stopped by one thread.

    *Cost*: a second for each file of the directory, which is tried in a process of its own.
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

    def plugins(self) -> Mapping[str, type[Plugin]]:
        """Return every plugin that there is at the moment, by name. Immutable."""
        return self.catalogue.plugins

    def enabled_in(self, config: SchedulerConfig) -> SchedulerConfig:
        """Return a configuration without a file with the plugins of the directory enabled.

        Those that need arguments are left out, which the log tells.
        """
        names = self.catalogue.names_from("directory")
        return with_plugins(config, usable_as_they_are(names, self.plugins()))

    def lend(
        self,
        metrics: Metrics,
        nodes: Callable[[], Iterable[Node]],
        pods: Callable[[], Iterable[Pod]],
    ) -> None:
        """Have plugins measured, and new ones tried in a copy of the cluster, from now on."""
        add_containment_metrics(self.containment, metrics)
        self.containment.lend_cluster(lambda: copy_of(nodes(), pods()))

    def start(
        self,
        on_change: Callable[[frozenset[str]], None],
        on_trouble: Callable[[Mapping[str, str]], None],
    ) -> None:
        """Begin to watch; both are called from threads of ours and must not wait."""
        self.catalogue.subscribe(on_change)
        self.containment.subscribe(on_trouble)
        if self._watch is not None:
            self._watch.start()

    def stop(self) -> None:
        """End all of it."""
        if self._watch is not None:
            self._watch.stop()
        self.containment.stop()


class PythonProfiles:
    """Makes plugins of the Python in SchedulingProfiles.

    Code from the cluster has the rights of the scheduler: to read every pod and to bind each to
    any node. So it is refused unless ``allowed``, and then taken from one namespace only: whoever
    may write ConfigMaps there is trusted with the scheduler.

    Parameters
    ----------
    namespace
        The only one whose ConfigMaps count.

    Notes
    -----
    *Concurrency*: any thread but the scheduling thread.
    """

    def __init__(self, catalogue: PluginCatalogue, *, allowed: bool, namespace: str) -> None:
        self._catalogue = catalogue
        self._allowed = allowed
        self._namespace = namespace

    def __call__(self, source: PythonSource) -> Mapping[str, type[Plugin]]:
        """Return the plugins that a source brings, by name, tried and ready for a profile.

        Raises
        ------
        ConfigError
            With a path below that of the source.
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
                "code from the cluster is not run: it would have the scheduler's rights "
                "(--allow-python-profiles)"
            )
        if source.name.partition("/")[0] != self._namespace:
            return f"must be in namespace {self._namespace}: only its ConfigMaps are run"
        return "" if source.text is not None else "there is no such ConfigMap, or no such key"
