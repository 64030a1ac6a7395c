"""The history of a SchedulingProfile: its last good generations, stored in its status.

The object itself stores them, so that a replica that has never seen them can run the last one, and
users can roll back to one of them. The same spec under a later generation replaces the earlier
entry, as with rollouts of a Deployment.

The status alone must not decide what runs: the permission to write ``schedulingprofiles/status`` is
not the permission to write SchedulingProfiles. Therefore an annotation stores a digest of each
entry, the newest first, and an entry without a digest is ignored. Users who can write the
annotation can write the spec as well; a write to the status subresource changes no metadata.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scheduler.profiles.profile_spec import ProfileObject

GOOD: Final = "scheduling.berth.dev/good-generations"
"""The key of the annotation. Its value has the number, a colon and a digest for each generation."""

KEPT: Final = 10
"""Maximum number of entries: as many as a Deployment keeps ReplicaSets."""

KEPT_BYTES: Final = 256 << 10
"""Maximum size of all entries as JSON. An object in etcd may have 1.5 MB, including its spec."""


def digest_of(entry: Mapping[str, Any]) -> str:
    """Return the element of the annotation for an entry."""
    # Sorted, because the API server may return keys in another order.
    text = msgspec.json.encode(entry["spec"], order="sorted")
    return f"{entry['generation']}:{hashlib.sha256(text).hexdigest()}"


def digests_of(annotations: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the elements of the annotation of an object, the newest generation first."""
    return tuple(str(annotations.get(GOOD, "")).split()[:KEPT])


def entries_of(status: Mapping[str, Any], digests: Sequence[str]) -> list[dict[str, Any]]:
    """Return the entries of a status whose digests the annotation contains, in its order."""
    by_digest = {digest_of(entry): entry for entry in _possible_entries(status)}
    return [by_digest[digest] for digest in digests if digest in by_digest]


def entries_of_raw(raw: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the entries of an object as the API server returns it."""
    status = raw.get("status")
    annotations = raw["metadata"].get("annotations") or {}
    return entries_of(status if isinstance(status, dict) else {}, digests_of(annotations))


def present_entry(profile: ProfileObject) -> dict[str, Any] | None:
    """Return the entry of the status for the present generation; None if there is none.

    It needs no digest, because the object itself contains the same spec; only the time is extra.
    """
    for entry in _possible_entries(profile.status):
        if entry["generation"] == profile.generation and entry["spec"] == profile.spec:
            return entry
    return None


def last_good(profile: ProfileObject) -> ProfileObject | None:
    """Return the object with its last good generation and spec.

    The result is None if the present generation is good or no generation was. It is None as well if
    the status has lost that entry: the status must not be able to select an older entry.
    """
    entries = entries_of(profile.status, digests_of(profile.annotations)[:1])
    if not entries or entries[0]["generation"] == profile.generation:
        return None
    return replace(profile, generation=entries[0]["generation"], spec=entries[0]["spec"])


def _possible_entries(status: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the well-formed entries of a status, whether they have a digest or not."""
    entries = status.get("history")
    return [
        entry
        for entry in (entries if isinstance(entries, list) else [])
        if isinstance(entry, dict)
        and isinstance(entry.get("generation"), int)
        and isinstance(entry.get("spec"), dict)
    ]


def with_entry(
    entries: Sequence[Mapping[str, Any]], generation: int, spec: Any, now: str
) -> list[Mapping[str, Any]]:
    """Return the entries with the entry of a good generation added, unless it is there already.

    The result has at most `KEPT` entries and `KEPT_BYTES`; a larger spec is not stored.
    """
    if entries and entries[0]["generation"] == generation and entries[0]["spec"] == spec:
        return list(entries)
    newest = {"generation": generation, "activeSince": now, "spec": spec}
    kept: list[Mapping[str, Any]] = []
    size = 0
    for entry in [newest, *(entry for entry in entries if entry["spec"] != spec)][:KEPT]:
        size += len(msgspec.json.encode(entry))
        if size > KEPT_BYTES:
            break
        kept.append(entry)
    return kept
