"""Observe the Leases of other pools: which of them have a live leader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import structlog

from scheduler.client.errors import ApiError
from scheduler.leader_election.rules import View

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from scheduler.client.leases import Lease

LOOK_S: Final = 5.0
"""How often each Lease is read."""

TIMEOUT_S: Final = 5.0

DEFAULT_LEASE_S: Final = 15.0
"""For a Lease that does not say how long it lasts."""

log = structlog.get_logger(__name__)


class ReadsLease(Protocol):
    """The one call that is needed; raises ApiError."""

    async def get(self, *, timeout_s: float) -> Lease | None:
        """Return the Lease, or None if there is none."""
        ...


class Peers:
    """The leaders of other pools.

    A leader is live while its Lease changes: times in a Lease are another machine's clock. A Lease
    that cannot be read tells nothing, and its pool counts as it did before.

    Parameters
    ----------
    leases
        The Lease of each pool.
    clock
        Monotonic seconds.

    Notes
    -----
    *Concurrency*: loop-confined.
    """

    def __init__(self, leases: Mapping[str, ReadsLease], clock: Callable[[], float]) -> None:
        self._leases = leases
        self._clock = clock
        self._views = dict.fromkeys(leases, View())
        self._live: set[str] = set()
        self._dead_since_s: dict[str, float] = {}

    async def look(self) -> None:
        """Read all Leases once."""
        for pool, leases in self._leases.items():
            try:
                lease = await leases.get(timeout_s=TIMEOUT_S)
            except ApiError as error:
                log.warning("lease of a pool cannot be read", pool=pool, error=str(error))
                continue
            now_s = self._clock()
            view = self._views[pool] = self._views[pool].after(lease, now_s, TIMEOUT_S)
            if view.valid_until_s(DEFAULT_LEASE_S) > now_s:
                self._live.add(pool)
                self._dead_since_s.pop(pool, None)
            else:
                self._live.discard(pool)
                self._dead_since_s.setdefault(pool, now_s)

    def live(self) -> set[str]:
        """Return the pools that have a leader."""
        return self._live

    def dead_for_s(self, pool: str) -> float:
        """Return for how long a pool has had no leader; 0 for one that has, or was never read."""
        since_s = self._dead_since_s.get(pool)
        return 0.0 if since_s is None else self._clock() - since_s
