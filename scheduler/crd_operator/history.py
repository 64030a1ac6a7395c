"""The last good generations of a SchedulingProfile, as they stand in its status.

Kept in the object, so that a replica that has never seen them can run the last one, and anybody
can go back to one. The same spec under a later generation replaces the earlier entry, as with
rollouts of a Deployment.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scheduler.crd_operator.profile_resource import ProfileObject

KEPT: Final = 10
"""As many ReplicaSets as a Deployment keeps."""

KEPT_BYTES: Final = 256 << 10
"""Of JSON; an object may have 1.5 MB in etcd, and its own spec is in it too."""


def entries_of(status: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the entries of a status, the newest first; what cannot be one is left out."""
    found = status.get("history")
    return [
        each
        for each in (found if isinstance(found, list) else [])
        if isinstance(each, dict)
        and isinstance(each.get("generation"), int)
        and isinstance(each.get("spec"), dict)
    ]


def last_good(found: ProfileObject) -> ProfileObject | None:
    """Return the object as it was at its last good generation; None if it is now, or never was."""
    entries = entries_of(found.status)
    if not entries or entries[0]["generation"] == found.generation:
        return None
    return replace(found, generation=entries[0]["generation"], spec=entries[0]["spec"])


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
