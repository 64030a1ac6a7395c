"""The profiles of the other policy, built for one of the clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scheduler.runtime.profile_builder import build_framework

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plugins.framework.interfaces import Plugin
    from scheduler.config import EffectiveProfile
    from scheduler.journal.replayed_services import ReplayedServices
    from scheduler.runtime.framework_runner import FrameworkRunner
    from scheduler.runtime.nominated_nodes import NominatedNodes


def frameworks_of(
    profiles: Sequence[EffectiveProfile],
    plugins: Mapping[str, type[Plugin]],
    services: ReplayedServices,
    nominated: NominatedNodes,
) -> dict[str, FrameworkRunner]:
    """Return the profiles by schedulerName; their time is that of the decisions.

    Raises
    ------
    ConfigError
        When a plugin's arguments cannot be used.
    """
    found = {}
    for index, profile in enumerate(profiles):
        framework = build_framework(profile, index, plugins, services)
        framework.nominated = nominated
        services.follow(framework)
        found[profile.scheduler_name] = framework
    return found
