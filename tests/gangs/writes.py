"""What a scheduler has written, by the audit log."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

EVENTS: Final = "Events"
BINDS: Final = "binds"
POD_STATUS: Final = "pod status"
GROUP_STATUS: Final = "group status"
DELETES: Final = "pods deleted"
KINDS: Final = (BINDS, EVENTS, POD_STATUS, GROUP_STATUS, DELETES)

_WRITES: Final = frozenset({"create", "update", "patch", "delete"})


class Written(NamedTuple):
    """A write that the API server accepted.

    Attributes
    ----------
    kind
        One of :data:`KINDS`, or resource and subresource.
    name
        Of the object; empty where the API server chose it.
    """

    kind: str
    user: str
    name: str
    time: dt.datetime


def writes(log: Iterable[Mapping[str, Any]], user: str) -> list[Written]:
    """Return the accepted writes of a user in the order of the log."""
    found = []
    for entry in log:
        code = (entry.get("responseStatus") or {}).get("code", 0)
        if entry.get("verb") not in _WRITES or not 200 <= code < 300:
            continue
        if entry["user"]["username"] == user:
            target = entry.get("objectRef") or {}
            time = dt.datetime.fromisoformat(entry["requestReceivedTimestamp"])
            found.append(Written(_kind(entry, target), user, target.get("name", ""), time))
    return found


def counts(written: Iterable[Written]) -> Counter[str]:
    """Return how many writes there are of each kind."""
    return Counter(each.kind for each in written)


def _kind(entry: Mapping[str, Any], target: Mapping[str, str]) -> str:
    resource = target.get("resource", "")
    match resource, target.get("subresource", ""), entry["verb"]:
        case "events", _, _:
            return EVENTS
        case "pods", "binding", _:
            return BINDS
        case "pods", "status", _:
            return POD_STATUS
        case "podgroups", _, "update" | "patch":
            return GROUP_STATUS
        case "pods", _, "delete":
            return DELETES
        case _, subresource, _:
            return f"{resource}/{subresource}".rstrip("/")
