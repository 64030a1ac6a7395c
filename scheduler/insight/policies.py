"""The profiles that decide, the SchedulingProfiles with their status, and the shadows' reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scheduler.profiles.known_profiles import KnownProfiles
    from scheduler.profiles.profile_status import Condition, ProfileStatus
    from scheduler.runtime.profile_map import Profiles
    from scheduler.shadow import Shadows


def describe_policies(profiles: Profiles, known: KnownProfiles, shadows: Shadows) -> dict[str, Any]:
    """Return all of them as plain data.

    *Concurrency*: any thread; waits while a change of the profiles is compiled.
    """
    return {
        "profiles": [
            {
                "name": framework.profile_name,
                "policy": framework.policy.text,
                "plugins": {
                    point: [plugin.name for plugin in plugins]
                    for point, plugins in framework.points.items()
                },
            }
            for framework in profiles
        ],
        "policies": [_policy(name, status) for name, status in sorted(known.statuses().items())],
        "shadows": {
            name: report
            for name in sorted(known.statuses())
            if (report := shadows.plain_report(name)) is not None
        },
        "troubles": dict(known.troubles),
    }


def _policy(name: str, status: ProfileStatus) -> dict[str, Any]:
    return {
        "name": name,
        "mode": status.version.mode.value,
        "generation": status.version.generation,
        "active_generation": status.active_generation,
        "accepted": _condition(status.accepted),
        "active": _condition(status.active),
        "degraded": _condition(status.degraded),
        "plugins": status.running_plugins,
    }


def _condition(condition: Condition) -> dict[str, Any]:
    return {
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
    }
