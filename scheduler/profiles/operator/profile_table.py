"""Text output of ``berth profiles``: a table of SchedulingProfiles, and the details of one."""

from __future__ import annotations

import calendar
import time
from typing import TYPE_CHECKING, Any, Final

from scheduler.profiles.operator.history import entries_of_raw
from scheduler.profiles.operator.status_patch import conditions_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_HEADINGS: Final = (
    "NAME",
    "SCHEDULER",
    "STATE",
    "GENERATION",
    "RUNNING",
    "SINCE",
    "MESSAGE",
)
_UNITS: Final = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))
_WIDEST: Final = 100
"""Maximum number of characters of a message in the table; the details show all of it."""


def table(profiles: Iterable[Mapping[str, Any]], now_s: float) -> str:
    """Return a table with headings and a line for each profile."""
    return _aligned([_HEADINGS, *(_line(each, now_s) for each in profiles)])


def details(profile: Mapping[str, Any], now_s: float) -> str:
    """Return the state of one profile, its conditions, plugins and good generations as text."""
    status = _status(profile)
    text = table([profile], now_s)
    conditions = [
        (f"{each.get('type')}:", str(each.get("status")), str(each.get("reason")), _message(each))
        for each in conditions_of(status).values()
    ]
    if conditions:
        text += "\n" + _aligned(conditions)
    if status.get("runningPlugins"):
        text += f"\nPlugins: {', '.join(map(str, status['runningPlugins']))}\n"
    entries = entries_of_raw(profile)
    if entries:
        present = profile["metadata"].get("generation")
        rows = [("GOOD GENERATION", "SINCE", "")]
        rows += [
            (
                str(each["generation"]),
                _age(each.get("activeSince"), now_s),
                "the present one" if each["generation"] == present else "",
            )
            for each in entries
        ]
        text += "\n" + _aligned(rows)
    return text


def state_of(profile: Mapping[str, Any]) -> str:
    """Return the state of a profile as one word, as the table shows it."""
    status = _status(profile)
    if status.get("observedGeneration") != profile["metadata"].get("generation"):
        return "Unread"
    conditions = conditions_of(status)

    def holds(kind: str) -> bool:
        return bool(conditions.get(kind, {}).get("status") == "True")

    if holds("Degraded"):
        return "Degraded"
    if holds("Active"):
        return "Active"
    reason = conditions.get("Active", {}).get("reason")
    return "Shadow" if reason == "Shadowing" else str(reason or "Unknown")


def _line(profile: Mapping[str, Any], now_s: float) -> Sequence[str]:
    metadata, status = profile["metadata"], _status(profile)
    spec = profile.get("spec")
    state = state_of(profile)
    conditions = conditions_of(status)
    message = ""
    if state == "Unread":
        message = "the leader has not processed this generation yet"
    elif state == "Degraded":
        message = _message(conditions["Degraded"])
    elif state != "Active":
        message = _message(conditions.get("Active", {}))
    since = conditions.get("Active", {}).get("lastTransitionTime")
    entries = entries_of_raw(profile)
    if entries and entries[0]["generation"] == status.get("activeGeneration"):
        since = entries[0].get("activeSince")
    return (
        str(metadata["name"]),
        str((spec if isinstance(spec, dict) else {}).get("schedulerName", "")),
        state,
        str(metadata.get("generation", "")),
        str(status.get("activeGeneration", "-")),
        _age(since, now_s),
        message if len(message) <= _WIDEST else message[: _WIDEST - 3] + "...",
    )


def _status(profile: Mapping[str, Any]) -> Mapping[str, Any]:
    status = profile.get("status")
    return status if isinstance(status, dict) else {}


def _message(condition: Mapping[str, Any]) -> str:
    return str(condition.get("message") or "")


def _age(since: object, now_s: float) -> str:
    """Return the age of a timestamp, such as ``5m``; ``-`` if it is not a timestamp."""
    try:
        begun_s = calendar.timegm(time.strptime(str(since), "%Y-%m-%dT%H:%M:%SZ"))
    except ValueError:
        return "-"
    age_s = max(int(now_s - begun_s), 0)
    for unit, length_s in _UNITS:
        if age_s >= 2 * length_s or length_s == 1:
            return f"{age_s // length_s}{unit}"
    return "-"


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = (
        "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
    return "".join(f"{line}\n" for line in lines)
