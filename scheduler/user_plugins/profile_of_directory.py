"""The default configuration with the plugins of the plugin directory enabled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import structlog

from scheduler.config.file_profile import PluginConfig, PluginEntry, PluginSet
from scheduler.config.plugin_config import check_plugin_config

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from plugins.framework.interfaces import Plugin
    from scheduler.config import SchedulerConfig

log = structlog.get_logger(__name__)


def with_plugins(config: SchedulerConfig, names: Iterable[str]) -> SchedulerConfig:
    """Return ``config`` with these plugins enabled in each of its profiles, with weight 1.

    The plugins run at every extension point that they implement, after those of the default
    profile, with their default arguments. Plugins that a profile already names stay unchanged.
    """
    profiles = []
    for profile in config.profiles:
        plugins = profile.plugins
        named = {entry.name for each in plugins.by_point().values() for entry in each.enabled}
        added = tuple(PluginEntry(name) for name in names if name not in named)
        multi_point = PluginSet(
            (*plugins.multi_point.enabled, *added), plugins.multi_point.disabled
        )
        changed = msgspec.structs.replace(plugins, multi_point=multi_point)
        profiles.append(msgspec.structs.replace(profile, plugins=changed))
    return msgspec.structs.replace(config, profiles=tuple(profiles))


def usable_as_they_are(
    names: Iterable[str], plugins: Mapping[str, type[Plugin]]
) -> tuple[str, ...]:
    """Return the plugins that can be constructed with their default arguments.

    The log reports why others cannot: a plugin that cannot run must not prevent Berth's start.
    """
    usable = []
    for name in names:
        why = _why_not(name, plugins)
        if why:
            log.error("plugin is not enabled", plugin=name, why=why)
        else:
            usable.append(name)
    return tuple(usable)


def _why_not(name: str, plugins: Mapping[str, type[Plugin]]) -> str:
    path = f"pluginConfig[{name}]"
    try:
        _, mistakes = check_plugin_config((PluginConfig(name, {}),), plugins, path)
    except Exception as error:  # noqa: BLE001 - a constructor is somebody else's code
        return f"{type(error).__name__}: {error}"
    return "; ".join(f"{mistake.path}: {mistake.why}" for mistake in mistakes)
