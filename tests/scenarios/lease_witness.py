"""Who led when, and who wrote when, by the API server's audit log alone.

Each start of a replica has a token of its own, and the audit log names it with each request: so
every request can be told to come from one process, whatever that process says of itself.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LEASES: Final = "leases"

POLICY: Final[Mapping[str, Any]] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "users": ["system:apiserver"]},
        {
            "level": "Request",
            "verbs": ["create", "update"],
            "resources": [
                {"group": "coordination.k8s.io", "resources": ["leases"]},
                {"group": "", "resources": ["pods/binding", "bindings"]},
            ],
        },
        {"level": "Metadata"},
    ],
}
"""What has to be in the log: who writes what into the Lease, who binds what, who writes at all."""

_READS: Final = frozenset({"get", "list", "watch"})
_QUESTIONS: Final = frozenset({"authorization.k8s.io", "authentication.k8s.io"})
_TOKEN: Final = "authentication.kubernetes.io/credential-id"


@dataclass(frozen=True, slots=True)
class LeaseWrite:
    """A write into the Lease that was accepted."""

    writer: str
    holder: str
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class Write:
    """Any other write, accepted or not."""

    writer: str
    what: str
    code: int
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class Tenure:
    """One process's time as leader.

    Attributes
    ----------
    renewed
        When its last renewal arrived at the API server; it was sent before that.
    released
        When it gave the lease back, if it did.
    """

    writer: str
    identity: str
    begun: dt.datetime
    renewed: dt.datetime
    released: dt.datetime | None = None


@dataclass(slots=True)
class Testimony:
    """What the log says, in the order in which requests arrived."""

    tenures: list[Tenure] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)

    def violations(self, lease_s: float) -> list[str]:
        """Return a sentence for each write outside of its writer's time as leader.

        A write is in time when it arrives after its writer took the lease and before it gave the
        lease back; or else before the end of the lease, counted from the last renewal, and before
        anybody else took it.
        """
        found = []
        for before, after in zip(self.tenures, self.tenures[1:], strict=False):
            earliest = before.released or before.renewed + dt.timedelta(seconds=lease_s)
            if after.begun < earliest:
                found.append(f"{after.identity} led before the time of {before.identity} was over")
        times = list(zip(self.tenures, self._ends(lease_s), strict=True))
        found += [
            f"{write.at.time()} {write.writer}: {write.what} ({write.code})"
            for write in self.writes
            if not any(
                tenure.writer == write.writer and tenure.begun <= write.at <= end
                for tenure, end in times
            )
        ]
        return found

    def _ends(self, lease_s: float) -> list[dt.datetime]:
        ends = []
        for index, tenure in enumerate(self.tenures):
            end = tenure.released or tenure.renewed + dt.timedelta(seconds=lease_s)
            if index + 1 < len(self.tenures):
                end = min(end, self.tenures[index + 1].begun)
            ends.append(end)
        return ends


def testify(events: Iterable[Mapping[str, Any]], *, user: str, lease: tuple[str, str]) -> Testimony:
    """Read an audit log.

    Parameters
    ----------
    user
        berth's service account; what others do is not judged, but their names in the Lease count.
    lease
        Namespace and name.
    """
    lease_writes: list[LeaseWrite] = []
    writes: list[Write] = []
    for event in events:
        target = event.get("objectRef") or {}
        verb = event.get("verb", "")
        if verb in _READS or target.get("apiGroup", "") in _QUESTIONS:
            continue
        code = int((event.get("responseStatus") or {}).get("code", 0))
        at = dt.datetime.fromisoformat(event["requestReceivedTimestamp"])
        if target.get("resource") == LEASES:
            spec = (event.get("requestObject") or {}).get("spec") or {}
            name = target.get("name") or _name_in(event)
            if (target.get("namespace"), name) == lease and 200 <= code < 300:
                lease_writes.append(
                    LeaseWrite(writer_of(event), spec.get("holderIdentity", ""), at)
                )
        elif (event.get("user") or {}).get("username") == user:
            what = f"{verb} {event.get('requestURI', '')}"
            writes.append(Write(writer_of(event), what, code, at))
    lease_writes.sort(key=lambda each: each.at)
    writes.sort(key=lambda each: each.at)
    return Testimony(_tenures(lease_writes), writes)


def _tenures(lease_writes: Iterable[LeaseWrite]) -> list[Tenure]:
    tenures: list[Tenure] = []
    for write in lease_writes:
        last = tenures[-1] if tenures else None
        if not write.holder:
            if last is not None and last.writer == write.writer:
                tenures[-1] = Tenure(last.writer, last.identity, last.begun, last.renewed, write.at)
        elif last is None or last.identity != write.holder or last.released is not None:
            tenures.append(Tenure(write.writer, write.holder, write.at, write.at))
        else:
            tenures[-1] = Tenure(last.writer, last.identity, last.begun, write.at)
    return tenures


def writer_of(event: Mapping[str, Any]) -> str:
    """Return who sent a request: the token, or the user's name for who has none of its own."""
    extra = (event.get("user") or {}).get("extra") or {}
    return next(iter(extra.get(_TOKEN, ())), (event.get("user") or {}).get("username", ""))


def _name_in(event: Mapping[str, Any]) -> str:
    name = ((event.get("requestObject") or {}).get("metadata") or {}).get("name", "")
    assert isinstance(name, str)
    return name
