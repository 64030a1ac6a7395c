"""The profiles that decide, and the SchedulingProfiles with their status and their shadows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scheduler.profiles.known_profiles import KnownProfiles
    from scheduler.profiles.profile_status import ProfileStatus
    from scheduler.runtime.profile_map import Profiles
    from scheduler.shadow import Shadows


def describe_policies(profiles: Profiles, known: KnownProfiles, shadows: Shadows) -> dict[str, Any]:
    """Return all of them as plain data.

    *Concurrency*: any thread but the I/O loop's; waits while a change of profiles is compiled.
    """
    origins = {each.profile_name: each.policy.text for each in profiles}
    return {
        "profiles": [
            {
                "scheduler_name": each.scheduler_name,
                "origin": origins.get(each.scheduler_name, ""),
                "points": {point: names for point, names in each.points.items() if names},
                "weights": dict(each.score_weights),
            }
            for each in known.effective()
        ],
        "policies": [
            _policy(name, status, shadows.plain_report(name))
            for name, status in sorted(known.statuses().items())
        ],
        "note": "; ".join(f"plugin {name} {what}" for name, what in known.troubles.items()),
    }


def _policy(name: str, status: ProfileStatus, shadow: Any) -> dict[str, Any]:
    worst = next(
        (each for each in (status.accepted, status.active) if not each.status), status.degraded
    )
    if not status.accepted.status:
        phase = "Refused"
    elif status.degraded.status:
        phase = "Degraded"
    else:
        phase = "Active" if status.active.status else status.active.reason
    return {
        "name": name,
        "scheduler_name": status.version.profile.scheduler_name,
        "mode": status.version.mode.value,
        "phase": phase,
        "message": worst.message,
        "generation": status.version.generation,
        "active_generation": status.active_generation,
        "shadow": shadow,
    }
