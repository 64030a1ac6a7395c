"""The API server's audit log about a running deployment: who led, who bound, who was refused."""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import TYPE_CHECKING, Any, Final

from tests.controlplane.audit import check_binds, forbidden_requests
from tests.scenarios.lease_witness import testify, writer_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.controlplane.audit import ForbiddenRequest
    from tests.scenarios.lease_witness import Testimony

LEASE_S: Final = 15.0
_AGENT: Final = "berth/"


@dataclasses.dataclass(frozen=True, slots=True)
class Bind:
    """An accepted bind: the replica that sent it, by its address, and the version that it is."""

    time: dt.datetime
    address: str
    version: str


@dataclasses.dataclass(slots=True)
class Evidence:
    """All of the audit log up to now, for one user.

    Attributes
    ----------
    binds
        In the order in which the requests arrived.
    violations
        A sentence each: bound twice, sent to two nodes, bound without a UID, written by somebody
        who did not lead.
    forbidden
        What was answered with 403.
    requests
        How many requests the user made that were logged.
    testimony
        Who led when.
    versions
        Of each process that wrote into the Lease, by what the testimony calls it.
    """

    binds: list[Bind]
    violations: list[str]
    forbidden: list[ForbiddenRequest]
    requests: int
    testimony: Testimony
    versions: dict[str, str]

    @classmethod
    def of(cls, events: Iterable[Mapping[str, Any]], user: str, lease: tuple[str, str]) -> Evidence:
        """Read the log once; `lease` is the namespace and the name of the Lease."""
        own = [event for event in events if (event.get("user") or {}).get("username") == user]
        binds = [
            Bind(
                dt.datetime.fromisoformat(event["requestReceivedTimestamp"]),
                event["sourceIPs"][0],
                _version(event),
            )
            for event in own
            if (event.get("objectRef") or {}).get("subresource") == "binding"
            and event.get("verb") == "create"
            and (event.get("responseStatus") or {}).get("code") == 201
        ]
        binds.sort(key=lambda bind: bind.time)
        testimony = testify(own, user=user, lease=lease)
        return cls(
            binds,
            check_binds(own, user=user) + testimony.violations(LEASE_S),
            forbidden_requests(own),
            len(own),
            testimony,
            {writer_of(event): _version(event) for event in own},
        )

    def led_since(self, since: dt.datetime) -> list[str]:
        """Return the versions of those who became leader, in order."""
        return [self.versions[t.writer] for t in self.testimony.tenures if t.begun > since]

    def first_bind(self, after: dt.datetime, *, not_from: str = "") -> Bind | None:
        """Return the first bind after a time, of another replica than the one at `not_from`."""
        return next((b for b in self.binds if b.time > after and b.address != not_from), None)

    def reigns(self) -> list[tuple[str, int]]:
        """Return who bound in which order: an address and its binds in a row, again and again."""
        reigns: list[tuple[str, int]] = []
        for bind in self.binds:
            if reigns and reigns[-1][0] == bind.address:
                reigns[-1] = (bind.address, reigns[-1][1] + 1)
            else:
                reigns.append((bind.address, 1))
        return reigns


def _version(event: Mapping[str, Any]) -> str:
    """Return what the client says that it is: ``berth/VERSION (part)``."""
    agent: str = event.get("userAgent", "")
    return agent.removeprefix(_AGENT).partition(" ")[0] if agent.startswith(_AGENT) else ""
