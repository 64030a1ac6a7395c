"""SchedulingProfiles as the API server hands them out, and a compiler that needs no cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scheduler.profiles import ProfileObject
from scheduler.profiles.operator.history import GOOD, digest_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def raw(
    name: str = "gpu",
    *,
    uid: str = "",
    generation: int = 1,
    version: int = 1,
    spec: Any = None,
    status: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
    sealed: Sequence[Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Return an object as it comes from the API server; `sealed` are those of its history."""
    history = (status or {}).get("history", [])
    digests = [digest_of(each) for each in (history if sealed is None else sealed)]
    found: dict[str, Any] = {
        "apiVersion": "scheduling.berth.dev/v1alpha1",
        "kind": "SchedulingProfile",
        "metadata": {
            "name": name,
            "uid": uid or f"uid-{name}",
            "generation": generation,
            "resourceVersion": str(version),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": dict(labels or {}),
            "annotations": {GOOD: " ".join(digests)} if digests else {},
        },
        "spec": {"schedulerName": name} if spec is None else spec,
    }
    if status is not None:
        found["status"] = dict(status)
    return found


def profile(name: str = "gpu", **fields: Any) -> ProfileObject:
    """Return an object taken apart."""
    return ProfileObject.of(raw(name, **fields))
