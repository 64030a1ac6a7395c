"""The last good generations of a SchedulingProfile, as they stand in its status.

Kept in the object, so that a replica that has never seen them can run the last one, and anybody
can go back to one. The same spec under a later generation replaces the earlier entry, as with
rollouts of a Deployment.

A status is no place for what decides: the right to write ``schedulingprofiles/status`` is not the
right to write SchedulingProfiles. So an annotation has a digest of each entry, the newest first,
and what has none there is no entry. Whoever can write the annotation can write the spec as well; a
write to the status subresource changes no metadata.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scheduler.profiles.profile_spec import ProfileObject

GOOD: Final = "scheduling.berth.dev/good-generations"
"""The annotation: for each good generation its number, a colon and a digest."""

KEPT: Final = 10
"""As many ReplicaSets as a Deployment keeps."""

KEPT_BYTES: Final = 256 << 10
"""Of JSON; an object may have 1.5 MB in etcd, and its own spec is in it too."""


def seal_of(entry: Mapping[str, Any]) -> str:
    """Return what the annotation says of an entry."""
    # Sorted: the API server hands out keys in an order of its own.
    text = msgspec.json.encode(entry["spec"], order="sorted")
    return f"{entry['generation']}:{hashlib.sha256(text).hexdigest()}"


def seals_of(annotations: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what the annotation of an object says, the newest generation first."""
    return tuple(str(annotations.get(GOOD, "")).split()[:KEPT])


def entries_of(status: Mapping[str, Any], seals: Sequence[str]) -> list[dict[str, Any]]:
    """Return the entries of a status that the annotation vouches for, in the annotation's order."""
    by_seal = {seal_of(each): each for each in _possible_entries(status)}
    return [by_seal[seal] for seal in seals if seal in by_seal]


def entries_of_raw(raw: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the entries of an object as the API server has it."""
    status = raw.get("status")
    annotations = raw["metadata"].get("annotations") or {}
    return entries_of(status if isinstance(status, dict) else {}, seals_of(annotations))


def present_entry(found: ProfileObject) -> dict[str, Any] | None:
    """Return the entry that the status has of the present generation; None if there is none.

    Needs no seal: what it says is in the object itself, but for its time.
    """
    for each in _possible_entries(found.status):
        if each["generation"] == found.generation and each["spec"] == found.spec:
            return each
    return None


def last_good(found: ProfileObject) -> ProfileObject | None:
    """Return the object as it was at its last good generation; None if it is now, or never was.

    None as well where the status has lost that entry: an older one is not for a status to choose.
    """
    entries = entries_of(found.status, seals_of(found.annotations)[:1])
    if not entries or entries[0]["generation"] == found.generation:
        return None
    return replace(found, generation=entries[0]["generation"], spec=entries[0]["spec"])


def _possible_entries(status: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what a status has that could be an entry."""
    found = status.get("history")
    return [
        each
        for each in (found if isinstance(found, list) else [])
        if isinstance(each, dict)
        and isinstance(each.get("generation"), int)
        and isinstance(each.get("spec"), dict)
    ]


def with_entry(
    entries: Sequence[Mapping[str, Any]], generation: int, spec: Any, now: str
) -> list[Mapping[str, Any]]:
    """Return the entries with a generation that is good, which they may have already.

    At most `KEPT` of them and `KEPT_BYTES`; a spec that alone is larger is not kept.
    """
    if entries and entries[0]["generation"] == generation and entries[0]["spec"] == spec:
        return list(entries)
    newest = {"generation": generation, "activeSince": now, "spec": spec}
    kept: list[Mapping[str, Any]] = []
    size = 0
    for entry in [newest, *(each for each in entries if each["spec"] != spec)][:KEPT]:
        size += len(msgspec.json.encode(entry))
        if size > KEPT_BYTES:
            break
        kept.append(entry)
    return kept
