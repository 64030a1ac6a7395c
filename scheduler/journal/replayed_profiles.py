"""The profiles that a journal names, built again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scheduler.config import ConfigError, EffectiveProfile
from scheduler.runtime.nominated_nodes import NominatedNodes
from scheduler.runtime.profile_builder import build_framework
from scheduler.user_plugins.plugin_source import SOURCE_ATTRIBUTE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import msgspec

    from plugins.framework.interfaces import Plugin
    from scheduler.journal.replayed_services import ReplayedServices
    from scheduler.queueing.nominator import Nominator
    from scheduler.runtime.framework_runner import FrameworkRunner

_KEPT_VERSIONS = 2
"""A decision may be recorded after the next profiles are."""


class ReplayedProfiles:
    """The profiles by version and schedulerName.

    Parameters
    ----------
    plugins
        The plugins that exist here, by name.
    """

    def __init__(
        self,
        plugins: Mapping[str, type[Plugin]],
        services: ReplayedServices,
        nominator: Nominator,
    ) -> None:
        self._plugins = plugins
        self._services = services
        self._nominated = NominatedNodes(nominator)
        self._versions: dict[int, dict[str, FrameworkRunner | str]] = {}

    def configure(self, version: int, told: Sequence[Mapping[str, Any]]) -> None:
        """Build the profiles of a version."""
        self._versions[version] = {each["name"]: self._built(each) for each in told}
        for old in sorted(self._versions)[:-_KEPT_VERSIONS]:
            del self._versions[old]

    def get(self, version: int, name: str) -> FrameworkRunner | None:
        """Return a profile, or None if it is not known or cannot be built."""
        found = self._versions.get(version, {}).get(name)
        return None if isinstance(found, str) else found

    def problem(self, version: int, name: str) -> str:
        """Return why there is no such profile."""
        found = self._versions.get(version, {}).get(name)
        return found if isinstance(found, str) else f"profile {name} is not in the journal"

    def _built(self, told: Mapping[str, Any]) -> FrameworkRunner | str:
        points = {point: tuple(names) for point, names in told["points"].items()}
        names = {name for found in points.values() for name in found}
        missing = sorted(names - self._plugins.keys())
        if missing:
            return f"profile {told['name']} needs plugins that are not here: {', '.join(missing)}"
        changed = [name for name in sorted(told["sources"]) if self._differs(name, told)]
        if changed:
            return f"profile {told['name']} ran with other code of {', '.join(changed)}"
        args: dict[str, msgspec.Struct] = told["args"]
        profile = EffectiveProfile(
            told["name"],
            told["percentage"],
            points,
            told["weights"],
            args,
            {name: self._plugins[name] for name in names},
        )
        try:
            framework = build_framework(profile, 0, self._plugins, self._services)
        except ConfigError as error:
            return f"profile {told['name']} cannot be built: {error}"
        framework.nominated = self._nominated
        for plugin in framework.plugins:
            if hasattr(plugin, "wall_clock"):
                plugin.wall_clock = self._services.wall
        return framework

    def _differs(self, name: str, told: Mapping[str, Any]) -> bool:
        source = getattr(self._plugins[name], SOURCE_ATTRIBUTE, None)
        digest: str = told["sources"][name][2]
        return source is None or source.digest != digest
