"""The profiles that a journal names, built again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plugins.authoring.adapter import PolicyPlugin
from scheduler.config import ConfigError, EffectiveProfile
from scheduler.config.strict_decoding import cleaned
from scheduler.journal.replayed_services import ReplayedGuard
from scheduler.runtime.nominated_nodes import NominatedNodes
from scheduler.runtime.profile_builder import build_framework
from scheduler.user_plugins.plugin_source import SOURCE_ATTRIBUTE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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

    Attributes
    ----------
    nominated
        The nodes with the pods that are nominated for them.
    """

    def __init__(
        self,
        plugins: Mapping[str, type[Plugin]],
        services: ReplayedServices,
        nominator: Nominator,
    ) -> None:
        self._plugins = plugins
        self._services = services
        self.nominated = NominatedNodes(nominator.frozen)
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
        args: dict[str, Any] = {name: self._args(name, each) for name, each in told["args"].items()}
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
        framework.nominated = self.nominated
        self._services.follow(framework)
        for plugin in framework.plugins:
            if isinstance(plugin, PolicyPlugin):
                # Of this object alone: the class is shared with other profiles.
                vars(plugin)["guard"] = ReplayedGuard(plugin, self._services)
        return framework

    def _args(self, name: str, told: Any) -> Any:
        """Return arguments with durations in place of their texts."""
        plugin = self._plugins.get(name)
        if plugin is None or plugin.args_type is None:
            return told
        return cleaned(told, plugin.args_type, name)[0]

    def _differs(self, name: str, told: Mapping[str, Any]) -> bool:
        source = getattr(self._plugins[name], SOURCE_ATTRIBUTE, None)
        digest: str = told["sources"][name][2]
        return source is None or source.digest != digest
