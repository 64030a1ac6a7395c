"""The desired ``status`` of a SchedulingProfile, and the merge patch that produces it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from scheduler.profiles.operator.history import (
    digest_of,
    digests_of,
    entries_of,
    present_entry,
    with_entry,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scheduler.profiles import Condition, ProfileObject, ProfileStatus

_MAX_MESSAGE: Final = 4096
"""Maximum number of characters of a condition's message, an eighth of what the API accepts; longer
messages would not be read."""


def wanted_status(
    profile: ProfileObject,
    known: ProfileStatus,
    shadow_report: Mapping[str, object] | None,
    now: str,
) -> dict[str, Any]:
    """Return the complete desired status.

    Parameters
    ----------
    profile
        The newest version of the object, with its present status.
    known
        The status that the known profiles report.
    shadow_report
        The results of its shadow run; None if there are none.
    now
        The timestamp for changes, in the format of the API.
    """
    conditions = {
        "Accepted": known.accepted,
        "Active": known.active,
        "Degraded": known.degraded,
    }
    active = known.active_generation
    digests = digests_of(profile.annotations)
    history: Sequence[Mapping[str, Any]] = entries_of(profile.status, digests)
    if active == profile.generation:
        present = present_entry(profile)
        since = now if present is None else str(present.get("activeSince", now))
        history = with_entry(history, profile.generation, profile.spec, since)
    status: dict[str, Any] = {
        "observedGeneration": profile.generation,
        "conditions": _rendered(conditions, profile.status, profile.generation, now),
        "history": list(history),
    }
    if active is not None:
        status["activeGeneration"] = active
        status["runningPlugins"] = list(known.running_plugins)
    if shadow_report is not None:
        status["shadow"] = dict(shadow_report)
    return status


def wanted_digests(profile: ProfileObject, status: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the elements of the annotation that an object should have with a desired status.

    They change only with a new good generation; entries that the status has lost do not change
    them.
    """
    history = status["history"]
    if not history or history[0]["generation"] != profile.generation:
        return digests_of(profile.annotations)
    return tuple(map(digest_of, history))


def conditions_of(status: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the well-formed conditions of a status by type."""
    conditions = status.get("conditions")
    return {
        str(condition.get("type")): condition
        for condition in (conditions if isinstance(conditions, list) else [])
        if isinstance(condition, dict)
    }


def merge_patch(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON merge patch that turns ``old`` into ``new``; empty if they are equal.

    *Source*: RFC 7396: objects are merged, all other values are replaced, null removes.
    """
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            inner = merge_patch(before, value)
            if inner:
                patch[key] = inner
        elif key not in old or before != value:
            patch[key] = value
    return patch


def _rendered(
    conditions: Mapping[str, Condition], shown: Mapping[str, Any], generation: int, now: str
) -> list[dict[str, Any]]:
    before = conditions_of(shown)
    rendered = []
    for kind, condition in conditions.items():
        status = "True" if condition.status else "False"
        old = before.get(kind, {})
        since = old.get("lastTransitionTime") if old.get("status") == status else None
        rendered.append(
            {
                "type": kind,
                "status": status,
                "reason": condition.reason,
                "message": condition.message[:_MAX_MESSAGE],
                "observedGeneration": generation,
                "lastTransitionTime": since or now,
            }
        )
    return rendered
