"""What each write changed in a claim, and who wrote it, by the audit log."""

from __future__ import annotations

import contextlib
import datetime as dt
import tempfile
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import yaml

from tests.controlplane.control_plane import ControlPlane
from tests.devices.histories import claim_version
from tests.scenarios.lease_witness import writer_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tests.devices.histories import ClaimVersion

POLICY: Final[Mapping[str, Any]] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "users": ["system:apiserver"]},
        {"level": "None", "verbs": ["get", "list", "watch"]},
        {
            "level": "Request",
            "verbs": ["create", "update"],
            "resources": [
                {"group": "coordination.k8s.io", "resources": ["leases"]},
                {"group": "", "resources": ["pods/binding", "bindings"]},
            ],
        },
        {
            "level": "RequestResponse",
            "verbs": ["create", "update", "patch"],
            "resources": [
                {
                    "group": "resource.k8s.io",
                    "resources": ["resourceclaims", "resourceclaims/status"],
                }
            ],
        },
        {"level": "Metadata"},
    ],
}
"""The log has the claim that each write returned, who binds what, and who leads."""

FINALIZER: Final = "finalizer added"
ALLOCATION: Final = "allocated"
RESERVATION: Final = "reserved"
RELEASE: Final = "reservation removed"
DEALLOCATION: Final = "deallocated"
NOTHING: Final = "nothing changed"


class ClaimWrite(NamedTuple):
    """A write to a claim that the API server accepted.

    Attributes
    ----------
    writer
        The token with which it was written, or the user's name.
    received, done
        When the request arrived, and when it was answered.
    after
        The claim that the write returned.
    """

    user: str
    writer: str
    received: dt.datetime
    done: dt.datetime
    after: ClaimVersion


def claim_writes(events: Iterable[Mapping[str, Any]]) -> list[ClaimWrite]:
    """Return the accepted writes to claims, in the order of the claims' versions."""
    found = [
        ClaimWrite(
            event["user"]["username"],
            writer_of(event),
            dt.datetime.fromisoformat(event["requestReceivedTimestamp"]),
            dt.datetime.fromisoformat(event["stageTimestamp"]),
            claim_version(event["responseObject"]),
        )
        for event in events
        if (event.get("objectRef") or {}).get("resource") == "resourceclaims"
        and event.get("verb") in ("create", "update", "patch")
        and 200 <= (event.get("responseStatus") or {}).get("code", 0) < 300
    ]
    found.sort(key=lambda write: (write.after.version, write.received))
    return found


def changes(before: ClaimVersion, after: ClaimVersion) -> list[str]:
    """Return what changed from one version of a claim to another."""
    found = []
    if after.has_finalizer and not before.has_finalizer:
        found.append(FINALIZER)
    if after.devices != before.devices or after.is_allocated != before.is_allocated:
        if before.is_allocated:
            found.append(DEALLOCATION)
        if after.is_allocated:
            found.append(ALLOCATION)
    found += [RESERVATION] * len(set(after.reserved) - set(before.reserved))
    found += [RELEASE] * len(set(before.reserved) - set(after.reserved))
    return found


class Change(NamedTuple):
    """A change of one claim, and who made it.

    Attributes
    ----------
    user
        Empty when the audit log does not have the write: its client died meanwhile.
    """

    what: str
    uid: str
    version: int
    user: str


def find_changes(
    versions: Iterable[ClaimVersion], writes: Sequence[ClaimWrite]
) -> Iterator[Change]:
    """Yield all changes of claims that exist, and the writes that changed nothing.

    Parameters
    ----------
    versions
        Of all claims, in order, as a watch brought them.
    writes
        As :func:`claim_writes` returns them.
    """
    users = {(write.after.uid, write.after.version): write.user for write in reversed(writes)}
    before: dict[str, ClaimVersion] = {}
    for after in versions:
        if not after.is_gone:
            user = users.get((after.uid, after.version), "")
            known = before.get(after.uid, after)
            for what in changes(known, after):
                yield Change(what, after.uid, after.version, user)
        before[after.uid] = after
    seen: set[tuple[str, int]] = set()
    for write in writes:
        key = write.after.uid, write.after.version
        if key in seen:
            yield Change(NOTHING, *key, write.user)
        seen.add(key)


@contextlib.contextmanager
def audited_plane() -> Iterator[ControlPlane]:
    """A control plane whose audit log has what :data:`POLICY` says."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as policy:
        yaml.safe_dump(dict(POLICY), policy)
        policy.flush()
        arguments = [f"--audit-policy-file={policy.name}"]
        with ControlPlane(load=True, extra_apiserver_args=arguments) as plane:
            yield plane
