"""A configuration without a file, with what lies in the plugin directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from scheduler.config.file_profile import PluginEntry, PluginSet

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scheduler.config import SchedulerConfig


def with_plugins(config: SchedulerConfig, names: Iterable[str]) -> SchedulerConfig:
    """Return ``config`` with these plugins enabled in each of its profiles, with weight 1.

    They run at every point that they serve, behind those of the default profile, with their
    default arguments. Plugins that a profile names already stay as it has them.
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
