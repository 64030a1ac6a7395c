"""Counts pending pods while the page runs, and finds out whether the leader can be asked."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from scheduler.ui.pending_view import counts_of

if TYPE_CHECKING:
    from scheduler.ui.desk import Desk
    from scheduler.ui.leader_sources import LeaderSources
    from scheduler.ui.listing import Listing
    from scheduler.ui.pending_series import PendingSeries

RETRY_S: Final = 10.0
"""Between two questions to a leader that cannot be asked."""


class PendingWatch:
    """Adds points to a series.

    The leader is asked, and nothing is listed for it: without a leader there is a point for each
    listing that somebody has looked at.

    Parameters
    ----------
    series
        Where points are added.
    desk
        The listing.
    leader
        The leader; None where it is not asked.

    Notes
    -----
    *Concurrency*: loop-confined.
    """

    def __init__(self, series: PendingSeries, desk: Desk, leader: LeaderSources | None) -> None:
        self._series = series
        self._desk = desk
        self._leader = leader
        self._seen: Listing | None = None

    async def run(self) -> None:
        """Count until cancelled."""
        while True:
            await self.count()
            failed = self._leader is not None and self._leader.problem
            await asyncio.sleep(RETRY_S if failed else self._series.step_s)

    async def count(self) -> None:
        """Add a point, if there is anything new."""
        pending = None if self._leader is None else await self._leader.probe()
        listing = self._desk.listing
        if pending is not None:
            self._series.add(time.time(), counts_of(pending), pending.leader)
        elif listing is not self._seen:
            self._seen = listing
            counts = {group.reason: len(group.pods) for group in listing.reasons}
            self._series.add(listing.now_s, counts, "")
