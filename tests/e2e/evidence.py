"""The API server's audit log about a running deployment: who bound, who was refused."""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import TYPE_CHECKING, Any

from tests.controlplane.audit import check_binds, forbidden_requests

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.controlplane.audit import ForbiddenRequest


@dataclasses.dataclass(frozen=True, slots=True)
class Bind:
    """An accepted bind, and the address of the replica that sent it."""

    time: dt.datetime
    address: str


@dataclasses.dataclass(slots=True)
class Evidence:
    """All of the audit log up to now, for one user.

    Attributes
    ----------
    binds
        In the order in which the requests arrived.
    violations
        A sentence each: bound twice, sent to two nodes, bound without a UID.
    forbidden
        What was answered with 403.
    requests
        How many requests the user made that were logged.
    """

    binds: list[Bind]
    violations: list[str]
    forbidden: list[ForbiddenRequest]
    requests: int

    @classmethod
    def of(cls, events: Iterable[Mapping[str, Any]], user: str) -> Evidence:
        """Read the log once."""
        own = [event for event in events if (event.get("user") or {}).get("username") == user]
        binds = [
            Bind(
                dt.datetime.fromisoformat(event["requestReceivedTimestamp"]),
                event["sourceIPs"][0],
            )
            for event in own
            if (event.get("objectRef") or {}).get("subresource") == "binding"
            and event.get("verb") == "create"
            and (event.get("responseStatus") or {}).get("code") == 201
        ]
        binds.sort(key=lambda bind: bind.time)
        return cls(binds, check_binds(own, user=user), forbidden_requests(own), len(own))

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
