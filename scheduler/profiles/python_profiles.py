"""Python that a SchedulingProfile brings along: off, unless somebody has allowed it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scheduler.config import ConfigError
from scheduler.user_plugins.loading import PluginLoadError
from scheduler.user_plugins.plugin_source import PluginSource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plugins.framework.interfaces import Plugin
    from scheduler.profiles import PythonSource
    from scheduler.user_plugins.catalogue import PluginCatalogue


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
