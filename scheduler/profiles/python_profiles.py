"""Python that a SchedulingProfile brings along: off, unless somebody has allowed it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scheduler.config import ConfigError, Mistake
from scheduler.user_plugins.loading import PluginLoadError
from scheduler.user_plugins.plugin_source import PluginSource

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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

    def __call__(self, sources: Sequence[PythonSource]) -> Mapping[str, type[Plugin]]:
        """Return the plugins that sources bring, by name, tried and ready for a profile.

        Raises
        ------
        ConfigError
            With paths that start at ``[INDEX]`` of the sources.
        """
        mistakes = [
            Mistake(f"[{index}].{_field(source)}", why)
            for index, source in enumerate(sources)
            if (why := self._why_not(source))
        ]
        if mistakes:
            raise ConfigError.of(mistakes, "")
        wanted = [
            PluginSource("entry-point", source.name, "")
            if source.text is None
            else PluginSource.of_text(source.kind, source.name, source.text)
            for source in sources
        ]
        try:
            return self._catalogue.load(wanted)
        except PluginLoadError as error:
            at = wanted.index(error.source)
            raise ConfigError(f"[{at}].{_field(sources[at])}", str(error)) from error

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


def _field(source: PythonSource) -> str:
    return "entryPoint" if source.kind == "entry-point" else "configMap"
